//! The reader against recorded streams and odd ones made by hand.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{read, reader};
use crate::dialect::test_answer::{answers_of, fixture, read_pieces, shown};
use crate::model::{ModelErrorKind, ModelEvent, StopReason};

fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap();
    format!("event: {name}\ndata: {data}\n\n")
}

fn start(index: u64, block: &Value) -> String {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(index: u64, delta: &Value) -> String {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn text(index: u64, text: &str) -> String {
    delta(index, &json!({ "type": "text_delta", "text": text }))
}

fn json_piece(index: u64, json: &str) -> String {
    delta(
        index,
        &json!({ "type": "input_json_delta", "partial_json": json }),
    )
}

fn stop(index: u64) -> String {
    event(&json!({ "type": "content_block_stop", "index": index }))
}

fn finish(reason: &str) -> String {
    let change = json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
    event(&change) + &end()
}

fn end() -> String {
    event(&json!({ "type": "message_stop" }))
}

fn text_block() -> String {
    start(0, &json!({ "type": "text", "text": "" }))
}

fn call(id: &str, name: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
}

fn answer(events: &[String]) -> String {
    shown(read(events.concat().as_bytes()))
}

fn reason(stream: &str) -> StopReason {
    match read(stream.as_bytes()) {
        (mut events, None) => match events.pop() {
            Some(ModelEvent::Finished { reason, .. }) => reason,
            other => panic!("no end: {other:?}"),
        },
        (_, Some(error)) => panic!("{error}"),
    }
}

fn error_kind(stream: &str) -> ModelErrorKind {
    read(stream.as_bytes()).1.unwrap().kind
}

const NO_USAGE: &str = "in None cached None out None reasoning None";

fn recorded() -> Vec<(String, Vec<u8>)> {
    let with_bytes = |name: String| {
        let bytes = fixture(&name);
        (name, bytes)
    };
    answers_of("messages").into_iter().map(with_bytes).collect()
}

#[test]
fn recorded_streams_are_read_as_before() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 21);
    for (name, bytes) in recorded {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, shown(read(&bytes)));
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn recorded_streams_say_the_same_however_the_network_cuts_them(sizes in prop::collection::vec(1_usize..40, 1..20)) {
        for (name, bytes) in recorded() {
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(shown(read_pieces(reader(), pieces)), shown(read(&bytes)), "{}", name);
        }
    }

    #[test]
    fn a_recorded_stream_that_is_cut_anywhere_is_cut_off(place in any::<prop::sample::Index>()) {
        for (name, bytes) in recorded() {
            let Some(end) = bytes.windows(21).position(|part| part == b"{\"type\":\"message_stop") else {
                continue;
            };
            let cut = bytes.get(..place.index(end)).unwrap();
            let error = read(cut).1.unwrap();
            prop_assert_eq!(error.kind, ModelErrorKind::Connection, "{} {}", name, error);
        }
    }

    #[test]
    fn garbage_is_an_error_and_no_panic(data in ".{0,200}", kind in "(message|content_block)_(start|delta|stop)") {
        let odd = json!({ "type": kind, "index": 0, "delta": data, "content_block": data, "message": data });
        for line in [data, odd.to_string()] {
            let line = line.replace(['\n', '\r'], " ");
            let (_, error) = read(format!("data: {line}\n\n").as_bytes());
            prop_assert!(error.is_some() || line.contains("message_stop"), "{}", line);
        }
    }

    #[test]
    fn every_answer_starts_its_parts_once_before_they_grow_and_ends_them(
        steps in prop::collection::vec((0_u64..3, 0_u8..5, "[{}x]{0,2}"), 0..30),
    ) {
        let steps = steps.iter().map(|(index, step, piece)| match step {
            0 => start(*index, &json!({ "type": "text", "text": piece })),
            1 => start(*index, &call("a", "f")),
            2 => text(*index, piece),
            3 => json_piece(*index, piece),
            _ => stop(*index),
        });
        let stream: String = steps.chain([finish("end_turn")]).collect();
        let (events, _) = read(stream.as_bytes());
        let mut open = std::collections::BTreeMap::new();
        for event in &events {
            match event {
                ModelEvent::Started { part, .. } => {
                    prop_assert_eq!(open.insert(*part, true), None);
                }
                ModelEvent::Delta { part, .. } => prop_assert_eq!(open.get(part), Some(&true)),
                ModelEvent::Ended { part, .. } => {
                    prop_assert_eq!(open.insert(*part, false), Some(true));
                }
                ModelEvent::Finished { .. } => {
                    let has_open = open.values().any(|open| *open);
                    prop_assert!(!has_open, "open parts: {:?}", open);
                }
            }
        }
    }
}

#[test]
fn a_signed_thought_is_kept_as_the_whole_block() {
    let events = [
        start(
            0,
            &json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(0, &json!({ "type": "thinking_delta", "thinking": "I " })),
        delta(
            0,
            &json!({ "type": "thinking_delta", "thinking": "\"think\"." }),
        ),
        delta(0, &json!({ "type": "signature_delta", "signature": "Eq" })),
        delta(
            0,
            &json!({ "type": "signature_delta", "signature": "Bv==" }),
        ),
        stop(0),
        finish("end_turn"),
    ];
    let expected = format!(
        "0 Reasoning\n0 + I |\\\"think\\\".\n\
         0 end {{\"type\":\"thinking\",\"thinking\":\"I \\\"think\\\".\",\"signature\":\"EqBv==\"}}\n\
         Done, {NO_USAGE}"
    );
    assert_eq!(answer(&events), expected);
}

#[test]
fn a_thought_that_nobody_may_read_is_kept_too() {
    let events = [
        start(0, &json!({ "type": "redacted_thinking", "data": "xyz" })),
        stop(0),
        start(
            1,
            &json!({ "type": "thinking", "thinking": "", "signature": "" }),
        ),
        delta(1, &json!({ "type": "signature_delta", "signature": "s" })),
        stop(1),
        finish("end_turn"),
    ];
    let expected = format!(
        "0 Reasoning\n0 end {{\"type\":\"redacted_thinking\",\"data\":\"xyz\"}}\n\
         1 Reasoning\n1 end {{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}}\n\
         Done, {NO_USAGE}"
    );
    assert_eq!(answer(&events), expected);
}

#[test]
fn a_thought_without_signature_is_shown_but_never_given_back() {
    let events = [
        start(0, &json!({ "type": "thinking", "thinking": "hm" })),
        stop(0),
        finish("end_turn"),
    ];
    assert_eq!(
        answer(&events),
        format!("0 Reasoning\n0 + hm\n0 end\nDone, {NO_USAGE}")
    );
}

#[test]
fn calls_that_grow_at_the_same_time_are_told_apart_by_their_index() {
    let events = [
        start(0, &call("a", "f")),
        start(1, &call("b", "g")),
        json_piece(0, "{\"x\":"),
        json_piece(1, "{}"),
        json_piece(0, "1}"),
        stop(1),
        stop(0),
        finish("tool_use"),
    ];
    let expected = format!(
        "0 call f \"a\"\n1 call g \"b\"\n0 + {{\\\"x\\\":\n1 + {{}}\n0 + 1}}\n1 end\n0 end\n\
         Done, {NO_USAGE}"
    );
    assert_eq!(answer(&events), expected);
}

#[test]
fn arguments_that_come_whole_with_the_beginning_count_unless_pieces_follow() {
    let whole = json!({ "type": "tool_use", "id": "a", "name": "f", "input": { "x": 1 } });
    let alone = [start(0, &whole), stop(0), finish("tool_use")];
    let expected = |pieces: &str| format!("0 call f \"a\"\n0 + {pieces}\n0 end\nDone, {NO_USAGE}");
    assert_eq!(answer(&alone), expected("{\\\"x\\\":1}"));
    let with_pieces = [
        start(0, &whole),
        json_piece(0, "{\"x\":"),
        json_piece(0, "2}"),
        stop(0),
        finish("tool_use"),
    ];
    assert_eq!(answer(&with_pieces), expected("{\\\"x\\\":|2}"));
}

#[test]
fn m_27_arguments_that_stop_in_the_middle_mean_the_limit_whatever_the_reason_says() {
    let cut = start(0, &call("a", "f")) + &json_piece(0, "{\"x\":\"y");
    assert_eq!(
        reason(&(cut.clone() + &finish("tool_use"))),
        StopReason::Length
    );
    assert_eq!(
        reason(&(cut + &stop(0) + &finish("tool_use"))),
        StopReason::Length
    );
}

#[test]
fn every_stop_reason_is_understood() {
    for (name, expected) in [
        ("end_turn", StopReason::Done),
        ("tool_use", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("pause_turn", StopReason::Done),
        ("a_later_one", StopReason::Done),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        assert_eq!(reason(&finish(name)), expected, "{name}");
    }
}

#[test]
fn an_explicit_end_is_an_end_even_without_reason_but_not_without_anything() {
    assert_eq!(
        reason(&(text_block() + &text(0, "a") + &end())),
        StopReason::Done
    );
    assert_eq!(error_kind(&end()), ModelErrorKind::Connection);
}

#[test]
fn m_20_an_end_without_message_stop_is_cut_off() {
    let change = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
    let stream = text_block() + &text(0, "a") + &stop(0) + &event(&change);
    for stream in [
        String::new(),
        "data: [DONE]\n\n".to_owned(),
        stream.clone(),
        format!("{stream}data: [DONE]\n\n"),
        format!("{stream}event: message_stop\ndata: {{\"type\":\"mess"),
    ] {
        assert_eq!(error_kind(&stream), ModelErrorKind::Connection, "{stream}");
    }
}

#[test]
fn usage_counts_the_cache_as_input_and_takes_the_last_count() {
    let first = json!({ "type": "message_start", "message": { "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 1,
    } } });
    let last = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": {
        "input_tokens": 0,
        "output_tokens": 50,
        "output_tokens_details": { "thinking_tokens": 20 },
    } });
    let stream = [event(&first), event(&last), end()];
    assert_eq!(
        answer(&stream),
        "Done, in Some(3210) cached Some(3000) out Some(50) reasoning Some(20)"
    );
}

#[test]
fn m_40_a_count_that_is_none_is_unknown() {
    let usage =
        json!({ "input_tokens": -1, "output_tokens": "many", "output_tokens_details": null });
    let last =
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage });
    assert_eq!(answer(&[event(&last), end()]), format!("Done, {NO_USAGE}"));
}

#[test]
fn pings_and_what_is_unknown_are_skipped() {
    let server_tool =
        json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let events = [
        ": a comment\n\n".to_owned(),
        event(&json!({ "type": "ping" })),
        event(&json!({ "type": "a_later_one", "new": [1] })),
        start(0, &server_tool),
        json_piece(0, "{\"query\":"),
        stop(0),
        start(1, &json!({ "type": "text", "text": "", "new": 1 })),
        text(1, "a"),
        delta(1, &json!({ "type": "citations_delta", "citation": {} })),
        stop(1),
        finish("end_turn"),
    ];
    assert_eq!(
        answer(&events),
        format!("0 Text\n0 + a\n0 end\nDone, {NO_USAGE}")
    );
}

#[test]
fn a_text_with_nothing_in_it_is_no_part() {
    let events = [
        text_block(),
        text(0, ""),
        stop(0),
        start(1, &call("a", "f")),
        stop(1),
        finish("tool_use"),
    ];
    assert_eq!(
        answer(&events),
        format!("0 call f \"a\"\n0 end\nDone, {NO_USAGE}")
    );
}

#[test]
fn a_block_that_is_not_ended_ends_where_the_next_begins() {
    let events = [
        text_block(),
        text(0, "a"),
        start(0, &call("b", "f")),
        finish("tool_use"),
    ];
    assert_eq!(
        answer(&events),
        format!("0 Text\n0 + a\n0 end\n1 call f \"b\"\n1 end\nDone, {NO_USAGE}")
    );
}

#[test]
fn the_name_of_an_event_counts_where_its_data_has_no_type() {
    let stream = "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                  event: message_stop\ndata: {}\n\n";
    assert_eq!(reason(stream), StopReason::Done);
}

#[test]
fn m_16_what_makes_no_sense_is_a_bad_answer() {
    for broken in [
        "{\"type\":\"content_block_start\"",
        "[]",
        "7",
        "{\"type\":7}",
        "{\"type\":\"content_block_start\",\"index\":0}",
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}",
    ] {
        let stream = format!("data: {broken}\n\n");
        assert_eq!(error_kind(&stream), ModelErrorKind::BadAnswer, "{broken}");
    }
    let mixed = text_block() + &json_piece(0, "{");
    assert_eq!(error_kind(&mixed), ModelErrorKind::BadAnswer);
}

#[test]
fn an_error_within_the_stream_has_the_kind_of_its_type() {
    for (name, message, kind) in [
        (
            "overloaded_error",
            "Overloaded",
            ModelErrorKind::Unavailable,
        ),
        (
            "api_error",
            "Internal server error",
            ModelErrorKind::Unavailable,
        ),
        ("timeout_error", "slow", ModelErrorKind::Unavailable),
        ("rate_limit_error", "slow down", ModelErrorKind::RateLimited),
        ("authentication_error", "no", ModelErrorKind::Unauthorized),
        ("permission_error", "no", ModelErrorKind::Unauthorized),
        ("billing_error", "pay", ModelErrorKind::Quota),
        (
            "not_found_error",
            "model: claude-x",
            ModelErrorKind::NotFound,
        ),
        (
            "request_too_large",
            "too large",
            ModelErrorKind::ContextTooLong,
        ),
        ("invalid_request_error", "wrong", ModelErrorKind::BadRequest),
        (
            "invalid_request_error",
            "prompt is too long: 208310 tokens > 200000 maximum",
            ModelErrorKind::ContextTooLong,
        ),
        (
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            ModelErrorKind::ContextTooLong,
        ),
        (
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            ModelErrorKind::Quota,
        ),
    ] {
        let error = json!({ "type": "error", "error": { "type": name, "message": message } });
        let stream = text_block() + &text(0, "a") + &event(&error);
        let (events, failure) = read(stream.as_bytes());
        let failure = failure.unwrap();
        assert_eq!((events.len(), failure.kind), (2, kind), "{failure}");
        assert!(
            failure.message.contains(message.trim_end_matches('.')),
            "{failure}"
        );
    }
    let without_type = "data: {\"error\":{\"message\":\"it broke\"}}\n\n";
    assert_eq!(error_kind(without_type), ModelErrorKind::Unavailable);
}

#[test]
fn what_comes_after_the_end_is_ignored() {
    let stream = [
        finish("end_turn"),
        text(0, "no"),
        "data: garbage\n\n".to_owned(),
    ];
    assert_eq!(answer(&stream), format!("Done, {NO_USAGE}"));
}

#[test]
fn m_36_answers_without_end_are_refused() {
    let piece = json_piece(0, &"x".repeat(1 << 20));
    let long = start(0, &call("a", "f")) + &piece.repeat(17);
    assert_eq!(error_kind(&long), ModelErrorKind::BadAnswer);
    let thought = delta(
        0,
        &json!({ "type": "thinking_delta", "thinking": "x".repeat(1 << 20) }),
    );
    let long = start(0, &json!({ "type": "thinking" })) + &thought.repeat(17);
    assert_eq!(error_kind(&long), ModelErrorKind::BadAnswer);
    let many: String = (0..1_100)
        .map(|index| start(index, &call("a", "f")))
        .collect();
    assert_eq!(error_kind(&many), ModelErrorKind::BadAnswer);
}

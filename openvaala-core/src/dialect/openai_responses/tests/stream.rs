//! The reader against recorded streams, and its ends and errors.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::{NO_USAGE, added, completed, delta, done, error_kind, event, read, reader, reason};
use crate::dialect::test_answer::{answers_of, fixture, read_pieces, shown};
use crate::model::{ModelErrorKind, StopReason};

const TEXT: &str = "response.output_text.delta";
const ARGUMENTS: &str = "response.function_call_arguments.delta";

#[test]
fn recorded_streams_are_read_as_before() {
    let names = answers_of("responses");
    assert_eq!(names.len(), 21, "{names:?}");
    for name in names {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.as_str(), shown(read(&fixture(&name))));
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn bytes_cut_anywhere_are_the_same_events(sizes in prop::collection::vec(1_usize..200, 1..40)) {
        for name in answers_of("responses") {
            let bytes = fixture(&name);
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            for size in sizes.iter().cycle() {
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(shown(read_pieces(reader(), pieces)), shown(read(&bytes)), "{}", name);
        }
    }

    #[test]
    fn a_stream_that_stops_anywhere_before_its_end_is_cut_off(at in 0.0_f64..1.0) {
        for name in answers_of("responses") {
            let text = String::from_utf8(fixture(&name)).unwrap();
            let Some(end) = text.rfind("{\"type\":\"response.completed\"") else {
                continue;
            };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = (at * end as f64) as usize;
            let (_, error) = read(&text.as_bytes()[..at]);
            prop_assert_eq!(error.map(|error| error.kind), Some(ModelErrorKind::Connection), "{}", name);
        }
    }
}

#[test]
fn m_20_an_end_that_was_not_announced_is_cut_off() {
    let text = delta(TEXT, 0, "a");
    let (events, error) = read(text.as_bytes());
    let error = error.unwrap();
    assert_eq!((events.len(), error.kind), (2, ModelErrorKind::Connection));
    assert_eq!(
        error.to_string(),
        "http://test/v1 cut off its answer in the middle"
    );
    for rest in ["", "data: {\"type\":\"respon", "data: [DONE]\n\n"] {
        let stream = format!("{text}{rest}");
        assert_eq!(error_kind(&stream), ModelErrorKind::Connection, "{rest}");
    }
    assert_eq!(error_kind(""), ModelErrorKind::Connection);
}

#[test]
fn the_last_event_counts_without_the_blank_line_after_it() {
    let stream = completed();
    assert_eq!(reason(stream.trim_end()), StopReason::Done);
}

#[test]
fn m_27_an_incomplete_answer_ends_at_the_limit_or_as_refused() {
    for (details, expected) in [
        (json!({ "reason": "max_output_tokens" }), StopReason::Length),
        (json!({ "reason": "a_later_one" }), StopReason::Length),
        (json!(null), StopReason::Length),
        (json!({ "reason": "content_filter" }), StopReason::Refused),
    ] {
        let response = json!({ "response": { "incomplete_details": details } });
        let end = event("response.incomplete", response);
        assert_eq!(reason(&(delta(TEXT, 0, "a") + &end)), expected, "{details}");
    }
}

#[test]
fn m_27_arguments_that_stop_in_the_middle_mean_the_limit_whatever_the_end_says() {
    let item = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "" });
    let stream = added(0, item) + &delta(ARGUMENTS, 0, "{\"x\":\"y") + &completed();
    assert_eq!(reason(&stream), StopReason::Length);
}

#[test]
fn m_23_a_refusal_is_shown_and_ends_the_answer_as_refused() {
    let expected = format!("0 Text\n0 + I won't.\n0 end\nRefused, {NO_USAGE}");
    let message =
        json!({ "type": "message", "content": [{ "type": "refusal", "refusal": "I won't." }] });
    for stream in [
        delta("response.refusal.delta", 0, "I won't."),
        event(
            "response.refusal.done",
            json!({ "output_index": 0, "refusal": "I won't." }),
        ),
        done(0, message.clone()),
        added(0, json!({ "type": "message", "content": [] }))
            + &delta("response.refusal.delta", 0, "I won't.")
            + &done(0, message),
    ] {
        assert_eq!(shown(read((stream + &completed()).as_bytes())), expected);
    }
}

#[test]
fn a_failed_response_has_the_kind_of_its_code() {
    for (error, kind) in [
        (
            json!({ "code": "server_error", "message": "x" }),
            ModelErrorKind::Unavailable,
        ),
        (
            json!({ "code": "rate_limit_exceeded", "message": "try again in 2s" }),
            ModelErrorKind::RateLimited,
        ),
        (
            json!({ "code": "context_length_exceeded", "message": "x" }),
            ModelErrorKind::ContextTooLong,
        ),
        (
            json!({ "code": "insufficient_quota", "message": "x" }),
            ModelErrorKind::Quota,
        ),
        (
            json!({ "code": "invalid_prompt", "message": "x" }),
            ModelErrorKind::BadRequest,
        ),
        (
            json!({ "code": "invalid_base64_image", "message": "x" }),
            ModelErrorKind::BadRequest,
        ),
        (
            json!({ "code": "bio_policy", "message": "x" }),
            ModelErrorKind::Refused,
        ),
        (json!(null), ModelErrorKind::Unavailable),
    ] {
        let failed = event("response.failed", json!({ "response": { "error": error } }));
        let (events, failure) = read((delta(TEXT, 0, "a") + &failed).as_bytes());
        assert_eq!((events.len(), failure.unwrap().kind), (2, kind), "{error}");
    }
}

#[test]
fn an_error_event_has_the_kind_of_its_code_in_every_shape() {
    let error = json!({ "type": "x", "code": "rate_limit_exceeded", "message": "try again in 2s" });
    let flat = event("error", error.clone());
    let nested = event("error", json!({ "error": error }));
    let bare = format!("data: {}\n\n", json!({ "error": error }));
    for stream in [flat, nested, bare] {
        let (events, failure) = read(stream.as_bytes());
        let failure = failure.unwrap();
        assert_eq!(events.len(), 0);
        assert_eq!(failure.kind, ModelErrorKind::RateLimited, "{stream}");
        assert_eq!(
            failure.retry_after,
            Some(std::time::Duration::from_secs(2)),
            "{stream}"
        );
    }
    let overloaded = json!({ "error": { "type": "overloaded_error", "message": "x" } });
    assert_eq!(
        error_kind(&event("error", overloaded)),
        ModelErrorKind::Unavailable
    );
    assert_eq!(
        error_kind("event: error\ndata: {}\n\n"),
        ModelErrorKind::Unavailable
    );
}

#[test]
fn m_16_half_json_in_an_event_is_a_bad_answer() {
    for broken in [
        "{\"type\":",
        "[]",
        "7",
        "\u{0}\u{1}garbage",
        "{\"type\":7}",
        "{\"type\":\"response.output_text.delta\",\"delta\":7}",
        "{\"type\":\"response.output_text.delta\",\"output_index\":-1,\"delta\":\"a\"}",
        "{\"type\":\"response.output_item.added\"}",
        "{\"type\":\"response.output_item.added\",\"item\":[]}",
        "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":\"a\"}}",
        "{\"type\":\"response.completed\",\"response\":{\"output\":7}}",
    ] {
        let stream = format!("data: {broken}\n\n");
        assert_eq!(error_kind(&stream), ModelErrorKind::BadAnswer, "{broken}");
    }
}

#[test]
fn what_is_unknown_is_ignored() {
    let search = json!({ "type": "web_search_call", "id": "w", "content": 7 });
    let stream = [
        "event: ping\ndata:\n\n",
        "data: {}\n\n",
        &event(
            "response.later",
            json!({ "delta": { "a": [1] }, "output_index": "x" }),
        ),
        &added(0, search.clone()),
        &done(0, search),
        &delta(TEXT, 1, "a"),
        &completed(),
        &delta(TEXT, 1, "no"),
    ];
    let expected = format!("0 Text\n0 + a\n0 end\nDone, {NO_USAGE}");
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

#[test]
fn the_name_of_an_event_may_stand_in_its_line_only() {
    let stream = "event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\n\
                  event: response.completed\ndata: {}\n\n";
    let expected = format!("0 Text\n0 + a\n0 end\nDone, {NO_USAGE}");
    assert_eq!(shown(read(stream.as_bytes())), expected);
}

#[test]
fn m_40_usage_is_counted_and_a_count_that_is_none_is_unknown() {
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": { "cached_tokens": 4 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 3 },
    });
    let wrong =
        json!({ "input_tokens": -1, "output_tokens": "many", "input_tokens_details": null });
    for (usage, expected) in [
        (
            usage,
            "Done, in Some(10) cached Some(4) out Some(5) reasoning Some(3)".to_owned(),
        ),
        (wrong, format!("Done, {NO_USAGE}")),
    ] {
        let stream = event(
            "response.completed",
            json!({ "response": { "usage": usage } }),
        );
        assert_eq!(shown(read(stream.as_bytes())), expected);
    }
}

#[test]
fn m_36_answers_without_end_are_refused() {
    let text = "x".repeat(1 << 20);
    assert_eq!(
        error_kind(&delta(TEXT, 0, &text).repeat(17)),
        ModelErrorKind::BadAnswer
    );
    let many: String = (0..1_100).map(|index| delta(TEXT, index, "a")).collect();
    assert_eq!(error_kind(&many), ModelErrorKind::BadAnswer);
}

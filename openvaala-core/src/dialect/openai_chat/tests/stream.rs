//! The reader against recorded streams and odd ones made by hand.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;
use crate::dialect::test_answer::{answers_of, fixture, shown};
use crate::model::{ModelErrorKind, ModelEvent, StopReason};

fn delta(delta: &Value) -> String {
    format!(
        "data: {}\n\n",
        json!({ "choices": [{ "index": 0, "delta": delta }] })
    )
}

fn finish(reason: &str) -> String {
    let choices = json!([{ "index": 0, "delta": {}, "finish_reason": reason }]);
    format!("data: {}\n\n", json!({ "choices": choices }))
}

const DONE: &str = "data: [DONE]\n\n";

fn calls(deltas: &[Value]) -> String {
    let mut stream: String = deltas
        .iter()
        .map(|call| delta(&json!({ "tool_calls": [call] })))
        .collect();
    stream.push_str(&finish("tool_calls"));
    stream.push_str(DONE);
    shown(read(stream.as_bytes()))
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

#[test]
fn recorded_streams_are_read_as_before() {
    let names = answers_of("chat");
    assert_eq!(names.len(), 17, "{names:?}");
    for name in names {
        let bytes = fixture(&name);
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.as_str(), shown(read(&bytes)));
        });
    }
}

#[test]
fn a_call_in_pieces_is_put_together_by_its_index() {
    let answer = calls(&[
        json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "" } }),
        json!({ "index": 1, "id": "b", "function": { "name": "g", "arguments": "{" } }),
        json!({ "index": 0, "function": { "arguments": "{\"x\":" } }),
        json!({ "index": 1, "function": { "arguments": "}" } }),
        json!({ "index": 0, "function": { "arguments": "1}" } }),
    ]);
    let expected = "0 call f \"a\"\n1 call g \"b\"\n1 + {\n0 + {\\\"x\\\":\n1 + }\n0 + 1}\n0 end\n1 end\n\
                    Done, in None cached None out None reasoning None";
    assert_eq!(answer, expected);
}

const ONE_CALL: &str = "0 call f \"a\"\n0 + {|\\\"x\\\":1}\n0 end\n\
                        Done, in None cached None out None reasoning None";

#[test]
fn a_call_without_index_goes_on_with_the_last_one() {
    let answer = calls(&[
        json!({ "id": "a", "function": { "name": "f", "arguments": "{" } }),
        json!({ "function": { "arguments": "\"x\":1}" } }),
    ]);
    assert_eq!(answer, ONE_CALL);
}

#[test]
fn a_repeated_name_and_id_begin_no_new_call() {
    for index in [json!(0), json!(null)] {
        let answer = calls(&[
            json!({ "index": index, "id": "a", "function": { "name": "f", "arguments": "{" } }),
            json!({ "index": index, "id": "a", "function": { "name": "f", "arguments": "\"x\":1}" } }),
            json!({ "index": index, "id": "a", "function": { "name": "f", "arguments": "" } }),
        ]);
        assert_eq!(answer, ONE_CALL);
    }
}

#[test]
fn an_id_that_comes_late_is_waited_for() {
    for index in [json!(0), json!(null)] {
        let answer = calls(&[
            json!({ "index": index, "function": { "name": "f", "arguments": "{" } }),
            json!({ "index": index, "id": "a", "function": { "arguments": "" } }),
            json!({ "index": index, "function": { "arguments": "\"x\":1}" } }),
        ]);
        assert_eq!(answer, ONE_CALL);
    }
}

#[test]
fn m_31_a_call_whose_id_never_comes_has_an_empty_one() {
    let answer = calls(&[json!({ "index": 0, "function": { "name": "f", "arguments": "{}" } })]);
    let expected =
        "0 call f \"\"\n0 + {}\n0 end\nDone, in None cached None out None reasoning None";
    assert_eq!(answer, expected);
}

#[test]
fn whole_calls_with_the_same_index_or_none_are_several() {
    let expected = "0 call f \"a\"\n0 + {}\n1 call f \"b\"\n1 + {\\\"x\\\":1}\n0 end\n1 end\n\
                    Done, in None cached None out None reasoning None";
    for index in [json!(0), json!(null)] {
        let answer = calls(&[
            json!({ "index": index, "id": "a", "function": { "name": "f", "arguments": "{}" } }),
            json!({ "index": index, "id": "b", "function": { "name": "f", "arguments": { "x": 1 } } }),
        ]);
        assert_eq!(answer, expected);
        let without_ids = calls(&[
            json!({ "index": index, "function": { "name": "f", "arguments": "{}" } }),
            json!({ "index": index, "function": { "name": "f", "arguments": { "x": 1 } } }),
        ]);
        let expected = expected.replace("\"a\"", "\"\"").replace("\"b\"", "\"\"");
        let (mut got, mut wanted): (Vec<_>, Vec<_>) =
            (without_ids.lines().collect(), expected.lines().collect());
        got.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(got, wanted);
    }
}

#[test]
fn thoughts_come_as_a_part_of_their_own_that_remembers_its_field() {
    let stream = [
        delta(&json!({ "role": "assistant", "content": null, "reasoning": "a" })),
        delta(&json!({ "content": "", "reasoning": "b", "reasoning_content": "b" })),
        delta(&json!({ "content": "c" })),
        delta(
            &json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "d" }] }] }),
        ),
        delta(&json!({ "content": [{ "type": "text", "text": "e" }] })),
        finish("stop"),
        DONE.to_owned(),
    ];
    let expected = "0 Reasoning\n0 + a\n0 end {\"field\":\"reasoning\"}\n\
                    1 Reasoning\n1 + b\n1 end {\"field\":\"reasoning_content\"}\n\
                    2 Text\n2 + c\n2 end\n3 Reasoning\n3 + d\n3 end\n4 Text\n4 + e\n4 end\n\
                    Done, in None cached None out None reasoning None";
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

#[test]
fn m_23_a_refusal_is_shown_and_ends_the_answer_as_refused() {
    let stream = [
        delta(&json!({ "refusal": "I won't." })),
        finish("stop"),
        DONE.to_owned(),
    ];
    let expected =
        "0 Text\n0 + I won't.\n0 end\nRefused, in None cached None out None reasoning None";
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

#[test]
fn every_finish_reason_is_understood() {
    for (name, expected) in [
        ("stop", StopReason::Done),
        ("tool_calls", StopReason::Done),
        ("function_call", StopReason::Done),
        ("a_later_one", StopReason::Done),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
    ] {
        let stream = [delta(&json!({ "content": "a" })), finish(name)].concat();
        assert_eq!(reason(&stream), expected, "{name}");
    }
    assert_eq!(error_kind(&finish("error")), ModelErrorKind::Unavailable);
}

#[test]
fn m_27_arguments_that_stop_in_the_middle_mean_the_limit_whatever_the_reason_says() {
    let call =
        json!({ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{\"x\":\"y" } });
    let stream = [
        delta(&json!({ "tool_calls": [call] })),
        finish("tool_calls"),
    ]
    .concat();
    assert_eq!(reason(&stream), StopReason::Length);
}

#[test]
fn usage_that_comes_after_the_finish_is_waited_for() {
    let usage = json!({
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": { "cached_tokens": 4 },
        "completion_tokens_details": { "reasoning_tokens": 3 },
    });
    let stream = [
        delta(&json!({ "content": "a" })),
        finish("stop"),
        format!("data: {}\n\n", json!({ "choices": [], "usage": usage })),
    ];
    let expected =
        "0 Text\n0 + a\n0 end\nDone, in Some(10) cached Some(4) out Some(5) reasoning Some(3)";
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

#[test]
fn m_40_a_count_that_is_none_is_unknown() {
    let usage =
        json!({ "prompt_tokens": -1, "completion_tokens": "many", "prompt_tokens_details": null });
    let stream = [
        finish("stop"),
        format!("data: {}\n\n", json!({ "choices": [], "usage": usage })),
    ];
    assert_eq!(
        shown(read(stream.concat().as_bytes())),
        "Done, in None cached None out None reasoning None"
    );
}

#[test]
fn m_20_an_end_without_reason_is_cut_off() {
    let stream = delta(&json!({ "content": "a" }));
    let (events, error) = read(stream.as_bytes());
    assert_eq!(
        (events.len(), error.unwrap().kind),
        (2, ModelErrorKind::Connection)
    );
    assert_eq!(
        error_kind(&format!("{stream}data: {{\"choi")),
        ModelErrorKind::Connection
    );
    assert_eq!(error_kind(""), ModelErrorKind::Connection);
    assert_eq!(error_kind(DONE), ModelErrorKind::Connection);
}

#[test]
fn an_explicit_end_is_an_end_even_without_reason() {
    assert_eq!(
        reason(&[&delta(&json!({ "content": "a" })), DONE].concat()),
        StopReason::Done
    );
}

#[test]
fn m_16_half_json_in_an_event_is_a_bad_answer_and_what_is_unknown_is_ignored() {
    for broken in [
        "{\"choices\":[",
        "[]",
        "7",
        "{\"choices\":7}",
        "{\"choices\":[{\"delta\":\"x\"}]}",
    ] {
        let stream = format!("data: {broken}\n\n");
        assert_eq!(error_kind(&stream), ModelErrorKind::BadAnswer, "{broken}");
    }
    let unknown = "data: {\"new\":{\"a\":[1]},\"choices\":[{\"new\":1,\"delta\":{\"new\":2}}]}\n\n";
    let stream = [
        unknown,
        "data: {}\n\n",
        "event: ping\ndata:\n\n",
        &finish("stop"),
    ]
    .concat();
    assert_eq!(reason(&stream), StopReason::Done);
}

#[test]
fn an_error_within_the_stream_has_the_kind_of_its_code() {
    for (error, kind, status) in [
        (
            json!({ "code": 429, "message": "slow down" }),
            ModelErrorKind::RateLimited,
            Some(429),
        ),
        (
            json!({ "code": "502", "message": "x" }),
            ModelErrorKind::Unavailable,
            Some(502),
        ),
        (
            json!({ "type": "overloaded_error", "message": "x" }),
            ModelErrorKind::Unavailable,
            None,
        ),
        (
            json!({ "code": "rate_limit_exceeded", "message": "try again in 2s" }),
            ModelErrorKind::RateLimited,
            None,
        ),
        (
            json!({ "code": "context_length_exceeded" }),
            ModelErrorKind::ContextTooLong,
            None,
        ),
        (json!("it broke"), ModelErrorKind::Unavailable, None),
    ] {
        let stream = format!(
            "{}data: {}\n\n",
            delta(&json!({ "content": "a" })),
            json!({ "error": error })
        );
        let (events, failure) = read(stream.as_bytes());
        let failure = failure.unwrap();
        assert_eq!(
            (events.len(), failure.kind, failure.status),
            (2, kind, status),
            "{failure}"
        );
    }
}

#[test]
fn what_comes_after_the_end_and_other_choices_are_ignored() {
    let other = json!({ "choices": [{ "index": 1, "delta": { "content": "no" } }] });
    let late = delta(&json!({ "content": "no" }));
    let stream = format!("data: {other}\n\n{}{DONE}{late}", finish("stop"));
    assert_eq!(
        shown(read(stream.as_bytes())),
        "Done, in None cached None out None reasoning None"
    );
}

#[test]
fn m_36_calls_without_end_are_refused() {
    let text = "x".repeat(1 << 20);
    let piece =
        delta(&json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] }));
    assert_eq!(error_kind(&piece.repeat(17)), ModelErrorKind::BadAnswer);
    let many: String = (0..1_100)
        .map(|index| delta(&json!({ "tool_calls": [{ "index": index }] })))
        .collect();
    assert_eq!(error_kind(&many), ModelErrorKind::BadAnswer);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_answer_starts_its_parts_once_before_they_grow_and_ends_them(
        deltas in prop::collection::vec(
            (0_u64..3, prop::option::of("[ab]"), prop::option::of("[fg]"), "[{}x]{0,2}", any::<bool>()),
            0..20,
        ),
    ) {
        let mut stream: String = deltas.iter().map(|(index, id, name, text, has_index)| {
            let index = has_index.then_some(index);
            let function = json!({ "name": name, "arguments": text });
            let call = json!({ "index": index, "id": id, "function": function });
            delta(&json!({ "tool_calls": [call], "content": text }))
        }).collect();
        stream.push_str(&finish("stop"));
        let (events, error) = read(stream.as_bytes());
        prop_assert!(error.is_none());
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
        let is_finished = matches!(events.last(), Some(ModelEvent::Finished { .. }));
        prop_assert!(is_finished, "no end");
    }
}

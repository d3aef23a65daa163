//! What servers make of the same answer: events left out, said twice, or without a key.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NO_USAGE, added, completed, delta, done, event, read};
use crate::dialect::test_answer::shown;
use crate::model::ModelEvent;

const TEXT: &str = "response.output_text.delta";
const ARGUMENTS: &str = "response.function_call_arguments.delta";
const SUMMARY: &str = "response.reasoning_summary_text.delta";
const THOUGHT: &str = "response.reasoning_text.delta";

fn message(text: &str) -> Value {
    json!({ "type": "message", "id": "m", "content": [{ "type": "output_text", "text": text }] })
}

fn call(id: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f", "arguments": arguments })
}

fn answer(events: &[String]) -> String {
    shown(read((events.concat() + &completed()).as_bytes()))
}

/// Without the marks between deltas.
fn joined(answer: &str) -> String {
    answer.replace('|', "")
}

#[test]
fn a_text_is_said_once_however_often_it_comes() {
    let expected = format!("0 Text\n0 + Hello\n0 end\nDone, {NO_USAGE}");
    let whole = event(
        "response.output_text.done",
        json!({ "output_index": 0, "text": "Hello" }),
    );
    let begin = added(0, message(""));
    let (half, end) = (delta(TEXT, 0, "Hel"), done(0, message("Hello")));
    for events in [
        vec![
            begin.clone(),
            half.clone(),
            delta(TEXT, 0, "lo"),
            whole.clone(),
            end.clone(),
        ],
        vec![begin.clone(), half.clone(), whole.clone(), end.clone()],
        vec![half.clone(), end.clone()],
        vec![begin, whole.clone()],
        vec![whole.clone(), whole],
        vec![end.clone(), end.clone()],
        vec![end, half],
    ] {
        assert_eq!(joined(&answer(&events)), expected, "{events:?}");
    }
}

#[test]
fn what_differs_from_what_was_said_is_not_said_after_it() {
    let events = [
        added(0, call("a", "")),
        delta(ARGUMENTS, 0, "{\"x\":1}"),
        done(0, call("a", "{ \"x\": 1 }")),
    ];
    let expected = format!("0 call f \"a\"\n0 + {{\\\"x\\\":1}}\n0 end\nDone, {NO_USAGE}");
    assert_eq!(answer(&events), expected);
}

#[test]
fn an_answer_that_comes_at_its_end_only_is_said_there() {
    let output = json!([message("Hello"), call("a", "{}")]);
    let stream = event(
        "response.completed",
        json!({ "response": { "output": output } }),
    );
    let expected =
        format!("0 Text\n0 + Hello\n0 end\n1 call f \"a\"\n1 + {{}}\n1 end\nDone, {NO_USAGE}");
    assert_eq!(shown(read(stream.as_bytes())), expected);
}

#[test]
fn an_item_that_was_not_ended_is_completed_from_the_end_of_the_answer() {
    let thought =
        json!({ "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x" });
    let begun = added(0, json!({ "type": "reasoning", "id": "r", "summary": [] }));
    let output = json!([thought, message("Hello")]);
    let stream = [
        begun,
        added(1, message("")),
        delta(TEXT, 1, "Hello"),
        done(1, message("Hello")),
        event(
            "response.completed",
            json!({ "response": { "output": output } }),
        ),
    ];
    let expected =
        format!("0 Reasoning\n1 Text\n1 + Hello\n1 end\n0 end {thought}\nDone, {NO_USAGE}");
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

const TWO_CALLS: &str =
    "0 call f \"a\"\n1 call f \"b\"\n0 + {\n1 + {\n0 + }\n1 + }\n0 end\n1 end\nDone, ";

/// Two calls that grow at the same time, each event keyed as `key` does it for a call's number.
fn two_calls(key: impl Fn(u64, &str) -> Value) -> String {
    let keyed = |name: &str, number: u64, id: &str, mut fields: Value| {
        let key = key(number, id);
        for (field, value) in key.as_object().unwrap() {
            fields[field] = value.clone();
        }
        event(name, fields)
    };
    let item = |id: &str, arguments| json!({ "item": call(id, arguments) });
    let piece = |number, id, text: &str| keyed(ARGUMENTS, number, id, json!({ "delta": text }));
    let events = [
        keyed("response.output_item.added", 0, "fc_a", item("a", "")),
        keyed("response.output_item.added", 1, "fc_b", item("b", "")),
        piece(0, "fc_a", "{"),
        piece(1, "fc_b", "{"),
        piece(0, "fc_a", "}"),
        piece(1, "fc_b", "}"),
        keyed("response.output_item.done", 0, "fc_a", item("a", "{}")),
        keyed("response.output_item.done", 1, "fc_b", item("b", "{}")),
    ];
    answer(&events)
}

#[test]
fn items_are_told_apart_by_index_or_id_or_both() {
    let expected = format!("{TWO_CALLS}{NO_USAGE}");
    assert_eq!(
        two_calls(|index, id| json!({ "output_index": index, "item_id": id })),
        expected
    );
    assert_eq!(
        two_calls(|index, _| json!({ "output_index": index })),
        expected
    );
    assert_eq!(two_calls(|_, id| json!({ "item_id": id })), expected);
    assert_eq!(
        two_calls(|_, id| json!({ "output_index": 0, "item_id": id })),
        expected
    );
}

#[test]
fn an_id_that_changes_with_every_event_is_no_other_item() {
    let events = [
        added(0, json!({ "type": "reasoning", "id": "r1" })),
        event(
            SUMMARY,
            json!({ "output_index": 0, "item_id": "r2", "delta": "hm" }),
        ),
        done(
            0,
            json!({ "type": "reasoning", "id": "r3", "summary": [{ "text": "hm" }], "encrypted_content": "x" }),
        ),
    ];
    let answer = answer(&events);
    assert_eq!(answer.lines().count(), 4, "{answer}");
}

#[test]
fn a_call_whose_name_comes_late_is_waited_for() {
    let events = [
        delta(ARGUMENTS, 0, "{"),
        delta(ARGUMENTS, 0, "}"),
        done(0, call("a", "{}")),
    ];
    let expected = format!("0 call f \"a\"\n0 + {{}}\n0 end\nDone, {NO_USAGE}");
    assert_eq!(answer(&events), expected);
}

#[test]
fn m_31_a_call_without_id_has_that_of_its_item_or_an_empty_one() {
    let item = |id: Value| json!({ "type": "function_call", "id": id, "name": "f", "arguments": {"x": 1} });
    for (id, shown) in [(json!("fc_1"), "fc_1"), (json!(null), "")] {
        let expected =
            format!("0 call f \"{shown}\"\n0 + {{\\\"x\\\":1}}\n0 end\nDone, {NO_USAGE}");
        assert_eq!(answer(&[done(0, item(id))]), expected);
    }
}

#[test]
fn whole_calls_without_any_key_are_several() {
    let item = json!({ "item": { "type": "function_call", "call_id": "", "name": "f", "arguments": "{}" } });
    let events = [
        event("response.output_item.done", item.clone()),
        event("response.output_item.done", item),
    ];
    let answer = answer(&events);
    assert_eq!(answer.matches("call f").count(), 2, "{answer}");
}

#[test]
fn a_thought_ends_with_its_whole_item_as_the_service_wrote_it() {
    let raw = "{\"type\":\"reasoning\", \"id\":\"r\",\"n\":12345678901234567890123,\"encrypted_content\":\"x\",\"summary\":[]}";
    let end = format!(
        "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{raw}}}\n\n"
    );
    let events = [
        added(
            0,
            json!({ "type": "reasoning", "id": "r", "encrypted_content": "half" }),
        ),
        end,
    ];
    assert_eq!(
        answer(&events),
        format!("0 Reasoning\n0 end {raw}\nDone, {NO_USAGE}")
    );
}

#[test]
fn a_thought_of_which_nothing_but_an_id_would_go_back_does_not_go_back() {
    for encrypted in [json!(null), json!("")] {
        let item = json!({
            "type": "reasoning", "id": "r", "summary": [{ "type": "summary_text", "text": "hm" }],
            "content": null, "encrypted_content": encrypted,
        });
        let expected = format!("0 Reasoning\n0 + hm\n0 end\nDone, {NO_USAGE}");
        assert_eq!(answer(&[done(0, item)]), expected);
    }
}

#[test]
fn encrypted_thoughts_that_come_at_the_end_of_the_answer_only_go_back() {
    let item = json!({ "type": "reasoning", "id": "r", "summary": [{ "text": "hm" }] });
    let mut whole = item.clone();
    whole["encrypted_content"] = json!("x");
    let stream = [
        added(0, json!({ "type": "reasoning", "id": "r" })),
        delta(SUMMARY, 0, "hm"),
        done(0, item),
        done(1, message("Hello")),
        event(
            "response.completed",
            json!({ "response": { "output": [whole, message("Hello")] } }),
        ),
    ];
    let expected =
        format!("0 Reasoning\n0 + hm\n1 Text\n1 + Hello\n1 end\n0 end {whole}\nDone, {NO_USAGE}");
    assert_eq!(shown(read(stream.concat().as_bytes())), expected);
}

#[test]
fn the_paragraphs_of_a_summary_are_told_apart() {
    let piece = |index: u64, text: &str| {
        event(
            SUMMARY,
            json!({ "output_index": 0, "summary_index": index, "delta": text }),
        )
    };
    let summary = json!([{ "text": "one" }, { "text": "two" }]);
    let item = json!({ "type": "reasoning", "id": "r", "summary": summary });
    let expected = format!("0 Reasoning\n0 + one\\n\\ntwo\n0 end\nDone, {NO_USAGE}");
    let events = [
        piece(0, "o"),
        piece(0, "ne"),
        piece(1, "t"),
        piece(1, "wo"),
        done(0, item.clone()),
    ];
    assert_eq!(joined(&answer(&events)), expected);
    assert_eq!(joined(&answer(&[done(0, item)])), expected);
}

#[test]
fn a_thought_that_comes_in_both_ways_is_said_once() {
    let item = json!({
        "type": "reasoning", "id": "r", "summary": [{ "text": "hm" }],
        "content": [{ "type": "reasoning_text", "text": "hm" }],
    });
    let expected = format!("0 Reasoning\n0 + hm\n0 end {item}\nDone, {NO_USAGE}");
    for events in [
        vec![done(0, item.clone())],
        vec![delta(THOUGHT, 0, "hm"), done(0, item.clone())],
        vec![
            delta(SUMMARY, 0, "hm"),
            delta(THOUGHT, 0, "hm"),
            done(0, item),
        ],
    ] {
        assert_eq!(answer(&events), expected);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Added(Value),
    Delta(&'static str, String),
    Done(Value),
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = prop::sample::select(vec!["message", "reasoning", "function_call", "other"]);
    let item = (kinds, prop::option::of("[ab]"), prop::option::of("[fg]"), "[{}x]{0,2}").prop_map(
        |(kind, id, name, text)| {
            let texts = json!([{ "text": text }]);
            json!({ "type": kind, "id": id, "name": name, "arguments": text, "content": texts, "summary": texts })
        },
    );
    let names = prop::sample::select(vec![TEXT, ARGUMENTS, SUMMARY, THOUGHT]);
    prop_oneof![
        item.clone().prop_map(Step::Added),
        item.prop_map(Step::Done),
        (names, "[{}x]{0,2}").prop_map(|(name, text)| Step::Delta(name, text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_answer_starts_its_parts_once_before_they_grow_and_ends_them(
        steps in prop::collection::vec((step(), prop::option::of(0_u64..3), prop::option::of("[ab]")), 0..20),
    ) {
        let mut stream: String = steps.iter().map(|(step, index, id)| match step {
            Step::Added(item) => event("response.output_item.added", json!({ "output_index": index, "item": item })),
            Step::Done(item) => event("response.output_item.done", json!({ "output_index": index, "item": item })),
            Step::Delta(name, text) => event(name, json!({ "output_index": index, "item_id": id, "delta": text })),
        }).collect();
        stream.push_str(&completed());
        let (events, error) = read(stream.as_bytes());
        prop_assert!(error.is_none());
        let mut open = BTreeMap::new();
        for event in &events {
            match event {
                ModelEvent::Started { part, .. } => prop_assert_eq!(open.insert(*part, true), None),
                ModelEvent::Delta { part, .. } => prop_assert_eq!(open.get(part), Some(&true)),
                ModelEvent::Ended { part, .. } => prop_assert_eq!(open.insert(*part, false), Some(true)),
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

//! The open questions of a conversation, from the entries of its logs.

use openvaala_protocol::event::Entry;
use openvaala_protocol::id::SessionId;
use openvaala_protocol::item::Item;
use openvaala_protocol::questions::OpenQuestions;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const SESSION: &str = "0192d3f5-8c1e-7a5b-9c2d-000000000001";
const OTHER: &str = "0192d3f5-8c1e-7a5b-9c2d-000000000002";
const TURN: &str = "0192d3f5-8c1e-7a5b-9c2d-00000000000a";
const TIME: &str = "2026-12-02T04:22:41.123Z";

fn entry(value: Value) -> Entry {
    serde_json::from_value(value).unwrap()
}

fn question(session: &str, pos: u64, state: &str) -> Entry {
    let id = format!("0192d3f5-9000-7000-8000-{pos:012}");
    let approval = json!({ "call": id, "state": state, "tool": "bash" });
    let item = json!({
        "id": id, "kind": "approval", "turn": TURN, "pos": pos, "started_at": TIME, "ended_at": TIME,
        "body": approval,
    });
    entry(json!({ "item": { "seq": pos, "session_id": session, "item": item } }))
}

fn end_of_turn() -> Entry {
    let turn = json!({
        "id": TURN, "session_id": SESSION, "status": "interrupted", "failure": null,
        "inputs": [], "model": { "provider": "p", "model": "m" }, "executors": [], "steps": 1,
        "started_at": TIME, "ended_at": TIME, "last_seq": 8,
        "usage": {
            "input_tokens": 1, "cached_input_tokens": null, "output_tokens": 2, "reasoning_tokens": null,
        },
    });
    entry(json!({ "turn": { "seq": 9, "turn": turn } }))
}

fn places(questions: &OpenQuestions, session: &str) -> Vec<u64> {
    let session: SessionId = session.parse().unwrap();
    let open = questions.of(session);
    open.iter().map(|item: &Item| item.head().pos).collect()
}

#[test]
fn a_question_is_open_until_it_is_answered_or_its_turn_ends() {
    let mut questions = OpenQuestions::default();
    for (session, pos) in [(SESSION, 7), (SESSION, 3), (OTHER, 3)] {
        questions.take(&question(session, pos, "pending"));
    }
    assert_eq!(places(&questions, SESSION), [3, 7]);
    questions.take(&question(SESSION, 3, "denied"));
    assert_eq!(places(&questions, SESSION), [7]);
    assert_eq!(places(&questions, OTHER), [3]);
    questions.take(&end_of_turn());
    assert_eq!(questions, OpenQuestions::default());
}

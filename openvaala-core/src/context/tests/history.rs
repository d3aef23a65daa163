use std::collections::HashMap;

use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::id::{BlobId, SessionId};
use openvaala_protocol::item::{
    ContextSummary, Interruption, InterruptionCause, Item, Reasoning, ToolCall, ToolResult,
    ToolResultStatus, UserMessage,
};
use pretty_assertions::assert_eq;
use serde_json::json;
use serde_json::value::to_raw_value;
use uuid::Uuid;

use super::{
    call, id, item, item_with_id, messages, messages_with, opaque, result, said, shown, thought,
    user,
};

/// Compares the messages of a history, a message a line.
#[track_caller]
fn check(items: &[Item], expected: &[&str]) {
    assert_eq!(shown(&messages(items)), expected.join("\n"));
}

fn raw(pos: u64, kind: &str, body: &serde_json::Value) -> Item {
    let time = "2026-12-02T04:22:41.123Z";
    let item = json!({
        "id": id(pos), "kind": kind, "turn": null, "pos": pos,
        "started_at": time, "ended_at": time, "body": body,
    });
    Item::from_raw(to_raw_value(&item).unwrap()).unwrap()
}

#[test]
fn a_turn_becomes_messages_in_its_order() {
    check(
        &[
            user(1, "hi"),
            said(2, "I look."),
            call(3, "a"),
            call(4, "b"),
            result(5, 3, "a", "1"),
            result(6, 4, "b", "2"),
            said(7, "Done."),
            user(8, "thanks"),
        ],
        &[
            "user: hi",
            "assistant: I look. | f#a {\"x\":1} | f#b {\"x\":1}",
            "results: f#a: 1 | f#b: 2",
            "assistant: Done.",
            "user: thanks",
        ],
    );
}

#[test]
fn items_are_ordered_by_their_place_and_taken_once() {
    let (first, second) = (user(1, "a"), user(2, "b"));
    check(
        &[second.clone(), first.clone(), second, first],
        &["user: a", "user: b"],
    );
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    check(
        &[
            call(1, "a"),
            call(2, "b"),
            result(3, 2, "b", "2"),
            result(4, 1, "a", "1"),
        ],
        &[
            "user: [the beginning of this conversation is lost]",
            "assistant: f#a {\"x\":1} | f#b {\"x\":1}",
            "results: f#a: 1 | f#b: 2",
        ],
    );
}

#[test]
fn a_steered_message_between_call_and_result_moves_behind_the_result() {
    check(
        &[
            user(1, "hi"),
            call(2, "a"),
            user(3, "faster"),
            result(4, 2, "a", "1"),
            said(5, "ok"),
        ],
        &[
            "user: hi",
            "assistant: f#a {\"x\":1}",
            "results: f#a: 1",
            "user: faster",
            "assistant: ok",
        ],
    );
}

#[test]
fn m_33_a_call_without_result_gets_one_that_says_so() {
    check(
        &[
            user(1, "hi"),
            call(2, "a"),
            call(3, "b"),
            result(4, 3, "b", "2"),
            user(5, "go on"),
        ],
        &[
            "user: hi",
            "assistant: f#a {\"x\":1} | f#b {\"x\":1}",
            "results: f#a failed: interrupted: the outcome is not known | f#b: 2",
            "user: go on",
        ],
    );
}

#[test]
fn m_33_a_result_without_call_is_dropped() {
    check(
        &[
            result(1, 9, "x", "?"),
            user(2, "hi"),
            result(3, 2, "x", "?"),
            said(4, "ok"),
        ],
        &["user: hi", "assistant: ok"],
    );
}

#[test]
fn m_33_a_result_that_names_a_lost_item_is_found_by_its_call_id() {
    check(
        &[user(1, "hi"), call(2, "a"), result(3, 99, "a", "1")],
        &["user: hi", "assistant: f#a {\"x\":1}", "results: f#a: 1"],
    );
}

#[test]
fn m_21_the_first_of_two_results_wins() {
    check(
        &[
            user(1, "hi"),
            call(2, "a"),
            result(3, 2, "a", "1"),
            result(4, 2, "a", "2"),
            said(5, "ok"),
        ],
        &[
            "user: hi",
            "assistant: f#a {\"x\":1}",
            "results: f#a: 1",
            "assistant: ok",
        ],
    );
}

#[test]
fn m_31_call_ids_that_are_empty_or_taken_are_replaced() {
    check(
        &[
            user(1, "hi"),
            call(2, "a"),
            call(3, "a"),
            call(4, ""),
            call(5, "a_3"),
            result(6, 2, "a", "1"),
            result(7, 3, "a", "2"),
            result(8, 4, "", "3"),
            result(9, 5, "a_3", "4"),
        ],
        &[
            "user: hi",
            "assistant: f#a {\"x\":1} | f#a_3 {\"x\":1} | f#call_4 {\"x\":1} | f#a_3_5 {\"x\":1}",
            "results: f#a: 1 | f#a_3: 2 | f#call_4: 3 | f#a_3_5: 4",
        ],
    );
}

#[test]
fn m_29_arguments_that_are_no_object_become_one_and_the_answer_says_so() {
    let cut_note = "[the arguments of this call were cut off and are shown as {}]";
    let bad_note = "[the arguments of this call were no JSON object and are shown as {}]";
    for (text, cut, shown_arguments, note) in [
        (
            " {\"n\":12345678901234567890123} ",
            false,
            "{\"n\":12345678901234567890123}",
            None,
        ),
        ("", false, "{}", None),
        ("{\"x\":", false, "{}", Some(cut_note)),
        ("{\"x\":1}", true, "{}", Some(cut_note)),
        ("[1]", false, "{}", Some(bad_note)),
        ("{x:1}", false, "{}", Some(bad_note)),
        ("{} {}", false, "{}", Some(bad_note)),
    ] {
        let mut body = ToolCall::new("a".to_owned(), "f".to_owned(), text.to_owned());
        body.cut = cut;
        let items = [user(1, "hi"), item(2, &body), result(3, 2, "a", "no")];
        let note = note.map(|note| format!("{note} + ")).unwrap_or_default();
        let call = format!("assistant: f#a {shown_arguments}");
        check(
            &items,
            &["user: hi", &call, &format!("results: f#a: {note}no")],
        );
    }
}

#[test]
fn m_29_a_tool_name_that_providers_refuse_is_made_harmless() {
    for (name, expected) in [
        ("functions.ls -l", "functions_ls_-l"),
        ("", "unknown_tool"),
        ("ü", "_"),
    ] {
        let body = ToolCall::new("a".to_owned(), name.to_owned(), "{}".to_owned());
        let items = [
            user(1, "hi"),
            item(2, &body),
            result(3, 2, "a", "no such tool"),
        ];
        let call = format!("assistant: {expected}#a {{}}");
        check(
            &items,
            &[
                "user: hi",
                &call,
                &format!("results: {expected}#a: no such tool"),
            ],
        );
    }
}

#[test]
fn a_result_that_says_nothing_says_how_the_call_ended() {
    for (status, text) in [
        (ToolResultStatus::Ok, ": [no output]"),
        (ToolResultStatus::Failed, " failed: failed without a word"),
        (ToolResultStatus::Interrupted, " failed: interrupted"),
        (
            ToolResultStatus::Unknown,
            " failed: interrupted: the outcome is not known",
        ),
    ] {
        let content = vec![Content::text(" \n")];
        let body = ToolResult::new(id(2), "a".to_owned(), status, content);
        let items = [user(1, "hi"), call(2, "a"), item(3, &body)];
        let results = format!("results: f#a{text}");
        check(&items, &["user: hi", "assistant: f#a {\"x\":1}", &results]);
    }
}

#[test]
fn m_37_u_008_thoughts_go_back_only_to_their_provider_model_and_account() {
    for (from, back) in [
        (opaque("p", "m", Some("k")), true),
        (opaque("q", "m", Some("k")), false),
        (opaque("p", "n", Some("k")), false),
        (opaque("p", "m", Some("l")), false),
        (opaque("p", "m", None), false),
    ] {
        let items = [
            user(1, "hi"),
            thought(2, Some(from)),
            thought(3, None),
            said(4, "ok"),
        ];
        let thought = if back { "(hm 1) | " } else { "" };
        let expected = format!("user: hi\nassistant: {thought}ok");
        assert_eq!(
            shown(&messages_with(&items, &HashMap::new(), Some("k"))),
            expected
        );
    }
}

#[test]
fn a_thought_alone_is_no_message_and_a_cut_one_is_left_out() {
    let here = || Some(opaque("p", "m", None));
    check(
        &[user(1, "hi"), thought(2, here()), user(3, "go on")],
        &["user: hi", "user: go on"],
    );
    let cut = Reasoning::new("hm".to_owned(), here(), true);
    check(
        &[user(1, "hi"), item(2, &cut), said(3, "ok")],
        &["user: hi", "assistant: ok"],
    );
}

#[test]
fn a_summary_stands_for_all_before_it() {
    let summary = |pos, up_to, text: &str| {
        raw(
            pos,
            "context_summary",
            &json!({ "text": text, "up_to": up_to }),
        )
    };
    let items = |last: Item| {
        [
            user(1, "old"),
            call(2, "a"),
            summary(3, 1, "first"),
            result(4, 2, "a", "1"),
            user(5, "newest"),
            last,
            said(7, "ok"),
        ]
    };
    let wrapped = "user: Summary of the conversation so far:/<summary>/second/</summary>";
    check(
        &items(summary(6, 4, "second")),
        &[wrapped, "user: newest", "assistant: ok"],
    );
    // A summary cannot stand for what came after it.
    check(
        &items(summary(6, u64::MAX, "second")),
        &[wrapped, "assistant: ok"],
    );
    assert!(
        raw(1, "context_summary", &json!({ "text": "", "up_to": 1 }))
            .body::<ContextSummary>()
            .is_some()
    );
}

#[test]
fn what_is_not_said_by_anybody_is_worded_for_the_model() {
    let from = SessionId::from_uuid(Uuid::from_u128(7));
    let text = [{ json!({ "type": "text", "text": "found it" }) }];
    check(
        &[
            raw(
                1,
                "instructions",
                &json!({ "path": "/w/AGENTS.md", "text": "be kind", "bytes": 7 }),
            ),
            raw(
                2,
                "instructions",
                &json!({ "path": "/w/x/AGENTS.md", "text": "be", "bytes": 7 }),
            ),
            raw(3, "skill", &json!({ "name": "pdf", "text": "read it" })),
            raw(
                4,
                "agent_message",
                &json!({ "from": from, "content": text }),
            ),
            item(5, &Interruption::new(InterruptionCause::Requested)),
            item(6, &Interruption::new(InterruptionCause::Shutdown)),
            item(7, &Interruption::new(InterruptionCause::Crash)),
            item(8, &Interruption::new(InterruptionCause::StepLimit)),
            item(9, &Interruption::new(InterruptionCause::RepeatLimit)),
        ],
        &[
            "user: Instructions from /w/AGENTS.md:/<instructions>/be kind/</instructions>",
            "user: Instructions from /w/x/AGENTS.md (the first 2 of 7 bytes):/<instructions>/be/</instructions>",
            "user: Skill pdf:/<skill>/read it/</skill>",
            "user: Message from the agent of session 00000000-0000-0000-0000-000000000007: + found it",
            "user: [interrupted by the user]",
            "user: [interrupted: the runtime was stopped]",
            "user: [interrupted: the runtime ended without notice]",
            "user: [ended: the turn took as many steps as a turn may]",
            "user: [ended: the same call had the same result too often in a row]",
        ],
    );
}

#[test]
fn what_is_for_people_unknown_damaged_or_empty_is_left_out() {
    let model = json!({ "provider": "p", "model": "m" });
    check(
        &[
            user(1, "hi"),
            raw(2, "approval", &json!({ "call": id(1), "state": "pending" })),
            raw(3, "plan", &json!({ "steps": [] })),
            raw(4, "model_change", &json!({ "from": model, "to": model })),
            raw(
                5,
                "model_error",
                &json!({ "model": model, "message": "x", "attempts": 1 }),
            ),
            raw(6, "from_the_future", &json!({ "text": "x" })),
            raw(7, "user_message", &json!({ "text": 7 })),
            raw(8, "tool_call", &json!(null)),
            user(9, ""),
            said(10, " \n"),
            said(11, "ok"),
        ],
        &["user: hi", "assistant: ok"],
    );
}

#[test]
fn large_images_come_from_the_blobs_and_a_missing_one_becomes_a_note() {
    let blob = |number| BlobId::from_uuid(Uuid::from_u128(number));
    let image = |number| Content::Image {
        media_type: "image/png".to_owned(),
        data: ImageData::Blob(BlobRef::new(blob(number), 1, 2, 70_000)),
    };
    let content = vec![image(1), image(2)];
    let result = ToolResult::new(id(2), "a".to_owned(), ToolResultStatus::Ok, content.clone());
    let items = [
        item(1, &UserMessage::new(content, false)),
        call(2, "a"),
        item(3, &result),
    ];
    let blobs = HashMap::from([(blob(1), "AAAA".to_owned())]);
    let images = "<image/png AAAA> + [an image of 70000 bytes that is not available any more]";
    assert_eq!(
        shown(&messages_with(&items, &blobs, None)),
        format!("user: {images}\nassistant: f#a {{\"x\":1}}\nresults: f#a: {images}")
    );
}

#[test]
fn an_item_that_was_written_twice_counts_once() {
    let twice = |pos, text: &str| {
        item_with_id(
            id(1),
            pos,
            &UserMessage::new(vec![Content::text(text)], false),
        )
    };
    check(
        &[twice(1, "hi"), twice(2, "hi again"), said(3, "ok")],
        &["user: hi", "assistant: ok"],
    );
}

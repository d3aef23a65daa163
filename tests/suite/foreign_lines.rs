//! Lines in logs that this version has not written, or cannot read.

use std::fs;
use std::path::Path;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::SubscribeParams;
use openvaala_protocol::rpc::params::session::{ItemsOrder, ItemsParams};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{data_of, fill, item_log, listed, log_line, sandbox_with_model, stop};

/// Bytes that are no UTF-8: a byte that never occurs, half a character, a character that is longer than need be, half of
/// a UTF-16 pair.
const NO_UTF8: [&[u8]; 4] = [b"\xff", b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80"];

#[tokio::test]
async fn r_37_a_line_that_is_no_utf8_costs_only_itself_and_both_directions_agree() {
    for bytes in NO_UTF8 {
        let (sandbox, _model) = sandbox_with_model();
        let journal = fill(&sandbox, 2).await;
        let mut conversations = journal.conversations.keys().copied();
        let (damaged, sound) = (conversations.next().unwrap(), conversations.next().unwrap());
        let log = item_log(&sandbox, damaged);
        let metadata = metadata(&sandbox, damaged);
        let lines = spoil(&log, 1, bytes);
        spoil(&metadata, 1, bytes);
        assert_eq!(listed(&sandbox).await.len(), 2, "I-5");

        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let expected: Vec<_> = (1..=lines).map(|seq| (seq, seq != 2)).collect();
        let mut backward = numbers(&watcher, damaged, ItemsOrder::Descending).await;
        backward.reverse();
        assert_eq!(
            numbers(&watcher, damaged, ItemsOrder::Ascending).await,
            expected,
            "I-4"
        );
        assert_eq!(backward, expected, "I-4");
        for conversation_id in [damaged, sound] {
            // Not noted in the journal, which takes no damaged entries.
            let params = SubscribeParams {
                conversation_id,
                cursor: None,
            };
            let watched = watcher.client.call::<method::ConversationSubscribe>(params);
            watched.await.unwrap();
            let turn = watcher.ask(conversation_id, "go on").await;
            assert_eq!(turn.status, TurnStatus::Completed, "I-5");
        }
        stop(server).await;
        let after = fs::read(&log).unwrap();
        assert!(
            after.windows(bytes.len()).any(|part| part == bytes),
            "D-2: a middle line is never cut"
        );
    }
}

#[tokio::test]
async fn r_52_kinds_and_fields_of_another_version_are_kept_as_they_are_and_block_nothing() {
    let (sandbox, mut model) = sandbox_with_model();
    let journal = fill(&sandbox, 1).await;
    let conversation = *journal.conversations.keys().next().unwrap();
    let (log, metadata) = (
        item_log(&sandbox, conversation),
        metadata(&sandbox, conversation),
    );
    let known = data_of(&log)
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    let message = known
        .iter()
        .find(|data| data.contains("\"assistant_message\""))
        .unwrap();
    let more = r#"{"later":{"a":[1,18446744073709551617]},"#;
    let foreign = [
        foreign_item(
            "01",
            "hologram",
            r#"{"depth":3,"huge":123456789012345678901234567890}"#,
        ),
        foreign_item("02", "hologram", "null"),
        // A known kind whose body is another one now, and one with more in it everywhere.
        foreign_item("03", "assistant_message", r#"{"lines":["a","b"]}"#),
        foreign_item("04", "tool_result", "17"),
        message
            .replacen('{', more, 1)
            .replace("\"body\":{", &format!("\"body\":{more}")),
    ];
    let id = "01890000-0000-7000-8000-0000000000ff";
    let states = [
        format!(r#"{{"format":1,"kind":"hologram","id":"{id}","state":{{"x":1}}}}"#),
        format!(r#"{{"format":1,"kind":"hologram","id":"{id}","deleted":true,"deleted_at":1}}"#),
    ];
    append(&log, &foreign);
    append(&metadata, &states);
    let (items_before, states_before) = (fs::read(&log).unwrap(), fs::read(&metadata).unwrap());

    assert_eq!(listed(&sandbox).await.len(), 1);
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let shown = watcher.items(conversation).await;
    let shown: Vec<&str> = shown.iter().map(|item| item.raw().get()).collect();
    assert_eq!(shown.len(), known.len() + foreign.len());
    assert_eq!(shown[known.len()..], foreign.each_ref().map(String::as_str));
    watcher.subscribe(conversation, None).await;
    for text in ["go on", "look again"] {
        let turn = watcher.ask(conversation, text).await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    }
    model.expect_sound_requests();
    stop(server).await;
    let _ = sandbox.run(&["reindex"]).expect_code(0);
    sandbox.stop_server();
    // Nothing of it was written anew.
    assert!(fs::read(&log).unwrap().starts_with(&items_before));
    assert!(fs::read(&metadata).unwrap().starts_with(&states_before));
    assert_eq!(listed(&sandbox).await.len(), 1);
}

fn metadata(sandbox: &Sandbox, conversation: ConversationId) -> std::path::PathBuf {
    let folder = sandbox
        .data()
        .join("conversations")
        .join(conversation.to_string());
    folder.join("metadata.jsonl")
}

/// An item as another version may write it.
fn foreign_item(id: &str, kind: &str, body: &str) -> String {
    format!(
        r#"{{"id":"01890000-0000-7000-8000-0000000000{id}","kind":"{kind}","turn":null,"pos":9{id},"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z","body":{body}}}"#
    )
}

/// Appends sound lines to a log.
fn append(log: &Path, data: &[String]) {
    let mut text = fs::read_to_string(log).unwrap();
    for data in data {
        let seq = text.lines().count() + 1;
        text += &log_line(seq, 1_796_000_000_000, data);
    }
    fs::write(log, text).unwrap();
}

/// Puts bytes into the middle of a line of a log, counted from 0; returns how many lines it has.
fn spoil(log: &Path, line: usize, bytes: &[u8]) -> u64 {
    let text = fs::read(log).unwrap();
    let mut lines: Vec<Vec<u8>> = text
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    assert!(lines.len() > line + 1);
    let middle = lines[line].len() - 10;
    lines[line].splice(middle..middle, bytes.iter().copied());
    fs::write(log, lines.concat()).unwrap();
    lines.len() as u64
}

/// The numbers of all entries and whether they could be read.
async fn numbers(
    watcher: &Watcher,
    conversation_id: ConversationId,
    order: ItemsOrder,
) -> Vec<(u64, bool)> {
    let params = ItemsParams {
        conversation_id,
        session_id: None,
        order,
        cursor: 0,
        limit: Some(1_000),
    };
    let page = watcher.client.call::<method::SessionItems>(params).await;
    let entries = page.unwrap().items.into_iter().map(|entry| match entry {
        Entry::Item { seq, .. } => (seq, true),
        Entry::Damaged { seq, .. } => (seq, false),
        other => panic!("{other:?}"),
    });
    entries.collect()
}

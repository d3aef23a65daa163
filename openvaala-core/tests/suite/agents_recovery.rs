//! What agents have said is told after the runtime has ended badly.

use std::fs;
use std::path::Path;

use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::id::SessionId;
use openvaala_core::protocol::item::AgentMessage;
use openvaala_core::{Input, NewConversation};
use pretty_assertions::assert_eq;
use serde_json::Value;

use super::cast::{Cast, at_rest, background, until};
use super::script::{Step, builder, items};

/// Copies a conversation as a kill leaves it that meets the commit which ends a turn of that session, after its first line:
/// the turn has its end, and the session's own state of it, with the report, is missing.
fn cut_after_turn_end(from: &Path, to: &Path, session: SessionId) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let path = to.join("metadata.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let of_session = |line: &str, kind: &str, name: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let (data, state) = (&line["data"], &line["data"]["state"]);
        let ended = kind != "turn" || !state["ended_at"].is_null();
        data["kind"] == kind && state[name] == session.to_string() && ended
    };
    let end = lines
        .iter()
        .rposition(|line| of_session(line, "turn", "session_id"));
    let (kept, lost) = lines.split_at(end.unwrap() + 1);
    assert!(of_session(lost[0], "session", "id"), "{}", lost[0]);
    fs::write(&path, kept.concat()).unwrap();
}

#[tokio::test]
async fn a_report_is_told_though_the_state_that_had_it_was_cut_off_behind_the_end_of_its_turn() {
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![Step::Call(vec![background("a")]), Step::Stall("I think")],
        ),
        ("main/a", vec![Step::Say("a is done")]),
    ]);
    let runtime = builder(cast).data_dir(before.path()).build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let sessions = until(&conversation, &mut events, |all| !all[0].pending.is_empty()).await;
    let id = conversation.id();
    let [from, to] = [&before, &after].map(|data| data.path().join(format!("conversations/{id}")));
    cut_after_turn_end(&from, &to, sessions[1].id);

    let (cast, _requests) = Cast::new([]);
    let runtime = builder(cast).data_dir(after.path()).build().await.unwrap();
    let conversation = runtime.open(id).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go on")).await.unwrap();
    until(&conversation, &mut events, at_rest).await;
    let items = items(&conversation).await;
    let messages = items.iter().filter_map(|item| item.body::<AgentMessage>());
    let messages = messages.map(Result::unwrap);
    let messages: Vec<_> = messages
        .map(|message| (message.path, message.ended, joined_text(&message.content)))
        .collect();
    let report = (
        Some("main/a".to_owned()),
        Some(TurnStatus::Completed),
        "a is done".to_owned(),
    );
    assert_eq!(messages, [report]);
}

//! What several suites need.

use std::fs;
use std::path::Path;

use openvaala_protocol::id::ConversationId;
use openvaala_tests::running::Outcome;
use serde_json::Value;

/// The conversation that an `exec` says it has made: its last line on stderr names the command to see it again.
#[track_caller]
pub(crate) fn conversation_of(outcome: &Outcome) -> ConversationId {
    let words = outcome.stderr.split_whitespace().rev();
    let mut ids = words.filter_map(|word| word.trim_matches('`').parse().ok());
    ids.next()
        .unwrap_or_else(|| panic!("no conversation id on stderr:\n{}", outcome.stderr))
}

/// The items in the log of a conversation's only session, oldest first.
#[track_caller]
pub(crate) fn logged_items(conversation: &Path) -> Vec<Value> {
    let entries = fs::read_dir(conversation).expect("the conversation is on disk");
    let mut sessions = entries.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".jsonl") && name != "metadata.jsonl" && !name.ends_with(".blobs.jsonl")
    });
    let session = sessions.next().expect("there is a session");
    assert_eq!(sessions.next(), None);
    data_of(&session)
}

/// The payloads of a stream.
#[track_caller]
pub(crate) fn data_of(stream: &Path) -> Vec<Value> {
    let text = fs::read_to_string(stream).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["data"].clone()).collect()
}

/// The items of one kind.
pub(crate) fn of_kind<'a>(items: &'a [Value], kind: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| item["kind"] == kind).collect()
}

/// The text that the model sees of a tool result.
pub(crate) fn result_text(item: &Value) -> String {
    let pieces = item["body"]["content"].as_array().unwrap().iter();
    pieces.filter_map(|piece| piece["text"].as_str()).collect()
}

/// Lines of JSON, read.
#[track_caller]
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

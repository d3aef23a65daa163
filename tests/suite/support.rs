//! What several suites need.

use std::fs;
use std::path::{Path, PathBuf};

use openvaala_protocol::conversation::{Conversation, TurnStatus};
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::server::ReindexParams;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::journal::Journal;
use openvaala_tests::running::Outcome;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::Value;

/// A model that reads `README.md` first when it is told to look, and else says what it heard.
pub(crate) fn looks_or_repeats(asked: &Asked) -> Answer {
    let text = asked.last_user();
    if text.starts_with("look") && asked.results().is_empty() {
        return Answer::tool("call_1", "read_file", r#"{"path":"README.md"}"#);
    }
    let heard = text.chars().take(40).collect::<String>();
    Answer::text(&format!("heard: {heard}"))
}

/// A sandbox with such a model and something to look at.
pub(crate) fn sandbox_with_model() -> (Sandbox, FakeModel) {
    let model = FakeModel::start(looks_or_repeats);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    sandbox.write_project("README.md", "# Paper plane\n");
    (sandbox, model)
}

/// After a fault: a fresh server finds all that was acknowledged (I-1 to I-5), runs nothing any more (I-7), lists what is
/// there and nothing else (I-6), and each conversation goes on.
pub(crate) async fn expect_recovered(sandbox: &Sandbox, journal: Journal) -> Journal {
    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
    let listed = watcher.list().await.expect("the server lists");
    let mut listed: Vec<_> = listed.iter().map(|one| one.id).collect();
    listed.sort();
    assert_eq!(listed, conversations_on_disk(sandbox), "I-6");
    let known: Vec<_> = watcher.journal.conversations.keys().copied().collect();
    for conversation in known {
        if watcher.journal.conversations[&conversation].is_promised() {
            // What is told again is compared with what was told before (I-1).
            watcher.subscribe(conversation, None).await;
            let turn = watcher.ask(conversation, "go on").await;
            assert_eq!(turn.status, TurnStatus::Completed, "I-7: {turn:?}");
        }
    }
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
    watcher.journal
}

/// Fills a data directory with conversations of one turn each and stops the server.
pub(crate) async fn fill(sandbox: &Sandbox, conversations: usize) -> Journal {
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    for n in 0..conversations {
        let conversation = watcher.create(&sandbox.project()).await;
        let turn = watcher.ask(conversation, &format!("look at {n}")).await;
        assert_eq!(turn.status, TurnStatus::Completed);
    }
    stop(server).await;
    watcher.journal
}

/// What a fresh server lists.
pub(crate) async fn listed(sandbox: &Sandbox) -> Vec<Conversation> {
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let listed = watcher.list().await.expect("the server lists");
    stop(server).await;
    listed
}

/// I-6: the index says what one says that is made anew from the logs.
pub(crate) async fn expect_index_follows(watcher: &Watcher) {
    let before = watcher.list().await.expect("the server lists");
    let reindexed = watcher
        .client
        .call::<method::ServerReindex>(ReindexParams {});
    assert_eq!(
        reindexed.await.expect("it reindexes").damaged,
        Vec::<String>::new()
    );
    assert_eq!(
        watcher.list().await.expect("the server lists"),
        before,
        "I-6"
    );
}

/// The log of the items of a conversation.
#[track_caller]
pub(crate) fn item_log(sandbox: &Sandbox, conversation: ConversationId) -> PathBuf {
    let folder = sandbox
        .data()
        .join("conversations")
        .join(conversation.to_string());
    let files = fs::read_dir(folder).expect("the conversation is on disk");
    let mut files = files.map(|file| file.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") && name != "metadata.jsonl" && !name.ends_with(".blobs.jsonl")
    });
    files.next().expect("there is a session")
}

/// Ends a server in good order.
pub(crate) async fn stop(server: Server) {
    let stopped = tokio::task::spawn_blocking(|| server.terminate()).await;
    let _ = stopped.expect("the server ends").expect_code(0);
}

/// The conversations of a sandbox that have a log with something in it: a kill between making the file and writing to it
/// leaves an empty one, of a conversation that there never was.
pub(crate) fn conversations_on_disk(sandbox: &Sandbox) -> Vec<ConversationId> {
    let folders = sandbox.conversations().into_iter();
    let has_line = |folder: &PathBuf| {
        let log = fs::read(folder.join("metadata.jsonl"));
        log.is_ok_and(|log| log.contains(&b'\n'))
    };
    let logged = folders.filter(has_line);
    logged.map(|folder| conversation_in(&folder)).collect()
}

/// The conversation whose directory that is.
#[track_caller]
pub(crate) fn conversation_in(folder: &Path) -> ConversationId {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok())
        .unwrap_or_else(|| panic!("{} is no conversation", folder.display()))
}

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

/// A line of a log with that payload and a checksum that is right.
pub(crate) fn log_line(seq: usize, time: i64, data: &str) -> String {
    let crc = crc32c::crc32c(format!("{seq},{time},{data}").as_bytes());
    format!("{{\"seq\":{seq},\"time\":{time},\"crc\":\"{crc:08x}\",\"data\":{data}}}\n")
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

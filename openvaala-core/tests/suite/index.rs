//! The index is never the truth: whatever is wrong with it, lists become right again by themselves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openvaala_core::protocol::conversation::{Conversation, ConversationStatus};
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_core::storage::{LogStorage, NewEntry, RecordStorage, StreamKey};
use openvaala_core::{
    ConversationHandle, Input, ListConversations, NewConversation, ReindexReport, Runtime,
    RuntimeBuilder, RuntimeError,
};
use pretty_assertions::assert_eq;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::records::Flaky;
use super::recovery::reopen;
use super::script::{Script, builder, items, turn_end};

/// A data directory with a runtime in it that can be started again.
struct Home {
    data: tempfile::TempDir,
    runtime: Option<Runtime>,
}

impl Home {
    async fn new() -> Self {
        let mut home = Self {
            data: tempfile::tempdir().unwrap(),
            runtime: None,
        };
        home.start().await;
        home
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    async fn start(&mut self) {
        let (script, _requests) = Script::new(Vec::new());
        self.runtime = Some(reopen(script, self.data.path()).await);
    }

    async fn stop(&mut self) {
        self.runtime.take().unwrap().shutdown().await;
        // The lock tells that the last of it is gone.
        drop(open_when_free(self.data.path()).await);
    }

    async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    async fn list(&self) -> Vec<Conversation> {
        list(self.runtime()).await
    }

    fn dir(&self, id: ConversationId) -> PathBuf {
        self.data.path().join(format!("conversations/{id}"))
    }

    fn metadata(&self, id: ConversationId) -> PathBuf {
        self.dir(id).join("metadata.jsonl")
    }

    fn database(&self) -> PathBuf {
        self.data.path().join("metadata.db")
    }

    fn remove_index(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.data.path().join(format!("metadata.db{suffix}")));
        }
    }

    /// Changes the lines of a conversation's metadata.
    fn change_metadata(&self, id: ConversationId, change: impl FnOnce(&mut Vec<String>)) {
        let text = fs::read_to_string(self.metadata(id)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        fs::write(self.metadata(id), lines.join("\n") + "\n").unwrap();
    }
}

/// A directory is free a moment after the last handle of its runtime is gone.
async fn open_when_free(data: &Path) -> FileStorage {
    loop {
        match FileStorage::open(FileOptions::new(data)) {
            Ok(storage) => return storage,
            Err(openvaala_core::storage::Error::Locked { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error:?}"),
        }
    }
}

async fn list(runtime: &Runtime) -> Vec<Conversation> {
    loop {
        let options = ListConversations {
            limit: 1_000,
            ..ListConversations::default()
        };
        let page = runtime.list(options).await.unwrap();
        let mut listed = page.conversations.iter();
        // The end of a turn is told before its row is on its way.
        let runs = listed.any(|it| it.status == ConversationStatus::Running);
        if !page.stale && !runs {
            return page.conversations;
        }
    }
}

async fn say(runtime: &Runtime, text: &str) -> ConversationHandle {
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    say_more(&conversation, text).await;
    conversation
}

async fn say_more(conversation: &ConversationHandle, text: &str) {
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text(text)).await.unwrap();
    turn_end(&mut events).await;
}

async fn reindex(runtime: &Runtime) -> ReindexReport {
    let (progress, _told) = mpsc::channel(1);
    runtime.reindex(progress).await.unwrap()
}

fn ids(conversations: &[Conversation]) -> Vec<ConversationId> {
    let mut ids: Vec<_> = conversations.iter().map(|it| it.id).collect();
    ids.sort();
    ids
}

fn find(conversations: &[Conversation], id: ConversationId) -> &Conversation {
    conversations.iter().find(|it| it.id == id).unwrap()
}

/// Makes the payload of a line another one than its checksum says.
fn damage(line: &mut String) {
    *line = line.replacen("\"format\":1", "\"format\":0", 1);
}

#[tokio::test]
async fn x_02_u_016_an_index_of_any_bytes_is_set_aside_and_made_anew() {
    let mut home = Home::new().await;
    for text in ["one", "two", "three"] {
        say(home.runtime(), text).await;
    }
    let before = home.list().await;
    let garbage: [&[u8]; 4] = [
        b"",
        b"no database at all",
        &[0; 5_000],
        b"SQLite format 3\0!",
    ];
    for bytes in garbage {
        home.stop().await;
        home.remove_index();
        fs::write(home.database(), bytes).unwrap();
        home.start().await;
        assert_eq!(home.list().await, before);
    }
    assert!(home.data.path().join("metadata.db.corrupt-1").exists());
}

#[tokio::test]
async fn x_02_an_index_that_is_damaged_while_it_serves_heals_without_a_restart() {
    let home = Home::new().await;
    let conversation = say(home.runtime(), "one").await;
    assert_eq!(home.list().await.len(), 1);
    for suffix in ["", "-wal"] {
        let path = home.data.path().join(format!("metadata.db{suffix}"));
        let length = fs::metadata(&path).map_or(0, |it| it.len() as usize);
        // In place: SQLite has the file open.
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, &vec![0xa5; length]).unwrap();
    }
    say_more(&conversation, "two").await;
    say(home.runtime(), "three").await;
    let listed = home.list().await;
    assert_eq!(listed.len(), 2);
    // I-6: what has healed is what a new index has.
    reindex(home.runtime()).await;
    assert_eq!(home.list().await, listed);
}

#[tokio::test]
async fn u_006_x_01_what_the_index_lacks_is_opened_from_the_log_and_is_in_it_from_then_on() {
    let mut home = Home::new().await;
    let id = say(home.runtime(), "one").await.id();
    let before = home.list().await;
    home.restart().await;
    assert_eq!(home.list().await, before);
    let options = SqliteOptions::file(home.database()).namespaces(RuntimeBuilder::namespaces());
    let records = SqliteDatabase::open(options).unwrap().records();
    assert!(
        records
            .delete("conversation", &id.to_string())
            .await
            .unwrap()
    );
    assert_eq!(home.list().await, []);
    home.runtime().open(id).await.unwrap();
    assert_eq!(home.list().await, before);
    // The whole file goes while it is used.
    drop(records);
    home.remove_index();
    home.runtime().open(id).await.unwrap();
    home.restart().await;
    assert_eq!(home.list().await, before);
}

#[tokio::test]
async fn u_007_rows_without_a_log_are_dropped_at_the_check_and_at_opening() {
    let mut home = Home::new().await;
    let mut all = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        all.push(say(home.runtime(), text).await.id());
    }
    home.stop().await;
    for id in &all[..3] {
        fs::remove_dir_all(home.dir(*id)).unwrap();
    }
    home.start().await;
    assert_eq!(ids(&home.list().await), all[3..]);
    fs::remove_dir_all(home.dir(all[3])).unwrap();
    let error = home.runtime().open(all[3]).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::ConversationNotFound { id } if id == all[3]),
        "{error:?}"
    );
    let listed = home.list().await;
    assert_eq!(ids(&listed), all[4..]);
    assert_eq!(reindex(home.runtime()).await.conversations, 1);
    assert_eq!(home.list().await, listed);
}

#[tokio::test]
async fn u_021_starting_and_opening_changes_nothing_in_the_list() {
    let mut home = Home::new().await;
    for text in ["one", "two", "three"] {
        say(home.runtime(), text).await;
    }
    let before = serde_json::to_string(&home.list().await).unwrap();
    for _ in 0..5 {
        home.restart().await;
        for id in ids(&home.list().await) {
            home.runtime().open(id).await.unwrap();
        }
        let now = serde_json::to_string(&home.list().await).unwrap();
        assert_eq!(now, before);
    }
}

#[tokio::test]
async fn u_012_a_first_message_of_5_mb_is_listed_and_resumed() {
    let mut home = Home::new().await;
    let id = say(home.runtime(), &"word ".repeat(1_000_000)).await.id();
    let before = home.list().await;
    home.stop().await;
    home.remove_index();
    home.start().await;
    assert_eq!(home.list().await, before);
    let conversation = home.runtime().open(id).await.unwrap();
    say_more(&conversation, "and on").await;
    assert_eq!(items(&conversation).await.len(), 4);
}

#[tokio::test]
async fn x_04_writes_that_never_reached_the_index_are_caught_up_at_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let logs: Arc<dyn LogStorage> =
        Arc::new(FileStorage::open(FileOptions::new(data.path())).unwrap());
    let records = Flaky::new();
    let start = async || {
        let (script, _requests) = Script::new(Vec::new());
        let runtime = builder(script)
            .logs(Arc::clone(&logs))
            .records(records.clone());
        runtime.build().await.unwrap()
    };
    let runtime = start().await;
    let known = say(&runtime, "known").await.id();
    assert_eq!(ids(&list(&runtime).await), [known]);
    records.lose_writes(true);
    let conversation = runtime.open(known).await.unwrap();
    say_more(&conversation, "more").await;
    let unknown = say(&runtime, "unknown").await.id();
    runtime.shutdown().await;
    drop((runtime, conversation));
    records.lose_writes(false);
    let runtime = start().await;
    let listed = list(&runtime).await;
    assert_eq!(ids(&listed), [known, unknown]);
    reindex(&runtime).await;
    assert_eq!(list(&runtime).await, listed);
}

#[tokio::test]
async fn x_05_an_index_that_is_newer_than_the_log_follows_the_log() {
    let mut home = Home::new().await;
    let kept = say(home.runtime(), "kept").await.id();
    home.restart().await;
    let before = home.list().await;
    let mut saved = Vec::new();
    for entry in fs::read_dir(home.dir(kept)).unwrap() {
        let path = entry.unwrap().path();
        saved.push((path.clone(), fs::read(path).unwrap()));
    }
    let conversation = home.runtime().open(kept).await.unwrap();
    say_more(&conversation, "later").await;
    let gone = say(home.runtime(), "later still").await.id();
    drop(conversation);
    home.stop().await;
    for (path, bytes) in saved {
        fs::write(path, bytes).unwrap();
    }
    fs::remove_dir_all(home.dir(gone)).unwrap();
    home.start().await;
    assert_eq!(home.list().await, before);
}

#[tokio::test]
async fn x_08_a_full_disk_under_the_index_costs_no_append_and_passes() {
    let data = tempfile::tempdir().unwrap();
    let logs = FileStorage::open(FileOptions::new(data.path())).unwrap();
    let records = Flaky::new();
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script)
        .logs(Arc::new(logs))
        .records(records.clone());
    let runtime = runtime.build().await.unwrap();
    runtime.caught_up().await;
    records.be_full(true);
    // I-1: the log has it.
    let conversation = say(&runtime, "acknowledged").await;
    assert_eq!(items(&conversation).await.len(), 2);
    let page = runtime.list(ListConversations::default()).await.unwrap();
    assert_eq!((page.conversations, page.stale), (Vec::new(), true));
    let degraded = runtime.status().await.unwrap().degraded;
    assert_eq!(degraded.len(), 1, "{degraded:?}");
    records.be_full(false);
    assert_eq!(ids(&list(&runtime).await), [conversation.id()]);
    assert_eq!(
        runtime.status().await.unwrap().degraded,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn x_07_a_lock_of_another_program_stops_neither_appends_nor_lists() {
    let home = Home::new().await;
    let first = say(home.runtime(), "first").await.id();
    assert_eq!(ids(&home.list().await), [first]);
    let other = rusqlite::Connection::open(home.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let second = say(home.runtime(), "second").await.id();
    let options = ListConversations::default;
    let page = home.runtime().list(options()).await.unwrap();
    assert_eq!((ids(&page.conversations), page.stale), (vec![first], true));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(ids(&home.list().await), [first, second]);
}

#[tokio::test]
async fn x_07_a_start_while_another_program_has_the_lock_serves_from_memory() {
    let mut home = Home::new().await;
    let id = say(home.runtime(), "first").await.id();
    let before = home.list().await;
    home.stop().await;
    let other = rusqlite::Connection::open(home.database()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    home.start().await;
    let conversation = home.runtime().open(id).await.unwrap();
    assert_eq!(home.list().await, before);
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    say_more(&conversation, "more").await;
    reindex(home.runtime()).await;
    let listed = home.list().await;
    assert_eq!(listed.len(), 1);
    assert_eq!(
        home.runtime().status().await.unwrap().degraded,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn an_index_that_cannot_be_opened_lives_in_memory_and_says_so() {
    let mut home = Home::new().await;
    say(home.runtime(), "one").await;
    let before = home.list().await;
    home.stop().await;
    home.remove_index();
    // A link to itself leads nowhere.
    symlink(home.database(), home.database()).unwrap();
    home.start().await;
    assert_eq!(home.list().await, before);
    let degraded = home.runtime().status().await.unwrap().degraded;
    let place = home.database().display().to_string();
    assert!(
        degraded.len() == 1 && degraded[0].contains(&place),
        "{degraded:?}"
    );
    fs::remove_file(home.database()).unwrap();
    reindex(home.runtime()).await;
    assert_eq!(home.list().await, before);
    assert!(home.database().is_file());
    assert_eq!(
        home.runtime().status().await.unwrap().degraded,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn what_has_no_message_yet_is_in_memory_and_gets_no_row_from_a_reindex() {
    let home = Home::new().await;
    let conversation = home
        .runtime()
        .create(NewConversation::default())
        .await
        .unwrap();
    reindex(home.runtime()).await;
    assert_eq!(home.list().await, []);
    say_more(&conversation, "hello").await;
    let listed = home.list().await;
    let ids: Vec<_> = listed.iter().map(|one| one.id).collect();
    assert_eq!(ids, [conversation.id()]);
}

#[tokio::test]
async fn x_09_a_reindex_can_be_repeated_and_interrupted() {
    let mut home = Home::new().await;
    for text in ["one", "two", "three"] {
        say(home.runtime(), text).await;
    }
    let before = home.list().await;
    for _ in 0..2 {
        assert_eq!(reindex(home.runtime()).await.conversations, 3);
        assert_eq!(home.list().await, before);
    }
    assert!(!home.data.path().join("metadata.db.new").exists());
    home.stop().await;
    fs::write(home.data.path().join("metadata.db.new"), "half of one").unwrap();
    home.start().await;
    assert_eq!(home.list().await, before);
    let (progress, mut told) = mpsc::channel(1);
    let runtime = home.runtime().clone();
    let running = tokio::spawn(async move { runtime.reindex(progress).await });
    told.recv().await.unwrap();
    home.stop_now().await;
    let _ = running.await;
    home.start().await;
    assert_eq!(home.list().await, before);
    assert_eq!(reindex(home.runtime()).await.damaged, Vec::<String>::new());
    assert_eq!(home.list().await, before);
}

impl Home {
    /// Ends the runtime in the middle of whatever it does.
    async fn stop_now(&mut self) {
        self.runtime.take().unwrap().shutdown().await;
    }
}

#[tokio::test]
async fn what_changes_during_a_reindex_is_in_the_index_after_it() {
    let home = Home::new().await;
    let mut open = Vec::new();
    for text in ["one", "two", "three", "four"] {
        open.push(say(home.runtime(), text).await);
    }
    let runtime = home.runtime().clone();
    let (progress, _told) = mpsc::channel(1);
    let running = tokio::spawn(async move { runtime.reindex(progress).await });
    for conversation in &open {
        say_more(conversation, "more").await;
    }
    open.push(say(home.runtime(), "five").await);
    running.await.unwrap().unwrap();
    let listed = home.list().await;
    assert_eq!(listed.len(), 5);
    reindex(home.runtime()).await;
    assert_eq!(home.list().await, listed);
}

#[tokio::test]
async fn x_10_u_003_damaged_conversations_are_named_and_listed_among_the_others() {
    let mut home = Home::new().await;
    let mut all = Vec::new();
    for n in 0..8 {
        all.push(say(home.runtime(), &format!("number {n}")).await.id());
    }
    let before = home.list().await;
    home.stop().await;
    // Of the first two numbers are mixed up, of the second no line is left whole, of the third one line is no JSON.
    home.change_metadata(all[0], |lines| {
        let swapped = lines[2].replacen("\"seq\":3", "\"seq\":4", 1);
        lines[3] = lines[3].replacen("\"seq\":4", "\"seq\":3", 1);
        lines[2] = swapped;
    });
    home.change_metadata(all[1], |lines| lines.iter_mut().for_each(damage));
    home.change_metadata(all[2], |lines| lines[2] = "#".repeat(40));
    home.start().await;
    let listed = home.list().await;
    assert_eq!(ids(&listed), all);
    for id in &all[..3] {
        assert!(find(&listed, *id).damaged.is_some(), "{id}");
    }
    // I-5: the others are as ever.
    for id in &all[3..] {
        assert_eq!(find(&listed, *id), find(&before, *id));
    }
    let report = reindex(home.runtime()).await;
    assert_eq!((report.conversations, report.damaged.len()), (8, 3));
    for id in &all[..3] {
        let named = |line: &String| line.contains(&id.to_string());
        assert!(report.damaged.iter().any(named), "{report:?}");
    }
    assert_eq!(home.list().await, listed);
    // Opened they are as listed.
    for id in &all[..3] {
        home.runtime().open(*id).await.unwrap();
    }
    assert_eq!(home.list().await, listed);
}

#[tokio::test]
async fn r_57_a_damaged_last_state_falls_back_to_the_one_before() {
    let mut home = Home::new().await;
    let id = say(home.runtime(), "the title").await.id();
    home.stop().await;
    let mut titled = None;
    home.change_metadata(id, |lines| {
        let of_itself = |line: &String| line.contains("\"kind\":\"conversation\"");
        let last = lines.iter().rposition(of_itself).unwrap();
        assert!(lines[last].contains("the title"));
        damage(&mut lines[last]);
        titled = Some(last);
    });
    home.start().await;
    let listed = home.list().await;
    assert_eq!((listed[0].id, listed[0].title.as_deref()), (id, None));
    let damaged = listed[0].damaged.clone().unwrap();
    let entry = format!("metadata entry {}", titled.unwrap() + 1);
    assert!(damaged.contains(&entry), "{damaged}");
    let conversation = home.runtime().open(id).await.unwrap();
    assert_eq!(
        conversation.details().await.unwrap().conversation.damaged,
        Some(damaged)
    );
    assert_eq!(items(&conversation).await.len(), 2);
}

#[tokio::test]
async fn what_is_left_of_a_conversation_without_a_readable_state_can_be_opened_and_goes_on() {
    goes_on_without_metadata(false).await;
    goes_on_without_metadata(true).await;
}

async fn goes_on_without_metadata(is_missing: bool) {
    let mut home = Home::new().await;
    let conversation = say(home.runtime(), "hello").await;
    let (id, root) = (conversation.id(), home.list().await[0].root_session);
    let before = items(&conversation).await;
    drop(conversation);
    home.stop().await;
    home.change_metadata(id, |lines| lines.iter_mut().for_each(damage));
    if is_missing {
        fs::remove_file(home.metadata(id)).unwrap();
    }
    home.start().await;
    let listed = home.list().await;
    assert_eq!((listed.len(), listed[0].root_session), (1, root));
    let made = id.as_uuid().get_timestamp().unwrap().to_unix();
    let made = made.0 as i64 * 1_000 + i64::from(made.1 / 1_000_000);
    assert_eq!(listed[0].created_at.as_millis(), made);
    let conversation = home.runtime().open(id).await.unwrap();
    assert_eq!(items(&conversation).await, before);
    say_more(&conversation, "and on").await;
    assert_eq!(items(&conversation).await.len(), before.len() + 2);
    let listed = home.list().await;
    drop(conversation);
    home.restart().await;
    assert_eq!(home.list().await, listed);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[tokio::test]
async fn r_51_a_directory_that_comes_from_elsewhere_is_there_at_once_when_it_is_opened() {
    let (here, there) = (Home::new().await, Home::new().await);
    let elsewhere = say(there.runtime(), "from elsewhere").await;
    let id = elsewhere.id();
    copy(&there.dir(id), &here.dir(id));
    let opened = here.runtime().open(id).await.unwrap();
    assert_eq!(items(&opened).await, items(&elsewhere).await);
    assert_eq!(here.list().await, there.list().await);
}

#[tokio::test]
async fn r_51_a_directory_with_the_name_of_another_conversation_is_refused_and_listed_as_damaged() {
    let mut home = Home::new().await;
    let own = say(home.runtime(), "mine").await.id();
    let before = home.list().await;
    home.stop().await;
    let other: ConversationId = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap();
    copy(&home.dir(own), &home.dir(other));
    home.start().await;
    let listed = home.list().await;
    assert_eq!(ids(&listed), [other, own]);
    assert_eq!(find(&listed, own), &before[0]);
    let damaged = find(&listed, other).damaged.clone().unwrap();
    assert!(damaged.contains(&own.to_string()), "{damaged}");
    let error = home.runtime().open(other).await.unwrap_err();
    assert!(error.to_string().contains(&own.to_string()), "{error}");
    assert_eq!(home.list().await, listed);
}

#[tokio::test]
async fn r_53_what_a_newer_version_has_written_is_listed_and_never_changed() {
    let mut home = Home::new().await;
    let id = say(home.runtime(), "old").await.id();
    home.stop().await;
    let storage = FileStorage::open(FileOptions::new(home.data.path())).unwrap();
    let text = format!(r#"{{"format":2,"kind":"conversation","id":"{id}","state":{{"new":1}}}}"#);
    let key = StreamKey {
        path: format!("conversations/{id}").parse().unwrap(),
        stream: "metadata".parse().unwrap(),
    };
    let entry = NewEntry::new(0, RawValue::from_string(text).unwrap());
    storage.append(&key, vec![entry]).await.unwrap();
    drop(storage);
    let before = fs::read(home.metadata(id)).unwrap();
    home.start().await;
    let listed = home.list().await;
    assert_eq!(listed[0].title.as_deref(), Some("old"));
    let damaged = listed[0].damaged.clone().unwrap();
    assert!(damaged.contains("newer version"), "{damaged}");
    let error = home.runtime().open(id).await.unwrap_err();
    assert!(error.to_string().contains("newer version"), "{error}");
    home.restart().await;
    assert_eq!(home.list().await, listed);
    assert_eq!(fs::read(home.metadata(id)).unwrap(), before);
}

#[derive(Clone, Debug)]
enum Move {
    Create(String),
    Say(usize),
    Open(usize),
    Restart,
    RemoveIndex,
    SpoilIndex,
    Reindex,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        // Blanks alone are no input.
        3 => "[a-zA-Zäß%_'\"\u{1f600}][a-zA-Zäß%_'\" \u{1f600}]{0,19}".prop_map(Move::Create),
        3 => any::<usize>().prop_map(Move::Say),
        1 => any::<usize>().prop_map(Move::Open),
        1 => Just(Move::Restart),
        1 => Just(Move::RemoveIndex),
        1 => Just(Move::SpoilIndex),
        1 => Just(Move::Reindex),
    ];
    vec(one, 1..14)
}

async fn play(moves: Vec<Move>) {
    let mut home = Home::new().await;
    let mut all: Vec<ConversationId> = Vec::new();
    for step in moves {
        match step {
            Move::Create(text) => all.push(say(home.runtime(), &text).await.id()),
            Move::Say(n) if !all.is_empty() => {
                let opened = home.runtime().open(all[n % all.len()]).await.unwrap();
                say_more(&opened, "more").await;
            }
            Move::Open(n) if !all.is_empty() => {
                home.runtime().open(all[n % all.len()]).await.unwrap();
            }
            Move::Say(_) | Move::Open(_) => {}
            Move::Restart => home.restart().await,
            Move::RemoveIndex => {
                home.stop().await;
                home.remove_index();
                home.start().await;
            }
            Move::SpoilIndex => {
                home.stop().await;
                fs::write(home.database(), "spoilt").unwrap();
                home.start().await;
            }
            Move::Reindex => assert_eq!(
                reindex(home.runtime()).await.conversations,
                all.len() as u64
            ),
        }
    }
    let listed = home.list().await;
    all.sort();
    assert_eq!(ids(&listed), all);
    home.stop().await;
    home.remove_index();
    home.start().await;
    assert_eq!(home.list().await, listed);
    reindex(home.runtime()).await;
    assert_eq!(home.list().await, listed);
}

/// I-6, with what happens to conversations and to the index in any order.
#[test]
fn x_01_x_02_every_list_is_equal_after_the_index_was_lost() {
    let cases = if std::env::var_os("OPENVAALA_LONG").is_some_and(|it| it == "1") {
        200
    } else {
        8
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    proptest!(config, |(moves in moves())| {
        runtime.block_on(play(moves));
    });
}

//! Deleting conversations, restoring them, and what the trash keeps.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use openvaala_core::environment::Clock;
use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::protocol::time::Timestamp;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogStorage, NewEntry, StreamKey};
use openvaala_core::{
    ConversationHandle, EmptyTrash, FeedEvent, Input, ListConversations, NewConversation, Runtime,
    RuntimeError,
};
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;

use super::interrupting::shown;
use super::script::{Script, Step, bash, builder, items, turn_end};

const DAY: Duration = Duration::from_secs(86_400);

/// A clock that stands until it is set.
#[derive(Debug)]
struct Standing(AtomicI64);

impl Standing {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_800_000_000_000)))
    }

    fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

async fn runtime(data: &Path, steps: Vec<Step>) -> Runtime {
    let (script, _requests) = Script::new(steps);
    builder(script).data_dir(data).build().await.unwrap()
}

/// A conversation in which something was said.
async fn used(runtime: &Runtime, text: &str) -> ConversationHandle {
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text(text)).await.unwrap();
    turn_end(&mut events).await;
    conversation
}

async fn listed(runtime: &Runtime) -> Vec<ConversationId> {
    let page = runtime.list(ListConversations::default()).await.unwrap();
    page.conversations.iter().map(|it| it.id).collect()
}

async fn trashed(runtime: &Runtime) -> Vec<ConversationId> {
    let trash = runtime.trash().await.unwrap();
    trash.iter().map(|it| it.id).collect()
}

/// Every file of a directory with its bytes, but for the index.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "jsonl") {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

#[tokio::test]
async fn a_deleted_conversation_lies_in_the_trash_and_comes_back_with_everything_as_it_was() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path(), vec![Step::Say("hello there")]).await;
    let conversation = used(&runtime, "good morning").await;
    let other = used(&runtime, "somebody else").await;
    let id = conversation.id();
    let (before, said) = (
        conversation.details().await.unwrap(),
        items(&conversation).await,
    );
    let deleted = runtime.delete_conversation(id).await.unwrap();
    assert!(deleted.in_trash);
    assert_eq!(listed(&runtime).await, [other.id()]);
    let trash = runtime.trash().await.unwrap();
    assert_eq!(trash.len(), 1);
    assert_eq!(trash[0].id, id);
    assert_eq!(trash[0].title.as_deref(), Some("good morning"));
    assert!(trash[0].deleted_at.is_some());
    let gone = runtime.open(id).await.unwrap_err();
    assert!(
        matches!(gone, RuntimeError::ConversationNotFound { .. }),
        "{gone}"
    );
    assert!(conversation.send(Input::text("more")).await.is_err());
    runtime.restore_conversation(id).await.unwrap();
    let restored = runtime.open(id).await.unwrap();
    assert_eq!(restored.details().await.unwrap(), before);
    assert_eq!(items(&restored).await, said);
    assert_eq!(listed(&runtime).await, [other.id(), id]);
    assert_eq!(trashed(&runtime).await, []);
    // It goes on, and can be deleted again.
    let mut events = restored.subscribe(None).await.unwrap();
    restored.send(Input::text("go on")).await.unwrap();
    turn_end(&mut events).await;
    runtime.delete_conversation(id).await.unwrap();
    assert_eq!(trashed(&runtime).await, [id]);
}

#[tokio::test]
async fn the_trash_is_there_after_a_restart_and_nothing_of_it_is_listed() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path(), Vec::new()).await;
    let id = used(&first, "one").await.id();
    first.delete_conversation(id).await.unwrap();
    first.shutdown().await;
    drop(first);
    let again = runtime(data.path(), Vec::new()).await;
    assert_eq!(listed(&again).await, []);
    assert_eq!(trashed(&again).await, [id]);
    again.restore_conversation(id).await.unwrap();
    assert_eq!(listed(&again).await, [id]);
}

#[tokio::test]
async fn deleting_a_running_conversation_ends_its_turn_and_its_command_and_tells_who_watches() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let command = bash("echo $$ > pid; echo st''arted; sleep 1000");
    let runtime = runtime(data.path(), vec![Step::Call(vec![command])]).await;
    let new = NewConversation::in_folder(folder.path());
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    shown(&mut events, "started").await;
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    runtime
        .delete_conversation(conversation.id())
        .await
        .unwrap();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(FeedEvent::Deleted)), "{last:?}");
    assert!(!Path::new("/proc").join(pid.trim()).exists());
    runtime
        .restore_conversation(conversation.id())
        .await
        .unwrap();
    let restored = runtime.open(conversation.id()).await.unwrap();
    let turns = restored.details().await.unwrap().turns;
    let turns: Vec<TurnStatus> = turns.iter().map(|turn| turn.status).collect();
    assert_eq!(turns, [TurnStatus::Interrupted]);
}

#[tokio::test]
async fn what_is_not_there_is_named_and_nothing_changes() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path(), Vec::new()).await;
    let kept = used(&runtime, "one").await.id();
    let deleted = used(&runtime, "two").await.id();
    runtime.delete_conversation(deleted).await.unwrap();
    let unknown: ConversationId = "01890000-0000-7000-8000-000000000000".parse().unwrap();
    for id in [unknown, deleted] {
        let error = runtime.delete_conversation(id).await.unwrap_err();
        assert!(
            matches!(error, RuntimeError::ConversationNotFound { id: it } if it == id),
            "{error}"
        );
    }
    for id in [unknown, kept] {
        let error = runtime.restore_conversation(id).await.unwrap_err();
        assert!(
            matches!(error, RuntimeError::NotInTrash { id: it } if it == id),
            "{error}"
        );
        let error = runtime
            .empty_trash(EmptyTrash::of([deleted, id]))
            .await
            .unwrap_err();
        assert!(
            matches!(error, RuntimeError::NotInTrash { id: it } if it == id),
            "{error}"
        );
    }
    assert_eq!(listed(&runtime).await, [kept]);
    assert_eq!(trashed(&runtime).await, [deleted]);
}

#[tokio::test]
async fn a_conversation_that_was_copied_back_meanwhile_is_never_overwritten() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path(), Vec::new()).await;
    let id = used(&runtime, "one").await.id();
    let here = data.path().join("conversations").join(id.to_string());
    let copy = files(&here);
    runtime.delete_conversation(id).await.unwrap();
    fs::create_dir_all(&here).unwrap();
    for (path, bytes) in &copy {
        fs::write(path, bytes).unwrap();
    }
    let all = files(data.path());
    let error = runtime.restore_conversation(id).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::ConversationExists { .. }),
        "{error}"
    );
    let error = runtime.delete_conversation(id).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::InTrashAlready { .. }),
        "{error}"
    );
    assert_eq!(files(data.path()), all);
    runtime.empty_trash(EmptyTrash::default()).await.unwrap();
    assert_eq!(files(data.path()), copy);
    runtime.delete_conversation(id).await.unwrap();
    assert_eq!(trashed(&runtime).await, [id]);
}

#[tokio::test]
async fn an_empty_conversation_is_gone_at_once_and_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path(), Vec::new()).await;
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let deleted = runtime
        .delete_conversation(conversation.id())
        .await
        .unwrap();
    assert!(!deleted.in_trash);
    assert_eq!(trashed(&runtime).await, []);
    let error = runtime.open(conversation.id()).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::ConversationNotFound { .. }),
        "{error}"
    );
    assert_eq!(files(data.path()), BTreeMap::new());
}

/// The state after a crash between the entry and the move, in both directions (R-24, R-25).
#[tokio::test]
async fn r_25_a_start_finishes_the_deletion_or_the_restoration_that_a_crash_has_cut_in_two() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path(), Vec::new()).await;
    let (a, b) = (used(&first, "a").await.id(), used(&first, "b").await.id());
    for id in [a, b] {
        first.delete_conversation(id).await.unwrap();
    }
    // `b` is restored and deleted so that the entries of both are there; then each lies where it lay before the move.
    first.restore_conversation(b).await.unwrap();
    first.shutdown().await;
    drop(first);
    let place = |under: &str, id: ConversationId| data.path().join(under).join(id.to_string());
    fs::rename(place("trash", a), place("conversations", a)).unwrap();
    fs::create_dir_all(data.path().join("trash")).unwrap();
    fs::rename(place("conversations", b), place("trash", b)).unwrap();
    let again = runtime(data.path(), Vec::new()).await;
    assert_eq!(listed(&again).await, [b]);
    assert_eq!(trashed(&again).await, [a]);
    assert!(place("trash", a).exists() && !place("conversations", a).exists());
    assert!(place("conversations", b).exists() && !place("trash", b).exists());
}

#[tokio::test]
async fn a_deletion_in_the_old_form_still_counts() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path(), Vec::new()).await;
    let id = used(&first, "a").await.id();
    first.delete_conversation(id).await.unwrap();
    first.shutdown().await;
    drop(first);
    // The old form has no time.
    let metadata = data.path().join(format!("trash/{id}/metadata.jsonl"));
    let text = fs::read_to_string(&metadata).unwrap();
    let (head, last) = text.trim_end().rsplit_once('\n').unwrap();
    let (_, data_of_last) = last.split_once("\"data\":").unwrap();
    assert!(
        data_of_last.contains("\"deleted\":true,\"deleted_at\":"),
        "{last}"
    );
    fs::write(&metadata, format!("{head}\n")).unwrap();
    let storage = FileStorage::open(FileOptions::new(data.path())).unwrap();
    let key = StreamKey::new(
        format!("trash/{id}").parse().unwrap(),
        "metadata".parse().unwrap(),
    );
    let old = format!(r#"{{"format":1,"kind":"conversation","id":"{id}","deleted":true}}"#);
    let entry = NewEntry::new(7, RawValue::from_string(old).unwrap());
    storage.append(&key, vec![entry]).await.unwrap();
    drop(storage);
    // In that form the directory stayed where it was.
    fs::create_dir_all(data.path().join("conversations")).unwrap();
    let here = data.path().join(format!("conversations/{id}"));
    fs::rename(data.path().join(format!("trash/{id}")), &here).unwrap();
    let again = runtime(data.path(), Vec::new()).await;
    assert_eq!(listed(&again).await, []);
    let trash = again.trash().await.unwrap();
    assert_eq!((trash[0].id, trash[0].deleted_at), (id, None));
    // Nobody knows how old it is, so no age removes it.
    let old = EmptyTrash::default().older_than(Some(Duration::ZERO));
    assert_eq!(again.empty_trash(old).await.unwrap(), []);
    again.restore_conversation(id).await.unwrap();
    assert_eq!(listed(&again).await, [id]);
}

#[tokio::test]
async fn u_015_nothing_is_ever_removed_by_itself_unless_a_period_was_set() {
    let data = tempfile::tempdir().unwrap();
    let clock = Standing::new();
    let open = |keep: Option<Duration>| {
        let (script, _requests) = Script::new(Vec::new());
        let clock: Arc<dyn Clock> = Arc::<Standing>::clone(&clock);
        builder(script)
            .data_dir(data.path())
            .clock(clock)
            .keep_trash(keep)
            .build()
    };
    let first = open(None).await.unwrap();
    let (kept, deleted) = (used(&first, "a").await.id(), used(&first, "b").await.id());
    first.delete_conversation(deleted).await.unwrap();
    first.shutdown().await;
    drop(first);
    let before = files(data.path());
    for _ in 0..5 {
        clock.pass(365 * DAY);
        let runtime = open(None).await.unwrap();
        assert_eq!(listed(&runtime).await, [kept]);
        assert_eq!(trashed(&runtime).await, [deleted]);
        runtime.shutdown().await;
        drop(runtime);
        assert_eq!(files(data.path()), before);
    }
    // With a period it goes, and only it.
    let runtime = open(Some(30 * DAY)).await.unwrap();
    // Whatever is asked of the trash comes after what the start began with.
    let gone = runtime.empty_trash(EmptyTrash::default()).await.unwrap();
    assert_eq!(gone, []);
    assert_eq!(trashed(&runtime).await, []);
    assert_eq!(listed(&runtime).await, [kept]);
}

#[tokio::test]
async fn the_trash_is_emptied_of_what_was_named_or_is_old_enough_and_of_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let clock = Standing::new();
    let (script, _requests) = Script::new(Vec::new());
    let of: Arc<dyn Clock> = Arc::<Standing>::clone(&clock);
    let runtime = builder(script)
        .data_dir(data.path())
        .clock(of)
        .build()
        .await
        .unwrap();
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        let id = used(&runtime, text).await.id();
        runtime.delete_conversation(id).await.unwrap();
        clock.pass(10 * DAY);
        ids.push(id);
    }
    assert_eq!(trashed(&runtime).await, [ids[2], ids[1], ids[0]]);
    let old = EmptyTrash::default().older_than(Some(20 * DAY));
    let gone = runtime.empty_trash(old).await.unwrap();
    let gone: Vec<ConversationId> = gone.iter().map(|it| it.id).collect();
    assert_eq!(gone, [ids[1], ids[0]]);
    assert_eq!(trashed(&runtime).await, [ids[2]]);
    let kept = used(&runtime, "d").await.id();
    let gone = runtime.empty_trash(EmptyTrash::of([ids[2]])).await.unwrap();
    assert_eq!(gone.len(), 1);
    assert_eq!(trashed(&runtime).await, []);
    assert_eq!(listed(&runtime).await, [kept]);
    assert_eq!(
        fs::read_dir(data.path().join("trash")).map_or(0, Iterator::count),
        0
    );
}

#[tokio::test]
async fn x_01_an_index_made_anew_lists_what_was_not_deleted_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path(), Vec::new()).await;
    let (kept, deleted) = (used(&first, "a").await.id(), used(&first, "b").await.id());
    first.delete_conversation(deleted).await.unwrap();
    first.shutdown().await;
    drop(first);
    for name in ["metadata.db", "metadata.db-wal", "metadata.db-shm"] {
        let _ = fs::remove_file(data.path().join(name));
    }
    let again = runtime(data.path(), Vec::new()).await;
    assert_eq!(listed(&again).await, [kept]);
}

#[tokio::test]
async fn deleting_restoring_and_opening_at_once_leave_one_whole_conversation() {
    let data = tempfile::tempdir().unwrap();
    let runtime = runtime(data.path(), Vec::new()).await;
    let id = used(&runtime, "a").await.id();
    for _ in 0..20 {
        let (deleted, opened, again, restored) = tokio::join!(
            runtime.delete_conversation(id),
            runtime.open(id),
            runtime.delete_conversation(id),
            runtime.restore_conversation(id),
        );
        deleted.unwrap();
        assert!(again.is_err(), "it was deleted twice");
        restored.unwrap();
        drop(opened);
        let conversation = runtime.open(id).await.unwrap();
        assert_eq!(conversation.details().await.unwrap().turns.len(), 1);
        assert_eq!(trashed(&runtime).await, []);
    }
}

#[tokio::test]
async fn a_conversation_that_has_lost_its_metadata_can_be_deleted_and_restored() {
    let data = tempfile::tempdir().unwrap();
    let first = runtime(data.path(), Vec::new()).await;
    let id = used(&first, "a").await.id();
    first.shutdown().await;
    drop(first);
    fs::remove_file(
        data.path()
            .join(format!("conversations/{id}/metadata.jsonl")),
    )
    .unwrap();
    let again = runtime(data.path(), Vec::new()).await;
    assert!(again.delete_conversation(id).await.unwrap().in_trash);
    assert_eq!(listed(&again).await, []);
    assert_eq!(trashed(&again).await, [id]);
    again.restore_conversation(id).await.unwrap();
    assert_eq!(listed(&again).await, [id]);
    assert_eq!(items(&again.open(id).await.unwrap()).await.len(), 2);
}

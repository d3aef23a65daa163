//! Subscriptions: what a watcher sees is what there is, whenever it came.

use std::fs;
use std::sync::Arc;

use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::event::{Entry, Live, ResumeCursor};
use openvaala_core::protocol::id::ItemId;
use openvaala_core::protocol::rpc::params::session::ItemsOrder;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::sim::{Effect, Fault, Op, SimFs};
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_core::{
    ConversationHandle, FeedEvent, Input, ItemsQuery, NewConversation, RuntimeBuilder,
    RuntimeError, Subscription,
};
use pretty_assertions::assert_eq;

use super::script::{Script, Step, builder, turn_end};

/// Codes of the operating system for a full and a failing disk.
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Takes all entries up to the state that says that the session is idle again after its turn.
async fn entries(events: &mut Subscription) -> (Vec<Entry>, ResumeCursor) {
    let mut entries = Vec::new();
    let mut ended = false;
    loop {
        let Some(FeedEvent::Entry { entry, cursor }) = events.next().await else {
            continue;
        };
        ended |= matches!(&*entry, Entry::Turn { turn, .. } if turn.ended_at.is_some());
        let idle =
            matches!(&*entry, Entry::Session { session, .. } if session.active_turn.is_none());
        entries.push((*entry).clone());
        if ended && idle {
            return (entries, cursor);
        }
    }
}

#[tokio::test]
async fn p_27_a_cursor_gives_exactly_the_missing_entries() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("one")).await.unwrap();
    let (_, cursor) = entries(&mut events).await;
    conversation.send(Input::text("two")).await.unwrap();
    let (second, _) = entries(&mut events).await;
    let back = conversation.subscribe(Some(cursor)).await.unwrap();
    assert!(back.snapshot.is_none());
    let sorted = |entries: &[Entry]| {
        let mut texts: Vec<String> = entries
            .iter()
            .map(|entry| serde_json::to_string(entry).unwrap())
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&back.entries), sorted(&second));
}

#[tokio::test]
async fn a_snapshot_has_the_text_so_far() {
    let (script, _requests) = Script::new(vec![Step::Stall("half a sentence ")]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let mut seen = String::new();
    while seen != "half a sentence " {
        if let Some(FeedEvent::Live(live)) = events.next().await
            && let Live::Delta(delta) = &*live
        {
            seen.push_str(&delta.text);
        }
    }
    let late = conversation.subscribe(None).await.unwrap();
    let texts: Vec<&str> = late
        .partials
        .iter()
        .map(|partial| partial.text.as_str())
        .collect();
    assert_eq!(texts, ["half a sentence "]);
    let snapshot = late.snapshot.unwrap();
    assert_eq!(snapshot.sessions[0].items.len(), 1);
    assert!(
        snapshot.sessions[0]
            .turn
            .as_ref()
            .unwrap()
            .ended_at
            .is_none()
    );
}

#[tokio::test]
async fn a_watcher_who_does_not_read_is_told_of_the_gap_and_slows_nobody() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut lazy = conversation.subscribe(None).await.unwrap();
    let mut eager = conversation.subscribe(None).await.unwrap();
    let text = "word ".repeat(200_000);
    for _ in 0..6 {
        conversation.send(Input::text(&text)).await.unwrap();
        turn_end(&mut eager).await;
    }
    let (mut gap, mut last, mut told) = (None, lazy.cursor.clone(), 0);
    while let Some(event) = lazy.next().await {
        match event {
            FeedEvent::Entry { cursor, .. } => (last, told) = (cursor, told + 1),
            FeedEvent::Gap { reason } => gap = Some(reason),
            _ => {}
        }
    }
    let reason = "4 MiB and more were waiting for this subscriber";
    assert_eq!(gap.as_deref(), Some(reason));
    // What waited was told in order, and the cursor brings the rest.
    let rest = conversation.subscribe(Some(last)).await.unwrap();
    assert!(rest.snapshot.is_none());
    let mut inputs = 0;
    let all = conversation.items(ItemsQuery::default()).await.unwrap();
    for entry in &rest.entries {
        inputs += usize::from(all.items.contains(entry));
    }
    assert!((1..12).contains(&inputs) && told > 4, "{inputs} {told}");
}

#[tokio::test]
async fn what_is_no_cursor_is_refused() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let refused = conversation
        .subscribe(Some(ResumeCursor("nonsense".to_owned())))
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::InvalidCursor)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn r_13_a_watcher_sees_the_turn_that_follows_a_first_message_that_could_not_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).data_dir(dir.path()).build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    // A file where the directory of all conversations has to be.
    let obstacle = dir.path().join("conversations");
    fs::write(&obstacle, "").unwrap();
    let refused = conversation.send(Input::text("one")).await.unwrap_err();
    assert!(
        matches!(refused, RuntimeError::NotWritten { .. }),
        "{refused}"
    );
    fs::remove_file(&obstacle).unwrap();
    conversation.send(Input::text("two")).await.unwrap();
    let mut ends = Vec::new();
    while ends.last() != Some(&TurnStatus::Completed) {
        ends.push(turn_end(&mut events).await.status);
    }
    // The first one is told as what it was.
    assert_eq!(ends, [TurnStatus::Failed, TurnStatus::Completed]);
    runtime.shutdown().await;
}

#[tokio::test]
async fn whatever_write_fails_who_watches_is_told_all_that_the_log_has() {
    for (effect, op) in [
        (Effect::Error(ENOSPC), Op::Write),
        (Effect::SyncLoses(EIO), Op::Sync),
    ] {
        let mut nth = 1;
        while told_though_it_fails(Fault::at(nth, effect).of(&[op])).await {
            nth += 1;
        }
        assert!(nth > 4, "{effect:?} {nth}");
    }
}

/// Has a conversation during which a fault happens; says whether it did.
async fn told_though_it_fails(fault: Fault) -> bool {
    let shown = format!("{fault:?}");
    let disk = SimFs::new();
    let options = FileOptions::new("/data").fs(Arc::new(disk.clone()));
    let records = SqliteOptions::in_memory().namespaces(RuntimeBuilder::namespaces());
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script)
        .logs(Arc::new(FileStorage::open(options).unwrap()))
        .records(Arc::new(SqliteDatabase::open(records).unwrap().records()))
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("one")).await.unwrap();
    entries(&mut events).await;
    let mut events = conversation.subscribe(None).await.unwrap();
    let mut told = events.snapshot.take().unwrap().sessions[0].items.clone();
    disk.inject(fault);
    while conversation.send(Input::text("two")).await.is_err() {}
    taken_by_turn(&conversation, &mut events, &mut told).await;
    let has_happened = disk.clear_faults();
    let last = Input::text("four");
    let item = last.item_id;
    conversation.send(last).await.unwrap();
    while !taken_by_turn(&conversation, &mut events, &mut told)
        .await
        .contains(&item)
    {}
    let query = ItemsQuery {
        order: ItemsOrder::Ascending,
        ..ItemsQuery::default()
    };
    assert_eq!(
        told,
        conversation.items(query).await.unwrap().items,
        "{shown}"
    );
    has_happened
}

/// Takes what is told up to the end of a turn; gives the inputs that it took.
async fn taken_by_turn(
    conversation: &ConversationHandle,
    events: &mut Subscription,
    told: &mut Vec<Entry>,
) -> Vec<ItemId> {
    loop {
        match events.next().await.unwrap() {
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Item { .. } => told.push((*entry).clone()),
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => return turn.inputs.clone(),
                _ => {}
            },
            // The turn could not be written to its end; the next input tells what is there.
            FeedEvent::Live(live) if matches!(&*live, Live::Degraded { .. }) => {
                while conversation.send(Input::text("three")).await.is_err() {}
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn deltas_that_come_fast_are_told_together_and_none_after_its_item() {
    let text: &str = Box::leak("word ".repeat(5_000).into());
    let (script, _requests) = Script::new(vec![Step::Say(text)]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("talk")).await.unwrap();
    let (mut seen, mut deltas, mut item) = (String::new(), 0, None);
    loop {
        match events.next().await.unwrap() {
            FeedEvent::Live(live) => {
                if let Live::Delta(delta) = &*live {
                    assert!(item != Some(delta.item_id), "{delta:?}");
                    assert_eq!(delta.offset, seen.len() as u64);
                    seen.push_str(&delta.text);
                    deltas += 1;
                }
            }
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Item { item: last, .. } => item = Some(last.head().id),
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
                _ => {}
            },
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(seen, text);
    // 25,000 bytes: a frame for every 4 KiB, and as many again for a machine that is slow.
    assert!(deltas < 500, "{deltas} deltas of 5,000 words");
}

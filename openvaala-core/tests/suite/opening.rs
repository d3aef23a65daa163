//! Opening reads the end of the log, however long it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use openvaala_core::model::Message;
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::id::{ConversationId, ItemId};
use openvaala_core::protocol::item::{ContextSummary, Item, ItemHead, ItemKind};
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_core::storage::{
    Appended, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Page, ReadOptions,
    RecordStorage, Result, StreamInfo, StreamKey,
};
use openvaala_core::{Input, ItemsQuery, NewConversation, Runtime, RuntimeBuilder};
use pretty_assertions::assert_eq;
use uuid::Uuid;

use super::script::{Script, Step, builder, items, turn_end};

/// Counts the bytes of the payloads that are read.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn LogStorage>,
    bytes: AtomicU64,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LogStorage for Counting {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        self.inner.append(key, batch).await
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        let page = self.inner.read(key, options).await?;
        let sizes = page.entries.iter().filter_map(|entry| entry.json());
        let bytes: usize = sizes.map(|data| data.get().len()).sum();
        self.bytes.fetch_add(bytes as u64, Ordering::SeqCst);
        Ok(page)
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        self.inner.fingerprint(key).await
    }

    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        self.inner.fingerprints(keys).await
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        self.inner.info(key).await
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        self.inner.list(path).await
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        self.inner.delete(key).await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        self.inner.delete_path(path).await
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        self.inner.rename_path(from, to).await
    }
}

/// A storage that outlives runtimes and counts.
struct Place {
    log: Arc<Counting>,
    records: Arc<dyn RecordStorage>,
}

impl Place {
    fn new() -> Self {
        let options = SqliteOptions::in_memory().namespaces(RuntimeBuilder::namespaces());
        let database = SqliteDatabase::open(options).unwrap();
        Self {
            log: Arc::new(Counting {
                inner: Arc::new(database.log()),
                bytes: AtomicU64::new(0),
            }),
            records: Arc::new(database.records()),
        }
    }

    async fn runtime(&self, script: Arc<Script>) -> Runtime {
        let builder = builder(script)
            .logs(self.log.clone())
            .records(self.records.clone());
        builder.build().await.unwrap()
    }

    /// How many bytes are read meanwhile.
    async fn bytes_of<T>(&self, work: impl Future<Output = T>) -> (T, u64) {
        let before = self.log.bytes.load(Ordering::SeqCst);
        let done = work.await;
        (done, self.log.bytes.load(Ordering::SeqCst) - before)
    }
}

/// Has a conversation of that many turns with answers of 10 KiB; gives its first input.
async fn talk(place: &Place, turns: usize) -> (ConversationId, Input) {
    let answer: &'static str = Box::leak("0123456789".repeat(1_024).into_boxed_str());
    let (script, _requests) = Script::new(vec![Step::Say(answer); turns]);
    let runtime = place.runtime(script).await;
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let first = Input::text("first");
    conversation.send(first.clone()).await.unwrap();
    turn_end(&mut events).await;
    for _ in 1..turns {
        conversation.send(Input::text("go on")).await.unwrap();
        turn_end(&mut events).await;
    }
    runtime.shutdown().await;
    (conversation.id(), first)
}

#[tokio::test]
async fn u_026_opening_and_the_last_page_read_the_end_of_the_log_only() {
    let mut read = Vec::new();
    for turns in [150, 450] {
        let place = Place::new();
        let (id, _) = talk(&place, turns).await;
        let (script, _requests) = Script::new(Vec::new());
        let runtime = place.runtime(script).await;
        let (page, bytes) = place
            .bytes_of(async {
                let conversation = runtime.open(id).await.unwrap();
                let query = ItemsQuery {
                    limit: 10,
                    ..ItemsQuery::default()
                };
                conversation.items(query).await.unwrap()
            })
            .await;
        assert_eq!(page.items.len(), 10);
        read.push(bytes);
    }
    assert!(read.iter().all(|bytes| *bytes < 250 << 10), "{read:?}");
    let difference = read[0].abs_diff(read[1]);
    assert!(difference < 64 << 10, "the longer log costs more: {read:?}");
}

#[tokio::test]
async fn an_input_of_long_ago_is_known_after_an_opening_and_a_new_one_costs_no_look() {
    let place = Place::new();
    let (id, first) = talk(&place, 150).await;
    let (script, _requests) = Script::new(Vec::new());
    let runtime = place.runtime(script).await;
    let conversation = runtime.open(id).await.unwrap();
    let before = items(&conversation).await.len();
    assert!(conversation.send(first).await.unwrap().duplicate);
    assert_eq!(items(&conversation).await.len(), before);
    let mut events = conversation.subscribe(None).await.unwrap();
    let sent = conversation.send(Input::text("new")).await.unwrap();
    assert!(!sent.duplicate);
    turn_end(&mut events).await;
}

#[tokio::test]
async fn the_first_request_after_an_opening_has_the_whole_history() {
    let place = Place::new();
    let (id, _) = talk(&place, 70).await;
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = place.runtime(script).await;
    let conversation = runtime.open(id).await.unwrap();
    conversation.send(Input::text("last")).await.unwrap();
    let request = requests.recv().await.unwrap();
    assert_eq!(request.messages.len(), 141);
}

#[tokio::test]
async fn u_024_a_prompt_costs_what_comes_after_the_last_summary() {
    let place = Place::new();
    let (id, _) = talk(&place, 150).await;
    let (script, _) = Script::new(Vec::new());
    let runtime = place.runtime(script).await;
    let conversation = runtime.open(id).await.unwrap();
    let last = items(&conversation).await.pop().unwrap();
    let session = conversation.details().await.unwrap().sessions[0].id;
    runtime.shutdown().await;
    let (pos, turn) = (last.head().pos + 1, last.head().turn);
    let summary = serde_json::json!({ "text": "all was counted", "up_to": pos - 1 });
    let summary: ContextSummary = serde_json::from_value(summary).unwrap();
    let time = last.head().started_at;
    let summary_id = ItemId::from_uuid(Uuid::from_u128(77));
    let head = ItemHead::new(summary_id, ItemKind::ContextSummary, turn, pos, time, time);
    let item = Item::new(head, &summary).unwrap();
    let key = StreamKey {
        path: format!("conversations/{id}").parse().unwrap(),
        stream: session.to_string().parse().unwrap(),
    };
    let entry = NewEntry::new(time.as_millis(), item.raw().to_owned());
    place.log.append(&key, vec![entry]).await.unwrap();

    let (script, mut requests) = Script::new(Vec::new());
    let runtime = place.runtime(script).await;
    let conversation = runtime.open(id).await.unwrap();
    let (request, bytes) = place
        .bytes_of(async {
            conversation.send(Input::text("go on")).await.unwrap();
            requests.recv().await.unwrap()
        })
        .await;
    let said: Vec<String> = request.messages.iter().map(user_text).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("all was counted") && said[1] == "go on",
        "{said:?}"
    );
    // One page of 64 items, two a turn.
    assert!(bytes < 400 << 10, "{bytes}");
}

fn user_text(message: &Message) -> String {
    match message {
        Message::User(content) => joined_text(content),
        other => format!("{other:?}"),
    }
}

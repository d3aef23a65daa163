//! Promotion: what is copied, when it counts, and what a failure leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::log::{
    Appended, EntryData, Fingerprint, Listing, LogPath, LogStorage, LogStorageExt, NewEntry, Page,
    ReadOptions, StreamId, StreamInfo, StreamKey,
};
use crate::record::{ListOptions, Namespace, Record, RecordStorage};
use crate::sqlite::{SqliteDatabase, SqliteLogStorage, SqliteOptions};
use crate::staged::{StagedLogStorage, StagedRecordStorage};

fn memory() -> SqliteDatabase {
    let options = SqliteOptions::in_memory().namespaces([Namespace::new("main", ["status"])]);
    SqliteDatabase::open(options).unwrap()
}

fn path(text: &str) -> LogPath {
    text.parse().unwrap()
}

fn last() -> StreamId {
    "metadata".parse().unwrap()
}

fn key(path: &str, stream: &str) -> StreamKey {
    StreamKey::new(self::path(path), stream.parse().unwrap())
}

/// A staged conversation with three streams, one of them over several pages, and the real storage.
async fn conversation() -> (StagedLogStorage, SqliteLogStorage) {
    let real = memory().log();
    let staged = StagedLogStorage::new(Arc::new(real.clone()), memory().log());
    staged.stage(&path("c/one"));
    for n in 0..700 {
        let time = 1000 - n;
        let data = RawValue::from_string(format!("{{\"n\" : {n}}}")).unwrap();
        staged
            .append(&key("c/one", "s"), vec![NewEntry::new(time, data)])
            .await
            .unwrap();
    }
    staged
        .append_json(&key("c/one/deep", "s"), 5, &["x"])
        .await
        .unwrap();
    staged
        .append_json(&key("c/one", "metadata"), 6, &["y", "z"])
        .await
        .unwrap();
    (staged, real)
}

async fn content(storage: &dyn LogStorage, key: &StreamKey) -> Vec<(u64, i64, String)> {
    let entries = storage.read_all(key).await.unwrap().into_iter();
    let short = entries.map(|entry| match entry.data {
        EntryData::Json(data) => (entry.seq, entry.time, data.get().to_owned()),
        EntryData::Damaged(damage) => panic!("{damage:?}"),
    });
    short.collect()
}

#[tokio::test]
async fn a_promotion_keeps_numbers_times_cursors_and_payloads() {
    let (staged, real) = conversation().await;
    let keys = [
        key("c/one", "s"),
        key("c/one/deep", "s"),
        key("c/one", "metadata"),
    ];
    let mut before = Vec::new();
    for key in &keys {
        before.push(content(&staged, key).await);
    }
    let page = staged
        .read(&keys[0], ReadOptions::descending().limit(3))
        .await
        .unwrap();
    assert_eq!(real.list(None).await.unwrap(), Listing::default());
    staged.promote(&path("c/one"), &last()).await.unwrap();
    assert!(!staged.is_staged(&path("c/one")));
    for (key, before) in keys.iter().zip(before) {
        assert_eq!(content(&staged, key).await, before);
        assert_eq!(content(&real, key).await, before);
    }
    let next = ReadOptions::descending()
        .limit(3)
        .cursor(page.next.unwrap());
    let page = staged.read(&keys[0], next).await.unwrap();
    assert_eq!(
        page.entries.iter().map(|it| it.seq).collect::<Vec<_>>(),
        [697, 696, 695]
    );
    assert_eq!(
        staged.append_json(&keys[0], 1, &[1]).await.unwrap().first,
        701
    );
    assert_eq!(real.info(&keys[0]).await.unwrap().unwrap().last, 701);
    let error = staged.promote(&path("c/one"), &last()).await.unwrap_err();
    assert!(matches!(error, Error::NotStaged { .. }), "{error}");
}

/// A storage whose n-th append fails: before it happened, or after.
#[derive(Debug)]
struct Failing {
    inner: SqliteLogStorage,
    left: AtomicUsize,
    happens: bool,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LogStorage for Failing {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return self.inner.append(key, batch).await;
        }
        if self.happens {
            self.inner.append(key, batch).await?;
        }
        Err(Error::Closed)
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        self.inner.read(key, options).await
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

#[tokio::test]
async fn a_staged_path_moves_within_the_memory_and_stays_staged() {
    let real = memory().log();
    let staged = StagedLogStorage::new(Arc::new(real.clone()), memory().log());
    staged.stage(&path("c/one"));
    staged
        .append_json(&key("c/one", "s"), 5, &[1])
        .await
        .unwrap();
    staged
        .append_json(&key("c/two", "s"), 5, &[2])
        .await
        .unwrap();
    // The real storage has it already.
    let error = staged.rename_path(&path("c/one"), &path("c/two")).await;
    assert!(matches!(error, Err(Error::PathExists { .. })), "{error:?}");
    let error = staged.rename_path(&path("c/two"), &path("c/one")).await;
    assert!(matches!(error, Err(Error::PathExists { .. })), "{error:?}");
    assert!(
        staged
            .rename_path(&path("c/one"), &path("t/one"))
            .await
            .unwrap()
    );
    assert!(staged.is_staged(&path("t/one")) && !staged.is_staged(&path("c/one")));
    assert_eq!(staged.read_all(&key("t/one", "s")).await.unwrap().len(), 1);
    assert_eq!(real.list(Some(&path("t"))).await.unwrap().paths, []);
    // Above a staged path both halves move.
    assert!(staged.rename_path(&path("t"), &path("u")).await.unwrap());
    assert!(staged.is_staged(&path("u/one")));
    assert_eq!(staged.read_all(&key("u/one", "s")).await.unwrap().len(), 1);
    assert!(staged.rename_path(&path("c"), &path("d")).await.unwrap());
    assert_eq!(real.read_all(&key("d/two", "s")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn r_13_a_promotion_that_fails_anywhere_stays_staged_and_leaves_nothing() {
    let mut failed = 0;
    for (n, happens) in (1..=6).flat_map(|n| [(n, false), (n, true)]) {
        let real = memory().log();
        let left = AtomicUsize::new(n);
        let failing = Failing {
            inner: real.clone(),
            left,
            happens,
        };
        let staged = StagedLogStorage::new(Arc::new(failing), memory().log());
        staged.stage(&path("c/one"));
        let big = vec!["x"; 300];
        staged
            .append_json(&key("c/one", "a"), 5, &big)
            .await
            .unwrap();
        staged
            .append_json(&key("c/one/x", "s"), 5, &[4])
            .await
            .unwrap();
        staged
            .append_json(&key("c/one", "metadata"), 5, &[3])
            .await
            .unwrap();
        // 300 entries in two appends, and one append for each other stream.
        let promoted = staged.promote(&path("c/one"), &last()).await;
        assert_eq!(promoted.is_ok(), n > 4);
        if promoted.is_err() {
            failed += 1;
            assert!(staged.is_staged(&path("c/one")));
            assert_eq!(real.list(None).await.unwrap(), Listing::default());
            assert_eq!(content(&staged, &key("c/one", "a")).await.len(), 300);
            staged.promote(&path("c/one"), &last()).await.unwrap();
        }
        assert_eq!(content(&real, &key("c/one", "a")).await.len(), 300);
        assert_eq!(content(&real, &key("c/one/x", "s")).await.len(), 1);
    }
    assert_eq!(failed, 8);
}

#[tokio::test]
async fn r_13_a_half_copy_of_an_earlier_promotion_is_removed() {
    let (staged, real) = conversation().await;
    for stream in ["s", "left-over"] {
        real.append_json(&key("c/one", stream), 1, &["half"])
            .await
            .unwrap();
    }
    staged.promote(&path("c/one"), &last()).await.unwrap();
    assert_eq!(content(&real, &key("c/one", "s")).await.len(), 700);
    assert_eq!(real.info(&key("c/one", "left-over")).await.unwrap(), None);
}

#[tokio::test]
async fn a_complete_conversation_is_never_overwritten() {
    let (staged, real) = conversation().await;
    real.append_json(&key("c/one", "metadata"), 1, &["complete"])
        .await
        .unwrap();
    let error = staged.promote(&path("c/one"), &last()).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert!(staged.is_staged(&path("c/one")));
    assert_eq!(content(&real, &key("c/one", "metadata")).await.len(), 1);
}

#[tokio::test]
async fn a_promotion_without_its_last_stream_is_refused() {
    let (staged, real) = conversation().await;
    staged.delete(&key("c/one", "metadata")).await.unwrap();
    let error = staged.promote(&path("c/one"), &last()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert_eq!(real.list(None).await.unwrap(), Listing::default());
}

#[tokio::test]
async fn a_discarded_conversation_is_gone_and_never_reached_the_disk() {
    let (staged, real) = conversation().await;
    assert!(staged.discard(&path("c/one")).await.unwrap());
    assert!(!staged.discard(&path("c/one")).await.unwrap());
    assert_eq!(staged.info(&key("c/one", "s")).await.unwrap(), None);
    assert_eq!(staged.list(None).await.unwrap(), Listing::default());
    assert_eq!(real.list(None).await.unwrap(), Listing::default());
}

#[tokio::test]
async fn staged_records_are_got_but_not_listed_until_they_are_promoted() {
    let real = memory().records();
    let staged = StagedRecordStorage::new(Arc::new(real.clone()), memory().records());
    let record = |key: &str| Record::new(key, 1, RawValue::from_string("{}".into()).unwrap());
    let listed = async || {
        let page = staged.list("main", ListOptions::default()).await.unwrap();
        page.records
            .into_iter()
            .map(|record| record.key)
            .collect::<Vec<_>>()
    };
    staged.stage("main", "a");
    staged.set("main", record("a")).await.unwrap();
    staged.set("main", record("b")).await.unwrap();
    assert!(staged.get("main", "a").await.unwrap().is_some());
    assert!(real.get("main", "a").await.unwrap().is_none());
    assert_eq!(listed().await, ["b"]);
    let keys = |keys: &[&str]| {
        keys.iter()
            .map(|key| ("main".to_owned(), (*key).to_owned()))
            .collect()
    };
    staged.promote(keys(&["a", "b", "x"])).await.unwrap();
    assert!(!staged.is_staged("main", "a"));
    assert_eq!(listed().await, ["a", "b"]);
    staged.stage("main", "c");
    staged
        .mset(vec![
            ("main".into(), record("c")),
            ("main".into(), record("d")),
        ])
        .await
        .unwrap();
    let found = staged
        .mget("main", &["c".into(), "d".into()])
        .await
        .unwrap();
    assert!(found.iter().all(Option::is_some));
    staged.discard(keys(&["c", "d"])).await.unwrap();
    assert!(staged.get("main", "c").await.unwrap().is_none());
    assert!(staged.get("main", "d").await.unwrap().is_some());
}

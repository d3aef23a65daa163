//! Logs that acknowledge what is not on disk yet: only opening them again tells.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::FutureExt;
use openvaala_storage::conformance::durability;
use openvaala_storage::file::{FileOptions, FileStorage};
use openvaala_storage::{
    Appended, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Page, ReadOptions, Result,
    StreamInfo, StreamKey,
};
use tempfile::TempDir;

/// Keeps the newest batch of each stream in memory until somebody looks or writes on.
#[derive(Debug)]
struct WritesLater {
    inner: FileStorage,
    late: Mutex<HashMap<StreamKey, Vec<NewEntry>>>,
}

impl WritesLater {
    async fn catch_up(&self, key: &StreamKey) -> Result<()> {
        let late = self.late.lock().unwrap().remove(key);
        match late {
            Some(batch) => self.inner.append(key, batch).await.map(drop),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl LogStorage for WritesLater {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        self.catch_up(key).await?;
        let last = self.inner.info(key).await?.map_or(0, |info| info.last);
        let appended = Appended {
            first: last + 1,
            last: last + batch.len() as u64,
            fingerprint: Fingerprint::new((last + 1).to_string()),
        };
        self.late.lock().unwrap().insert(key.clone(), batch);
        Ok(appended)
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        self.catch_up(key).await?;
        self.inner.read(key, options).await
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        self.catch_up(key).await?;
        self.inner.fingerprint(key).await
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        self.catch_up(key).await?;
        self.inner.info(key).await
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        self.inner.list(path).await
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        self.catch_up(key).await?;
        self.inner.delete(key).await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        self.late.lock().unwrap().retain(|key, _| key.path != *path);
        self.inner.delete_path(path).await.map(|_| true)
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        self.inner.rename_path(from, to).await
    }
}

fn late(dir: &TempDir) -> WritesLater {
    WritesLater {
        inner: FileStorage::open(FileOptions::new(dir.path())).unwrap(),
        late: Mutex::default(),
    }
}

async fn reopen((storage, dir): (WritesLater, TempDir)) -> (WritesLater, TempDir) {
    drop(storage);
    (late(&dir), dir)
}

#[tokio::test]
async fn a_log_that_writes_later_breaks_the_rules_of_durability() {
    let made = || {
        let dir = tempfile::tempdir().unwrap();
        (late(&dir), dir)
    };
    let rules = [
        durability::acknowledged_entries_are_there_after_a_restart(made(), reopen).boxed_local(),
        durability::numbers_go_on_after_a_restart(made(), reopen).boxed_local(),
    ];
    for rule in rules {
        let outcome = std::panic::AssertUnwindSafe(rule).catch_unwind().await;
        assert!(outcome.is_err());
    }
}

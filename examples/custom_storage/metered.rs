//! The wrapper: every method goes on to the storage inside.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use openvaala_core::storage::{
    Appended, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Page, ReadOptions, Result,
    StreamInfo, StreamKey,
};

/// Logs that count what is appended to them.
#[derive(Debug)]
pub(crate) struct MeteredLogs<S> {
    inner: S,
    appends: AtomicU64,
    entries: AtomicU64,
}

/// What has gone through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pub(crate) appends: u64,
    pub(crate) entries: u64,
}

impl<S> MeteredLogs<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            appends: AtomicU64::new(0),
            entries: AtomicU64::new(0),
        }
    }

    pub(crate) fn meter(&self) -> Meter {
        Meter {
            appends: self.appends.load(Ordering::Relaxed),
            entries: self.entries.load(Ordering::Relaxed),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: LogStorage> LogStorage for MeteredLogs<S> {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        let appended = self.inner.append(key, batch).await?;
        let entries = appended.last + 1 - appended.first;
        self.appends.fetch_add(1, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
        Ok(appended)
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

//! Records that lose what is written, or have no room for it, as long as somebody wants.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use openvaala_core::RuntimeBuilder;
use openvaala_core::storage::sqlite::{SqliteDatabase, SqliteOptions, SqliteRecordStorage};
use openvaala_core::storage::{Error, ListOptions, Record, RecordPage, RecordStorage};

#[derive(Debug)]
pub(crate) struct Flaky {
    inner: SqliteRecordStorage,
    loses: AtomicBool,
    is_full: AtomicBool,
}

impl Flaky {
    pub(crate) fn new() -> Arc<Self> {
        let options = SqliteOptions::in_memory().namespaces(RuntimeBuilder::namespaces());
        Arc::new(Self {
            inner: SqliteDatabase::open(options).unwrap().records(),
            loses: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
        })
    }

    /// Says that something was written, and forgets it.
    pub(crate) fn lose_writes(&self, loses: bool) {
        self.loses.store(loses, Ordering::SeqCst);
    }

    pub(crate) fn be_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    /// Whether a write takes place.
    fn takes(&self) -> Result<bool, Error> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(Error::StorageFull {
                path: PathBuf::from("metadata.db"),
                source: io::ErrorKind::StorageFull.into(),
            });
        }
        Ok(!self.loses.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl RecordStorage for Flaky {
    async fn set(&self, namespace: &str, record: Record) -> Result<(), Error> {
        self.mset(vec![(namespace.to_owned(), record)]).await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<(), Error> {
        match self.takes()? {
            true => self.inner.mset(records).await,
            false => Ok(()),
        }
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>, Error> {
        self.inner.get(namespace, key).await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>, Error> {
        self.inner.mget(namespace, keys).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool, Error> {
        match self.takes()? {
            true => self.inner.delete(namespace, key).await,
            false => Ok(true),
        }
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64, Error> {
        match self.takes()? {
            true => self.inner.delete_range(namespace, from, to).await,
            false => Ok(0),
        }
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage, Error> {
        self.inner.list(namespace, options).await
    }
}

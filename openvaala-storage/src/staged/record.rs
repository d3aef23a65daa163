//! Records that are in memory until they are promoted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;

use crate::error::Result;
use crate::record::{ListOptions, Record, RecordPage, RecordStorage};
use crate::sqlite::SqliteRecordStorage;

type Keys = BTreeSet<(String, String)>;

/// A record storage in which single records can be kept in memory at first.
///
/// A staged record is found by `get` and `mget` only: a listing shows the real storage. `delete_range` deletes in both. Both storages
/// must declare the same namespaces. What is staged is lost with the process.
///
/// [`mset`](RecordStorage::mset) over staged and other records is all or none in each of the two; should memory fail after the
/// real storage succeeded, the real part stays.
#[derive(Debug)]
pub struct StagedRecordStorage {
    real: Arc<dyn RecordStorage>,
    memory: SqliteRecordStorage,
    staged: ArcSwap<Keys>,
}

impl StagedRecordStorage {
    /// Puts a storage in memory in front of a real one.
    pub fn new(real: Arc<dyn RecordStorage>, memory: SqliteRecordStorage) -> Self {
        Self {
            real,
            memory,
            staged: ArcSwap::default(),
        }
    }

    /// Keeps a record in memory from now on, whether it exists already or not.
    pub fn stage(&self, namespace: &str, key: &str) {
        self.change(|staged| {
            staged.insert((namespace.to_owned(), key.to_owned()));
        });
    }

    /// Tells whether a record is staged.
    pub fn is_staged(&self, namespace: &str, key: &str) -> bool {
        let wanted = (namespace.to_owned(), key.to_owned());
        self.staged.load().contains(&wanted)
    }

    /// Moves staged records, each given by namespace and key, to the real storage in one step; those that are not staged stay where they are.
    ///
    /// # Errors
    ///
    /// What the storages report; then all of them stay staged.
    pub async fn promote(&self, keys: Vec<(String, String)>) -> Result<()> {
        let staged = self.staged.load_full();
        let keys: Keys = keys
            .into_iter()
            .filter(|key| staged.contains(key))
            .collect();
        let mut records = Vec::new();
        for (namespace, key) in &keys {
            if let Some(record) = self.memory.get(namespace, key).await? {
                records.push((namespace.clone(), record));
            }
        }
        self.real.mset(records).await?;
        self.release(&keys).await
    }

    /// Forgets staged records, each given by namespace and key.
    ///
    /// # Errors
    ///
    /// What the storage in memory reports.
    pub async fn discard(&self, keys: Vec<(String, String)>) -> Result<()> {
        let staged = self.staged.load_full();
        let keys: Keys = keys
            .into_iter()
            .filter(|key| staged.contains(key))
            .collect();
        self.release(&keys).await
    }

    async fn release(&self, keys: &Keys) -> Result<()> {
        self.change(|staged| staged.retain(|key| !keys.contains(key)));
        for (namespace, key) in keys {
            self.memory.delete(namespace, key).await?;
        }
        Ok(())
    }

    fn change(&self, change: impl Fn(&mut Keys)) {
        self.staged.rcu(|staged| {
            let mut staged = Keys::clone(staged);
            change(&mut staged);
            staged
        });
    }

    fn storage(&self, namespace: &str, key: &str) -> &dyn RecordStorage {
        if self.is_staged(namespace, key) {
            &self.memory
        } else {
            &*self.real
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl RecordStorage for StagedRecordStorage {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        let storage = self.storage(namespace, &record.key);
        storage.set(namespace, record).await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()> {
        let (staged, real): (Vec<_>, Vec<_>) = records
            .into_iter()
            .partition(|(namespace, record)| self.is_staged(namespace, &record.key));
        self.real.mset(real).await?;
        self.memory.mset(staged).await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        self.storage(namespace, key).get(namespace, key).await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let (staged, real): (Vec<_>, Vec<_>) = keys
            .iter()
            .cloned()
            .partition(|key| self.is_staged(namespace, key));
        let mut found: BTreeMap<String, Record> = BTreeMap::new();
        for records in [
            self.memory.mget(namespace, &staged).await?,
            self.real.mget(namespace, &real).await?,
        ] {
            let records = records.into_iter().flatten();
            found.extend(records.map(|record| (record.key.clone(), record)));
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        self.storage(namespace, key).delete(namespace, key).await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        let real = self.real.delete_range(namespace, from, to).await?;
        Ok(real + self.memory.delete_range(namespace, from, to).await?)
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        self.real.list(namespace, options).await
    }
}

//! `RecordStorage`: JSON records by namespace and key.

use std::collections::BTreeMap;

use async_trait::async_trait;
use openvaala_core::storage::{
    Error, ListOptions, Namespace, Record, RecordPage, RecordStorage, Result,
};
use tokio::sync::Mutex;

use crate::table::Table;

/// Records in memory. No method waits while it holds the lock, so each is done as a whole or not at all.
#[derive(Debug)]
pub(crate) struct MemoryRecords(Mutex<BTreeMap<String, Table>>);

impl MemoryRecords {
    /// Only these namespaces, and only filters on their fields, are known from now on.
    pub(crate) fn new(declared: Vec<Namespace>) -> Self {
        let tables = declared
            .into_iter()
            .map(|it| (it.name.clone(), Table::new(it)));
        Self(Mutex::new(tables.collect()))
    }

    /// Does something with one namespace.
    async fn with<T>(&self, name: &str, work: impl FnOnce(&mut Table) -> T) -> Result<T> {
        let mut tables = self.0.lock().await;
        if let Some(table) = tables.get_mut(name) {
            return Ok(work(table));
        }
        Err(unknown(name, &tables))
    }
}

fn unknown(name: &str, tables: &BTreeMap<String, Table>) -> Error {
    Error::UnknownNamespace {
        name: name.to_owned(),
        declared: tables.keys().cloned().collect(),
    }
}

#[async_trait]
impl RecordStorage for MemoryRecords {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        self.with(namespace, |table| table.set(record)).await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()> {
        let mut tables = self.0.lock().await;
        // All or none: nothing is written before every name is known.
        if let Some((name, _)) = records.iter().find(|(name, _)| !tables.contains_key(name)) {
            return Err(unknown(name, &tables));
        }
        for (name, record) in records {
            tables.entry(name).and_modify(|table| table.set(record));
        }
        Ok(())
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        self.with(namespace, |table| table.get(key)).await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let each = |table: &mut Table| keys.iter().map(|key| table.get(key)).collect();
        self.with(namespace, each).await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        self.with(namespace, |table| table.delete(key)).await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        self.with(namespace, |table| table.delete_range(from, to))
            .await
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        self.with(namespace, |table| table.list(&options)).await?
    }
}

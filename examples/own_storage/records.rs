//! `RecordStorage`: JSON records by namespace and key.

use std::collections::BTreeMap;

use async_trait::async_trait;
use openvaala_core::storage::{
    Error, ListOptions, Namespace, Record, RecordPage, RecordStorage, Result,
};
use tokio::sync::Mutex;

use crate::page::{page, within};

/// Records in memory. No method waits while it holds the lock, so each is done as a whole or not at all.
#[derive(Debug)]
pub(crate) struct MemoryRecords {
    declared: Vec<Namespace>,
    tables: Mutex<BTreeMap<String, BTreeMap<String, Record>>>,
}

impl MemoryRecords {
    pub(crate) fn new(declared: Vec<Namespace>) -> Self {
        let names = declared.iter().map(|it| it.name.clone());
        let tables = Mutex::new(names.map(|name| (name, BTreeMap::new())).collect());
        Self { declared, tables }
    }

    /// Does something with one namespace, or says which ones there are.
    async fn with<T>(
        &self,
        name: &str,
        work: impl FnOnce(&mut BTreeMap<String, Record>) -> T,
    ) -> Result<T> {
        match self.tables.lock().await.get_mut(name) {
            Some(table) => Ok(work(table)),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let declared = self.declared.iter().map(|it| it.name.clone()).collect();
        Error::UnknownNamespace {
            name: name.to_owned(),
            declared,
        }
    }

    fn check(&self, namespace: &str, filters: &[(String, String)]) -> Result<()> {
        let declared = self.declared.iter().find(|it| it.name == namespace);
        let fields = &declared.ok_or_else(|| self.unknown(namespace))?.fields;
        match filters.iter().find(|(field, _)| !fields.contains(field)) {
            None => Ok(()),
            Some((field, _)) => Err(Error::UnknownField {
                namespace: namespace.to_owned(),
                field: field.clone(),
                declared: fields.clone(),
            }),
        }
    }
}

#[async_trait]
impl RecordStorage for MemoryRecords {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        self.with(namespace, |table| {
            drop(table.insert(record.key.clone(), record))
        })
        .await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()> {
        let mut tables = self.tables.lock().await;
        if let Some((name, _)) = records.iter().find(|(name, _)| !tables.contains_key(name)) {
            return Err(self.unknown(name));
        }
        for (name, record) in records {
            tables
                .entry(name)
                .or_default()
                .insert(record.key.clone(), record);
        }
        Ok(())
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        self.with(namespace, |table| table.get(key).cloned()).await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        self.with(namespace, |table| {
            keys.iter().map(|key| table.get(key).cloned()).collect()
        })
        .await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        self.with(namespace, |table| table.remove(key).is_some())
            .await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        self.with(namespace, |table| {
            let before = table.len();
            table.retain(|key, _| !within(key, from, to));
            (before - table.len()) as u64
        })
        .await
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        self.check(namespace, &options.filters)?;
        self.with(namespace, |table| page(table, &options)).await?
    }
}

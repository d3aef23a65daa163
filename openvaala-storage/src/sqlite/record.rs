//! Records in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::error::Result;
use crate::record::{ListOptions, Namespace, Record, RecordPage, RecordStorage};
use crate::sqlite::database::SqliteDatabase;
use crate::sqlite::list::{Lead, Query, range};
use crate::sqlite::schema::{checksum, forget_fields, index_fields, record};

/// The records of a [`SqliteDatabase`].
///
/// Besides the contract of [`RecordStorage`]: a field whose value is no string, or a record that is no object, is not found by
/// filters. With [`Durability::Full`](crate::sqlite::Durability::Full) a change also survives a crash of the machine.
#[derive(Clone, Debug)]
pub struct SqliteRecordStorage {
    database: SqliteDatabase,
}

impl SqliteRecordStorage {
    pub(super) fn new(database: SqliteDatabase) -> Self {
        Self { database }
    }
}

#[async_trait]
impl RecordStorage for SqliteRecordStorage {
    async fn set(&self, namespace: &str, record: Record) -> Result<()> {
        self.mset(vec![(namespace.to_owned(), record)]).await
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<()> {
        let mut rows = Vec::with_capacity(records.len());
        for (namespace, record) in records {
            rows.push((self.database.namespace(&namespace)?, record));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let durability = self.database.durability();
        self.database
            .write(move |owner| {
                let transaction = owner.write(durability)?;
                for (namespace, record) in &rows {
                    put(&transaction, namespace, record)?;
                }
                transaction.commit()
            })
            .await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        let namespace = self.database.namespace(namespace)?;
        let key = key.to_owned();
        self.database
            .read(move |owner| find(&*owner.read()?, &namespace.name, &key))
            .await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        let namespace = self.database.namespace(namespace)?;
        let keys = keys.to_vec();
        self.database
            .read(move |owner| {
                let transaction = owner.read()?;
                keys.iter()
                    .map(|key| find(&transaction, &namespace.name, key))
                    .collect()
            })
            .await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        let namespace = self.database.namespace(namespace)?;
        let key = key.to_owned();
        let durability = self.database.durability();
        self.database
            .write(move |owner| {
                let transaction = owner.write(durability)?;
                let time = update_time(&transaction, &namespace.name, &key)?;
                if let Some(time) = time {
                    forget_fields(&transaction, &namespace, &key, time)?;
                    transaction
                        .prepare_cached("DELETE FROM records WHERE namespace = ?1 AND key = ?2")?
                        .execute(params![namespace.name, key])?;
                }
                transaction.commit()?;
                Ok(time.is_some())
            })
            .await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        self.database.namespace(namespace)?;
        let (condition, values) = range(namespace, from, to);
        let durability = self.database.durability();
        self.database
            .write(move |owner| {
                let transaction = owner.write(durability)?;
                let delete = |table: &str| {
                    transaction
                        .prepare_cached(&format!("DELETE FROM {table} WHERE {condition}"))?
                        .execute(params_from_iter(&values))
                };
                let deleted = delete("records")?;
                delete("record_fields")?;
                delete("record_texts")?;
                transaction.commit()?;
                Ok(deleted as u64)
            })
            .await
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        let namespace = self.database.namespace(namespace)?;
        options.check_fields(&namespace)?;
        let cursor = options.place()?;
        let asked = options.clone();
        let mut records = self
            .database
            .read(move |owner| {
                let transaction = owner.read()?;
                let lead = Lead::choose(&transaction, &namespace.name, &asked)?;
                let query = Query::new(&namespace.name, &asked, cursor, lead);
                query.run(&transaction, &namespace.name)
            })
            .await?;
        let next = options.truncate(&mut records);
        Ok(RecordPage { records, next })
    }
}

fn put(transaction: &Connection, namespace: &Namespace, record: &Record) -> rusqlite::Result<()> {
    if let Some(time) = update_time(transaction, &namespace.name, &record.key)? {
        forget_fields(transaction, namespace, &record.key, time)?;
    }
    let crc = checksum(&namespace.name, record);
    transaction
        .prepare_cached(
            "INSERT INTO records (namespace, key, updated_at, data, crc) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (namespace, key) DO UPDATE SET
             updated_at = excluded.updated_at, data = excluded.data, crc = excluded.crc",
        )?
        .execute(params![
            namespace.name,
            record.key,
            record.updated_at,
            record.data.get(),
            crc
        ])?;
    index_fields(transaction, namespace, record)
}

fn update_time(
    connection: &Connection,
    namespace: &str,
    key: &str,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT updated_at FROM records WHERE namespace = ?1 AND key = ?2")?
        .query_row(params![namespace, key], |row| row.get(0))
        .optional()
}

fn find(connection: &Connection, namespace: &str, key: &str) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(
            "SELECT key, updated_at, data, crc FROM records WHERE namespace = ?1 AND key = ?2",
        )?
        .query_row(params![namespace, key], |row| record(namespace, row))
        .optional()
}

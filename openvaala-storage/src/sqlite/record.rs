//! Records in SQLite.

use async_trait::async_trait;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::record::{ListOptions, Record, RecordPage, RecordStorage};
use crate::sqlite::database::SqliteDatabase;
use crate::sqlite::list::{Query, range};
use crate::sqlite::schema::index_fields;

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
            let fields = self.database.fields(&namespace)?.to_vec();
            rows.push((namespace, fields, record));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let durability = self.database.durability();
        self.database
            .write(move |owner| {
                let transaction = owner.write(durability)?;
                for (namespace, fields, record) in &rows {
                    put(&transaction, namespace, fields, record)?;
                }
                transaction.commit()
            })
            .await
    }

    async fn get(&self, namespace: &str, key: &str) -> Result<Option<Record>> {
        self.database.fields(namespace)?;
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        self.database
            .read(move |owner| find(&*owner.read()?, &namespace, &key))
            .await
    }

    async fn mget(&self, namespace: &str, keys: &[String]) -> Result<Vec<Option<Record>>> {
        self.database.fields(namespace)?;
        let (namespace, keys) = (namespace.to_owned(), keys.to_vec());
        self.database
            .read(move |owner| {
                let transaction = owner.read()?;
                keys.iter()
                    .map(|key| find(&transaction, &namespace, key))
                    .collect()
            })
            .await
    }

    async fn delete(&self, namespace: &str, key: &str) -> Result<bool> {
        self.database.fields(namespace)?;
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        let durability = self.database.durability();
        self.database
            .write(move |owner| {
                let transaction = owner.write(durability)?;
                let row = params![namespace, key];
                let deleted = transaction
                    .prepare_cached("DELETE FROM records WHERE namespace = ?1 AND key = ?2")?
                    .execute(row)?;
                transaction
                    .prepare_cached("DELETE FROM record_fields WHERE namespace = ?1 AND key = ?2")?
                    .execute(row)?;
                transaction.commit()?;
                Ok(deleted > 0)
            })
            .await
    }

    async fn delete_range(
        &self,
        namespace: &str,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<u64> {
        self.database.fields(namespace)?;
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
                transaction.commit()?;
                Ok(deleted as u64)
            })
            .await
    }

    async fn list(&self, namespace: &str, options: ListOptions) -> Result<RecordPage> {
        let declared = self.database.fields(namespace)?;
        let query = Query::new(namespace, declared, &options)?;
        let mut records = self
            .database
            .read(move |owner| {
                let transaction = owner.read()?;
                let mut statement = transaction.prepare_cached(&query.sql)?;
                let rows = statement.query_map(params_from_iter(query.values), record)?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            })
            .await?;
        let next = options.truncate(&mut records);
        Ok(RecordPage { records, next })
    }
}

fn put(
    transaction: &Connection,
    namespace: &str,
    fields: &[String],
    record: &Record,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO records (namespace, key, updated_at, data) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (namespace, key) DO UPDATE SET updated_at = excluded.updated_at, data = excluded.data",
        )?
        .execute(params![namespace, record.key, record.updated_at, record.data.get()])?;
    index_fields(transaction, namespace, fields, &record.key, &record.data)
}

fn find(connection: &Connection, namespace: &str, key: &str) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(
            "SELECT key, updated_at, data FROM records WHERE namespace = ?1 AND key = ?2",
        )?
        .query_row(params![namespace, key], record)
        .optional()
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let data = RawValue::from_string(row.get(2)?).map_err(|source| {
        rusqlite::Error::FromSqlConversionFailure(2, Type::Text, source.into())
    })?;
    Ok(Record::new(row.get::<_, String>(0)?, row.get(1)?, data))
}

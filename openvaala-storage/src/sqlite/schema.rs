//! The tables, their format number, and the declared fields.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior, params};
use serde_json::value::RawValue;

use crate::record::Namespace;

/// The newest format known here, kept in `user_version`.
pub(super) const FORMAT: u64 = 1;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS records (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_time ON records (namespace, updated_at, key);
CREATE TABLE IF NOT EXISTS record_fields (
    namespace TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (namespace, field, value, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS record_fields_by_key ON record_fields (namespace, key);
CREATE TABLE IF NOT EXISTS namespaces (
    name TEXT PRIMARY KEY,
    fields TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log_streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    stream TEXT NOT NULL,
    last INTEGER NOT NULL,
    UNIQUE (path, stream)
);
CREATE TABLE IF NOT EXISTS log_entries (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (stream, seq)
);
PRAGMA user_version = 1;
";

/// Makes what is missing and returns the format found; a newer one is left as it is.
pub(super) fn prepare(
    connection: &mut Connection,
    namespaces: &[Namespace],
) -> rusqlite::Result<u64> {
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if u64::from(found) > FORMAT {
        return Ok(found.into());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if u64::from(found) < FORMAT {
        transaction.execute_batch(TABLES)?;
    }
    for namespace in namespaces {
        declare(&transaction, namespace)?;
    }
    transaction.commit()?;
    Ok(FORMAT)
}

/// Writes the declared fields of a record.
pub(super) fn index_fields(
    transaction: &Connection,
    namespace: &str,
    fields: &[String],
    key: &str,
    data: &RawValue,
) -> rusqlite::Result<()> {
    if fields.is_empty() {
        return Ok(());
    }
    transaction
        .prepare_cached("DELETE FROM record_fields WHERE namespace = ?1 AND key = ?2")?
        .execute(params![namespace, key])?;
    // Anything but an object with string fields has nothing to filter by.
    let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(data.get()) else {
        return Ok(());
    };
    let mut insert = transaction
        .prepare_cached("INSERT OR REPLACE INTO record_fields (namespace, field, value, key) VALUES (?1, ?2, ?3, ?4)")?;
    for field in fields {
        let text = object
            .get(field.as_str())
            .map(|value| serde_json::from_str::<String>(value.get()));
        if let Some(Ok(text)) = text {
            insert.execute(params![namespace, field, text, key])?;
        }
    }
    Ok(())
}

/// Remembers the declaration of a namespace; when its fields have changed, its records are indexed again.
fn declare(transaction: &Connection, namespace: &Namespace) -> rusqlite::Result<()> {
    let mut fields = namespace.fields.clone();
    fields.sort();
    fields.dedup();
    let declared = serde_json::Value::from(fields).to_string();
    let known: Option<String> = transaction
        .prepare("SELECT fields FROM namespaces WHERE name = ?1")?
        .query_map([&namespace.name], |row| row.get(0))?
        .next()
        .transpose()?;
    if known.as_ref() == Some(&declared) {
        return Ok(());
    }
    transaction.execute(
        "INSERT OR REPLACE INTO namespaces (name, fields) VALUES (?1, ?2)",
        params![namespace.name, declared],
    )?;
    transaction.execute(
        "DELETE FROM record_fields WHERE namespace = ?1",
        [&namespace.name],
    )?;
    let mut records = transaction.prepare("SELECT key, data FROM records WHERE namespace = ?1")?;
    let mut rows = records.query([&namespace.name])?;
    while let Some(row) = rows.next()? {
        let (key, data): (String, String) = (row.get(0)?, row.get(1)?);
        if let Ok(data) = RawValue::from_string(data) {
            index_fields(transaction, &namespace.name, &namespace.fields, &key, &data)?;
        }
    }
    Ok(())
}

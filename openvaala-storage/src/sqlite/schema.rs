//! The tables, their format number, and the declared fields.

use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use serde_json::json;
use serde_json::value::RawValue;

use crate::record::{Fields, Namespace, Record};

/// The newest format known here, kept in `user_version`.
pub(super) const FORMAT: u64 = 2;

/// Every table is sorted by its primary key: `record_fields` and `record_texts` are read in the order of the update times without a
/// look at the records that do not match.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS records (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    data TEXT NOT NULL,
    crc INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_by_time ON records (namespace, updated_at, key);
CREATE TABLE IF NOT EXISTS record_fields (
    namespace TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (namespace, field, value, updated_at, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS record_fields_by_key ON record_fields (namespace, key);
CREATE TABLE IF NOT EXISTS record_texts (
    namespace TEXT NOT NULL,
    field TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (namespace, field, updated_at, key)
) WITHOUT ROWID;
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
PRAGMA user_version = 2;
";

/// Records without a checksum, and fields without a time: the latter are made anew when their namespace is declared.
const BEFORE_FORMAT_2: &str = "
ALTER TABLE records ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
DROP TABLE record_fields;
DELETE FROM namespaces;
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
    // Another program may have been first.
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found == 1 {
        transaction.execute_batch(BEFORE_FORMAT_2)?;
    }
    if u64::from(found) < FORMAT {
        transaction.execute_batch(TABLES)?;
    }
    if found == 1 {
        add_checksums(&transaction)?;
    }
    for namespace in namespaces {
        declare(&transaction, namespace)?;
    }
    transaction.commit()?;
    Ok(FORMAT)
}

fn add_checksums(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut checksums = Vec::new();
    let mut records =
        transaction.prepare("SELECT key, updated_at, data, crc, namespace FROM records")?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        let (record, namespace) = (unchecked(row)?, row.get::<_, String>(4)?);
        checksums.push((checksum(&namespace, &record), namespace, record.key));
    }
    let mut update =
        transaction.prepare("UPDATE records SET crc = ?1 WHERE namespace = ?2 AND key = ?3")?;
    for row in checksums {
        update.execute(row)?;
    }
    Ok(())
}

/// The checksum of a record: a database has none of its own, and text that has changed is text all the same.
pub(super) fn checksum(namespace: &str, record: &Record) -> u32 {
    let parts: [&[u8]; 6] = [
        namespace.as_bytes(),
        &[0xff],
        record.key.as_bytes(),
        &[0xff],
        &record.updated_at.to_le_bytes(),
        record.data.get().as_bytes(),
    ];
    let sum = |crc, part: &&[u8]| crc32c::crc32c_append(crc, part);
    parts.iter().fold(0, sum)
}

/// Reads the columns key, update time, data and checksum.
pub(super) fn record(namespace: &str, row: &Row<'_>) -> rusqlite::Result<Record> {
    let record = unchecked(row)?;
    if checksum(namespace, &record) == row.get::<_, u32>(3)? {
        return Ok(record);
    }
    Err(damage(&format!(
        "the record {:?} is not as it was written",
        record.key
    )))
}

fn unchecked(row: &Row<'_>) -> rusqlite::Result<Record> {
    let data = RawValue::from_string(row.get(2)?).map_err(|source| {
        rusqlite::Error::FromSqlConversionFailure(2, Type::Text, source.into())
    })?;
    Ok(Record::new(row.get::<_, String>(0)?, row.get(1)?, data))
}

/// What is there is not what was written.
pub(super) fn damage(what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, what.into())
}

/// Writes the declared fields of a record, of which none are there.
pub(super) fn index_fields(
    transaction: &Connection,
    namespace: &Namespace,
    record: &Record,
) -> rusqlite::Result<()> {
    let (name, key, time) = (&namespace.name, &record.key, record.updated_at);
    if namespace.fields.is_empty() && namespace.search.is_empty() {
        return Ok(());
    }
    let fields = Fields::of(&record.data);
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO record_fields (namespace, field, value, updated_at, key) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for field in &namespace.fields {
        for value in fields.values(field) {
            insert.execute(params![name, field, value, time, key])?;
        }
    }
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO record_texts (namespace, field, updated_at, key, text) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for field in &namespace.search {
        if let Some(text) = fields.text(field) {
            insert.execute(params![name, field, time, key, text])?;
        }
    }
    Ok(())
}

/// Removes the declared fields of a record that had this update time.
pub(super) fn forget_fields(
    transaction: &Connection,
    namespace: &Namespace,
    key: &str,
    updated_at: i64,
) -> rusqlite::Result<()> {
    if !namespace.fields.is_empty() {
        transaction
            .prepare_cached("DELETE FROM record_fields WHERE namespace = ?1 AND key = ?2")?
            .execute(params![namespace.name, key])?;
    }
    let mut delete = transaction.prepare_cached(
        "DELETE FROM record_texts WHERE namespace = ?1 AND field = ?2 AND updated_at = ?3 AND key = ?4",
    )?;
    for field in &namespace.search {
        delete.execute(params![namespace.name, field, updated_at, key])?;
    }
    Ok(())
}

/// Remembers the declaration of a namespace; when its fields have changed, its records are indexed again.
fn declare(transaction: &Connection, namespace: &Namespace) -> rusqlite::Result<()> {
    let declared = declaration(namespace);
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
    for table in ["record_fields", "record_texts"] {
        let delete = format!("DELETE FROM {table} WHERE namespace = ?1");
        transaction.execute(&delete, [&namespace.name])?;
    }
    let mut records = transaction
        .prepare("SELECT key, updated_at, data, crc FROM records WHERE namespace = ?1")?;
    let mut rows = records.query([&namespace.name])?;
    while let Some(row) = rows.next()? {
        index_fields(transaction, namespace, &record(&namespace.name, row)?)?;
    }
    Ok(())
}

/// The text that tells whether fields were indexed as they are now.
fn declaration(namespace: &Namespace) -> String {
    let sorted = |fields: &[String]| {
        let mut fields = fields.to_vec();
        fields.sort();
        fields.dedup();
        fields
    };
    let (major, minor, _) = char::UNICODE_VERSION;
    json!({
        "fields": sorted(&namespace.fields),
        "search": sorted(&namespace.search),
        // Newer tables fold more letters.
        "unicode": format!("{major}.{minor}"),
    })
    .to_string()
}

//! Looks for damage that SQLite itself does not notice as long as nobody comes by.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Statement, params};

use crate::error::{Error, Result};
use crate::record::{Fields, Namespace, Record};
use crate::sqlite::failure::error;
use crate::sqlite::schema::{damage, record};

/// Checks the structure of the whole file, which takes about a millisecond per megabyte.
pub(super) fn quick_check(connection: &Connection, path: &Path) -> Result<()> {
    match structure(connection).map_err(|source| error(path, source))? {
        None => Ok(()),
        Some(what) => Err(Error::Corrupt {
            path: path.to_owned(),
            source: what.into(),
        }),
    }
}

/// Returns the first damage that is found in the structure, in a record, or in what is indexed of it.
pub(super) fn first_damage(
    connection: &Connection,
    namespaces: &[Arc<Namespace>],
) -> rusqlite::Result<Option<String>> {
    if let Some(what) = structure(connection)? {
        return Ok(Some(what));
    }
    for namespace in namespaces {
        namespace_agrees(connection, namespace)?;
    }
    Ok(None)
}

fn structure(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let verdict =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?;
    Ok(Some(verdict).filter(|verdict| verdict != "ok"))
}

/// Looks up everything that must be indexed of each record. When all of it is there and the numbers agree, nothing else is.
fn namespace_agrees(connection: &Connection, namespace: &Namespace) -> rusqlite::Result<()> {
    let mut records = connection
        .prepare("SELECT key, updated_at, data, crc FROM records WHERE namespace = ?1")?;
    let mut indexed = Indexed::of(connection)?;
    let mut rows = records.query([&namespace.name])?;
    while let Some(row) = rows.next()? {
        indexed.has(namespace, &record(&namespace.name, row)?)?;
    }
    let expected = [indexed.times, indexed.values, indexed.texts];
    let counted: [i64; 3] = connection.query_row(
        "SELECT (SELECT count(*) FROM records INDEXED BY records_by_time WHERE namespace = ?1),
                (SELECT count(*) FROM record_fields WHERE namespace = ?1),
                (SELECT count(*) FROM record_texts WHERE namespace = ?1)",
        [&namespace.name],
        |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]),
    )?;
    if expected == counted {
        return Ok(());
    }
    Err(damage("an index has rows of no record"))
}

/// Looks up what is indexed, and counts it.
struct Indexed<'a> {
    time: Statement<'a>,
    value: Statement<'a>,
    text: Statement<'a>,
    times: i64,
    values: i64,
    texts: i64,
}

impl<'a> Indexed<'a> {
    fn of(connection: &'a Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connection.prepare(sql);
        Ok(Self {
            time: prepare(
                "SELECT 1 FROM records INDEXED BY records_by_time WHERE namespace = ?1 AND updated_at = ?2 AND key = ?3",
            )?,
            value: prepare(
                "SELECT 1 FROM record_fields WHERE namespace = ?1 AND field = ?2 AND value = ?3 AND updated_at = ?4 AND key = ?5",
            )?,
            text: prepare(
                "SELECT 1 FROM record_texts WHERE namespace = ?1 AND field = ?2 AND updated_at = ?3 AND key = ?4 AND text = ?5",
            )?,
            times: 0,
            values: 0,
            texts: 0,
        })
    }

    fn has(&mut self, namespace: &Namespace, record: &Record) -> rusqlite::Result<()> {
        let (name, key, time) = (&namespace.name, &record.key, record.updated_at);
        let mut there = self.time.exists(params![name, time, key])?;
        self.times += 1;
        let fields = Fields::of(&record.data);
        for field in each_once(&namespace.fields) {
            for value in fields.values(field) {
                there &= self.value.exists(params![name, field, value, time, key])?;
                self.values += 1;
            }
        }
        for field in each_once(&namespace.search) {
            if let Some(text) = fields.text(field) {
                there &= self.text.exists(params![name, field, time, key, text])?;
                self.texts += 1;
            }
        }
        if there {
            return Ok(());
        }
        Err(damage(&format!("the record {key:?} is not indexed")))
    }
}

/// The declared fields without repetitions.
fn each_once(fields: &[String]) -> impl Iterator<Item = &String> {
    let is_first = |n: usize| !fields[..n].contains(&fields[n]);
    (0..fields.len())
        .filter(move |n| is_first(*n))
        .map(|n| &fields[n])
}

//! Logs in SQLite.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::log::{
    Appended, Damage, Entry, EntryData, Fingerprint, Listing, LogPath, LogStorage, MAX_PAGE_BYTES,
    NewEntry, Order, Page, ReadOptions, StreamInfo, StreamKey, check_batch, check_rename,
};
use crate::sqlite::database::{Durability, SqliteDatabase};

/// The logs of a [`SqliteDatabase`].
///
/// Besides the contract of [`LogStorage`]: a batch is all or nothing, also across a crash.
#[derive(Clone, Debug)]
pub struct SqliteLogStorage {
    database: SqliteDatabase,
}

impl SqliteLogStorage {
    pub(super) fn new(database: SqliteDatabase) -> Self {
        Self { database }
    }

    /// Returns every stream at and below a path, sorted.
    #[cfg(feature = "staged")]
    pub(crate) async fn streams_under(&self, path: &LogPath) -> Result<Vec<StreamKey>> {
        let (path, below, end) = subtree(path);
        let rows: Vec<(String, String)> = self
            .database
            .read(move |owner| {
                let transaction = owner.read()?;
                let mut statement = transaction.prepare_cached(
                    "SELECT path, stream FROM log_streams
                     WHERE path = ?1 OR (path >= ?2 AND path < ?3) ORDER BY path, stream",
                )?;
                let rows = statement.query_map(params![path, below, end], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
                rows.collect()
            })
            .await?;
        rows.iter()
            .map(|(path, stream)| Ok(StreamKey::new(path.parse()?, stream.parse()?)))
            .collect()
    }

    async fn find(&self, key: &StreamKey) -> Result<Option<Stream>> {
        let key = key.clone();
        self.database
            .read(move |owner| Stream::find(&*owner.read()?, &key))
            .await
    }
}

#[async_trait]
impl LogStorage for SqliteLogStorage {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        check_batch(&batch)?;
        let key = key.clone();
        self.database
            .write(move |owner| {
                let transaction = owner.write(Durability::Full)?;
                let appended = append(&transaction, &key, &batch)?;
                transaction.commit()?;
                Ok(appended)
            })
            .await
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        let wanted = key.clone();
        self.database
            .read(move |owner| {
                let transaction = owner.read()?;
                let Some(stream) = Stream::find(&transaction, &wanted)? else {
                    return Ok(Err(Error::NotFound { key: wanted }));
                };
                if let Err(error) = options.check_cursor(stream.last) {
                    return Ok(Err(error));
                }
                let entries = stream.entries(&transaction, options)?;
                Ok(Ok(options.page(entries, stream.last)))
            })
            .await?
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        Ok(self.find(key).await?.map(|stream| stream.fingerprint()))
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        Ok(self.find(key).await?.map(|stream| StreamInfo {
            last: stream.last,
            fingerprint: stream.fingerprint(),
        }))
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        let path = path.cloned();
        let parent = path.clone();
        let (below, here) = self
            .database
            .read(move |owner| {
                let transaction = owner.read()?;
                Ok((
                    child_paths(&transaction, parent.as_ref())?,
                    streams(&transaction, parent.as_ref())?,
                ))
            })
            .await?;
        let child = |name: &String| match &path {
            Some(path) => path.join(name),
            None => name.parse(),
        };
        Ok(Listing {
            paths: below.iter().map(child).collect::<Result<_>>()?,
            streams: here
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_>>()?,
        })
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        let key = key.clone();
        self.database
            .write(move |owner| {
                let transaction = owner.write(Durability::Full)?;
                let Some(stream) = Stream::find(&transaction, &key)? else {
                    return Ok(false);
                };
                for sql in [
                    "DELETE FROM log_entries WHERE stream = ?1",
                    "DELETE FROM log_streams WHERE id = ?1",
                ] {
                    transaction.prepare_cached(sql)?.execute([stream.id])?;
                }
                transaction.commit()?;
                Ok(true)
            })
            .await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        let (path, below, end) = subtree(path);
        self.database
            .write(move |owner| {
                let transaction = owner.write(Durability::Full)?;
                let bounds = params![path, below, end];
                transaction
                    .prepare_cached(
                        "DELETE FROM log_entries WHERE stream IN (SELECT id FROM log_streams
                         WHERE path = ?1 OR (path >= ?2 AND path < ?3))",
                    )?
                    .execute(bounds)?;
                let deleted = transaction
                    .prepare_cached(
                        "DELETE FROM log_streams WHERE path = ?1 OR (path >= ?2 AND path < ?3)",
                    )?
                    .execute(bounds)?;
                transaction.commit()?;
                Ok(deleted > 0)
            })
            .await
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        check_rename(from, to)?;
        let (from, target) = (from.clone(), to.clone());
        let moved = self
            .database
            .write(move |owner| {
                let transaction = owner.write(Durability::Full)?;
                let moved = rename(&transaction, &from, &target)?;
                transaction.commit()?;
                Ok(moved)
            })
            .await?;
        moved.ok_or_else(|| Error::PathExists { path: to.clone() })
    }
}

/// A row of the table of streams.
struct Stream {
    id: i64,
    last: u64,
}

impl Stream {
    fn find(connection: &Connection, key: &StreamKey) -> rusqlite::Result<Option<Self>> {
        connection
            .prepare_cached("SELECT id, last FROM log_streams WHERE path = ?1 AND stream = ?2")?
            .query_row(params![key.path.as_str(), key.stream.as_str()], |row| {
                Ok(Self {
                    id: row.get(0)?,
                    last: row.get(1)?,
                })
            })
            .optional()
    }

    fn fingerprint(&self) -> Fingerprint {
        // Row ids are never given out twice, so a stream begun anew differs from the one deleted.
        Fingerprint::new(format!("{}:{}", self.id, self.last))
    }

    fn entries(
        &self,
        connection: &Connection,
        options: ReadOptions,
    ) -> rusqlite::Result<Vec<Entry>> {
        let (sql, cursor) = match (options.order, options.cursor) {
            (Order::Ascending, cursor) => (
                "SELECT seq, time, data FROM log_entries WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                cursor,
            ),
            (Order::Descending, cursor) => (
                "SELECT seq, time, data FROM log_entries WHERE stream = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3",
                if cursor == 0 { self.last + 1 } else { cursor },
            ),
        };
        let limit = i64::try_from(options.limit.max(1)).unwrap_or(i64::MAX);
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![self.id, cursor, limit])?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let data: String = row.get(2)?;
            bytes += data.len();
            if !entries.is_empty() && bytes > MAX_PAGE_BYTES {
                break;
            }
            entries.push(Entry {
                seq: row.get(0)?,
                time: row.get(1)?,
                data: entry_data(data),
            });
        }
        Ok(entries)
    }
}

fn append(
    transaction: &Connection,
    key: &StreamKey,
    batch: &[NewEntry],
) -> rusqlite::Result<Appended> {
    let stream = match Stream::find(transaction, key)? {
        Some(stream) => stream,
        None => {
            transaction
                .prepare_cached("INSERT INTO log_streams (path, stream, last) VALUES (?1, ?2, 0)")?
                .execute(params![key.path.as_str(), key.stream.as_str()])?;
            Stream {
                id: transaction.last_insert_rowid(),
                last: 0,
            }
        }
    };
    let mut insert = transaction.prepare_cached(
        "INSERT INTO log_entries (stream, seq, time, data) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut last = stream.last;
    for entry in batch {
        last += 1;
        insert.execute(params![stream.id, last, entry.time, entry.data.get()])?;
    }
    transaction
        .prepare_cached("UPDATE log_streams SET last = ?2 WHERE id = ?1")?
        .execute(params![stream.id, last])?;
    Ok(Appended {
        first: stream.last + 1,
        last,
        fingerprint: Stream { last, ..stream }.fingerprint(),
    })
}

/// Moves what is at and below a path; `None` when there is something at the new one.
fn rename(
    transaction: &Connection,
    from: &LogPath,
    to: &LogPath,
) -> rusqlite::Result<Option<bool>> {
    let (path, below, end) = subtree(from);
    let (to_path, to_below, to_end) = subtree(to);
    let is_there =
        "SELECT EXISTS (SELECT 1 FROM log_streams WHERE path = ?1 OR (path >= ?2 AND path < ?3))";
    let exists = |bounds: [&str; 3]| {
        transaction
            .prepare_cached(is_there)?
            .query_row(bounds, |row| row.get::<_, bool>(0))
    };
    if !exists([&path, &below, &end])? {
        return Ok(Some(false));
    }
    if exists([&to_path, &to_below, &to_end])? {
        return Ok(None);
    }
    // `substr` counts characters, and paths are ASCII.
    let rest = path.len() + 1;
    transaction
        .prepare_cached(
            "UPDATE log_streams SET path = ?4 || substr(path, ?5)
             WHERE path = ?1 OR (path >= ?2 AND path < ?3)",
        )?
        .execute(params![path, below, end, to_path, rest])?;
    Ok(Some(true))
}

fn entry_data(text: String) -> EntryData {
    let length = text.len() as u64;
    match RawValue::from_string(text) {
        Ok(data) => EntryData::Json(data),
        Err(error) => EntryData::Damaged(Damage {
            offset: 0,
            length,
            reason: error.to_string(),
        }),
    }
}

/// Returns a path and the bounds of the texts that lie below it: from `path/` to before `path0`, `0` being the character after `/`.
fn subtree(path: &LogPath) -> (String, String, String) {
    (path.to_string(), format!("{path}/"), format!("{path}0"))
}

/// Returns the sorted names of the paths one segment below.
fn child_paths(
    connection: &Connection,
    parent: Option<&LogPath>,
) -> rusqlite::Result<BTreeSet<String>> {
    let (below, end) = match parent {
        Some(path) => {
            let (_, below, end) = subtree(path);
            (below, end)
        }
        // Every character of a path sorts before `~`.
        None => (String::new(), "~".to_owned()),
    };
    let mut statement = connection
        .prepare_cached("SELECT DISTINCT path FROM log_streams WHERE path >= ?1 AND path < ?2")?;
    let mut rows = statement.query(params![below, end])?;
    let mut names = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let path: String = row.get(0)?;
        let rest = path.strip_prefix(below.as_str()).unwrap_or(&path);
        names.extend(rest.split('/').next().map(str::to_owned));
    }
    Ok(names)
}

fn streams(connection: &Connection, path: Option<&LogPath>) -> rusqlite::Result<Vec<String>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let mut statement = connection
        .prepare_cached("SELECT stream FROM log_streams WHERE path = ?1 ORDER BY stream")?;
    let rows = statement.query_map([path.as_str()], |row| row.get(0))?;
    rows.collect()
}

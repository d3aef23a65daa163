//! Connections: opening, and moving a damaged file aside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::sqlite::check::quick_check;
use crate::sqlite::database::SqliteOptions;
use crate::sqlite::failure::error;
use crate::sqlite::{file_system, schema};

const READERS: usize = 2;
const STATEMENTS: usize = 64;
/// How much a reader keeps of what it has read, in KiB as a negative number: the texts of 100,000 records.
const READER_CACHE: i64 = -12 * 1024;

/// What a crash of the machine may do to a database while its schema is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crash {
    /// Nothing.
    Survived,
    /// Damage it: it can be rebuilt.
    Damages,
}

/// Opens the connection that writes and brings the schema up to date.
pub(super) fn connect(options: &SqliteOptions) -> Result<Connection> {
    prepared(options, Crash::Survived)
}

fn prepared(options: &SqliteOptions, crash: Crash) -> Result<Connection> {
    let path = display_path(options);
    if let Some(path) = &options.path {
        refuse_what_is_no_file(path)?;
        create_private(path).map_err(|source| Error::io("open", path, source))?;
    }
    let prepare = || {
        let mut connection = raw(options)?;
        if crash == Crash::Damages {
            connection.pragma_update(None, "synchronous", "OFF")?;
        }
        if let Some(path) = &options.path {
            choose_journal(&connection, path, options)?;
        }
        let found = schema::prepare(&mut connection, &options.namespaces)?;
        if crash == Crash::Damages {
            connection.pragma_update(None, "synchronous", "NORMAL")?;
        }
        Ok((connection, found))
    };
    let (connection, found) = prepare().map_err(|source| error(path, source))?;
    if found > schema::FORMAT {
        return Err(Error::NewerFormat {
            path: path.to_owned(),
            found,
            supported: schema::FORMAT,
        });
    }
    Ok(connection)
}

/// Opens like [`connect`] and checks the whole file; a damaged one is moved aside first.
pub(super) fn connect_or_replace(options: &SqliteOptions) -> Result<(Connection, Option<PathBuf>)> {
    let checked = prepared(options, Crash::Damages).and_then(|connection| {
        quick_check(&connection, display_path(options))?;
        Ok(connection)
    });
    match (checked, &options.path) {
        (Err(Error::Corrupt { .. }), Some(path)) => {
            let aside = move_aside(path)?;
            Ok((prepared(options, Crash::Damages)?, Some(aside)))
        }
        (checked, _) => Ok((checked?, None)),
    }
}

/// Opens the connections that only read; none for a database in memory.
pub(super) fn readers(options: &SqliteOptions) -> Result<Vec<Connection>> {
    let Some(path) = &options.path else {
        return Ok(Vec::new());
    };
    let reader = || {
        let connection = raw(options)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", READER_CACHE)?;
        Ok(connection)
    };
    (0..READERS)
        .map(|_| reader().map_err(|source| error(path, source)))
        .collect()
}

fn raw(options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = match &options.path {
        Some(path) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags)?
        }
        None => Connection::open_in_memory()?,
    };
    connection.busy_timeout(options.busy_timeout)?;
    // Else a statement is parsed anew for almost every other bound value, lest its plan depends on it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// Sets the write-ahead log, or the journal that works on every file system.
fn choose_journal(
    connection: &Connection,
    path: &Path,
    options: &SqliteOptions,
) -> rusqlite::Result<()> {
    let kind = options.file_system.or_else(|| file_system::kind_of(path));
    if let Some(name) = kind.and_then(file_system::shared) {
        tracing::warn!(
            path = %path.display(),
            "the database is on {name}: it works without a write-ahead log there, so readers and writers wait for each other"
        );
        // Else the shared memory of the log would be used once more to leave it.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        set_journal(connection, "DELETE")?;
        connection.pragma_update(None, "locking_mode", "NORMAL")?;
        // The lock is given back by the next use.
        return connection.query_row("PRAGMA user_version", [], |_| Ok(()));
    }
    let set = set_journal(connection, "WAL")?;
    if set != "wal" {
        tracing::warn!(
            path = %path.display(),
            "the database can't have a write-ahead log here (its journal is {set:?}), so readers and writers wait for each other"
        );
    }
    Ok(())
}

/// Asks for a journal mode and returns the one that is set.
fn set_journal(connection: &Connection, mode: &str) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))
}

/// Says that a directory or a pipe is no database: to open a pipe would wait for whoever is at its other end.
fn refuse_what_is_no_file(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(Error::Corrupt {
            path: path.to_owned(),
            source: "it is not a regular file".into(),
        }),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("open", path, source))
        }
        _ => Ok(()),
    }
}

/// Creates the file before SQLite does: its companions take over its permissions.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.create(true).read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn move_aside(path: &Path) -> Result<PathBuf> {
    let aside = (1..)
        .map(|n: u32| with_suffix(path, &format!(".corrupt-{n}")))
        .find(|aside| !aside.exists())
        .unwrap_or_else(|| with_suffix(path, ".corrupt"));
    fs::rename(path, &aside).map_err(|source| Error::io("move aside", path, source))?;
    for companion in ["-wal", "-shm", "-journal"] {
        let from = with_suffix(path, companion);
        match fs::rename(&from, with_suffix(&aside, companion)) {
            Ok(()) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io("move aside", from, source)),
        }
    }
    Ok(aside)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn display_path(options: &SqliteOptions) -> &Path {
    options
        .path
        .as_deref()
        .unwrap_or_else(|| Path::new(":memory:"))
}

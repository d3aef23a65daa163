//! The one error type of both traits and every back end.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::log::{LogPath, StreamKey};

/// A result whose error defaults to this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a storage operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A promotion found a complete copy of the path in the real storage.
    #[error(
        "{path} exists already in the real storage; discard the staged copy or choose another path"
    )]
    AlreadyExists {
        /// The path that exists.
        path: LogPath,
    },
    /// The back end failed in a way that no other variant describes.
    #[error("the {backend} storage failed")]
    Backend {
        /// The back end, for example `sqlite`.
        backend: &'static str,
        /// What the back end said.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Another program kept the database locked for longer than the busy timeout.
    #[error("{} is locked by another program; try again when it has finished", path.display())]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// The storage was closed, or one of its threads ended.
    #[error("the storage is closed")]
    Closed,
    /// The database is damaged, or the file is no database.
    #[error("{} is damaged or is not a database; move it aside to start with an empty one", path.display())]
    Corrupt {
        /// The database file.
        path: PathBuf,
        /// What the back end said.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The file on disk is damaged in a way that can't be served around.
    #[error("{} is damaged at byte {offset}: {reason}", path.display())]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Where the damage begins, in bytes from the start of the file.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The stream was being deleted when the append arrived; nothing was written.
    #[error("{key} was deleted while the append waited")]
    Deleted {
        /// The deleted stream.
        key: StreamKey,
    },
    /// An append of nothing was asked for.
    #[error("an append needs at least one entry")]
    EmptyBatch,
    /// A value can't be written as JSON.
    #[error("the entry can't be written as JSON")]
    Encode {
        /// What the serializer said.
        source: serde_json::Error,
    },
    /// An entry is larger than the back end accepts; nothing of its batch was written.
    #[error("the entry has {size} bytes, {limit} are allowed")]
    EntryTooLarge {
        /// The size of the payload in bytes.
        size: u64,
        /// The largest accepted size in bytes.
        limit: u64,
    },
    /// A cursor does not belong to this stream or to this way of listing.
    #[error("the cursor {cursor:?} is not valid here: {reason}; start again without a cursor")]
    InvalidCursor {
        /// The cursor as given.
        cursor: String,
        /// Why it can't be used.
        reason: &'static str,
    },
    /// A path or an id breaks the rules for names.
    #[error("invalid {kind} {value:?}: {reason}")]
    InvalidId {
        /// `path` or `stream id`.
        kind: &'static str,
        /// The text as given, cut after 200 characters.
        value: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A path can't be moved there.
    #[error("{from} can't be moved to {to}: {reason}")]
    InvalidRename {
        /// The path to be moved.
        from: LogPath,
        /// Where it was to go.
        to: LogPath,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The operating system refused an operation.
    #[error("can't {operation} {}", path.display())]
    Io {
        /// What was tried, for example `open`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process, or another storage of this process, owns the directory.
    #[error(
        "{} is in use by {}; stop it first",
        path.display(),
        holder.as_ref().map_or_else(|| "another program".to_owned(), Holder::to_string)
    )]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// Who says to hold it, when that could be read.
        holder: Option<Holder>,
    },
    /// The data was written by a newer version of this crate.
    #[error("{} has format {found}, this program knows formats up to {supported}; use a newer version", path.display())]
    NewerFormat {
        /// The directory or the file.
        path: PathBuf,
        /// The format found.
        found: u64,
        /// The newest format known here.
        supported: u64,
    },
    /// There is no such stream.
    #[error("there is no stream {key}")]
    NotFound {
        /// The stream.
        key: StreamKey,
    },
    /// A promotion names a path that is not staged.
    #[error("{path} is not staged")]
    NotStaged {
        /// The path.
        path: LogPath,
    },
    /// A path was to be moved to where something is already; nothing was moved.
    #[error("there is something at {path} already; move or delete that first")]
    PathExists {
        /// The path that is taken.
        path: LogPath,
    },
    /// The disk refused to flush the stream: the append is not acknowledged, the next use of the stream recovers it.
    #[error(
        "{key} could not be flushed to disk; its next use cuts back to the last acknowledged entry"
    )]
    Poisoned {
        /// The stream.
        key: StreamKey,
        /// What the operating system said.
        source: io::Error,
    },
    /// The storage was opened for reading only.
    #[error("the storage is open for reading only")]
    ReadOnly,
    /// The disk, a quota or the largest file size is used up; the stream was cut back to its last entry.
    #[error("no space left to write {}; free some and try again", path.display())]
    StorageFull {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A filter names a field that the namespace does not declare.
    #[error("namespace {namespace:?} has no field {field:?}; declared are {declared:?}")]
    UnknownField {
        /// The namespace.
        namespace: String,
        /// The field as given.
        field: String,
        /// The fields that were declared when the database was opened.
        declared: Vec<String>,
    },
    /// A namespace was not declared when the storage was opened.
    #[error("there is no namespace {name:?}; declared are {declared:?}")]
    UnknownNamespace {
        /// The namespace as given.
        name: String,
        /// The namespaces that were declared.
        declared: Vec<String>,
    },
}

impl Error {
    /// Wraps what the operating system said about a path; a full disk becomes [`Error::StorageFull`].
    pub fn io(operation: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_owned();
        if is_full(&source) {
            return Self::StorageFull { path, source };
        }
        Self::Io {
            operation,
            path,
            source,
        }
    }

    /// Wraps the failure of a back end that has no variant of its own.
    pub fn backend(
        backend: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Backend {
            backend,
            source: source.into(),
        }
    }
}

/// Tells whether the operating system has no space left.
pub(crate) fn is_full(source: &io::Error) -> bool {
    matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Who holds a data directory: information from its lock file, which may be outdated.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// Where its server listens, once it has announced it.
    pub address: Option<String>,
    /// The name of its machine.
    pub host: Option<String>,
    /// When it opened the directory, in milliseconds since the epoch, if it said so.
    pub started_at: Option<i64>,
}

impl Holder {
    /// Makes a holder that only names its process.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            address: None,
            host: None,
            started_at: None,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        if let Some(address) = &self.address {
            write!(f, " at {address}")?;
        }
        Ok(())
    }
}

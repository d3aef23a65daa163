//! The database handle: options, opening, and the way to its threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::record::Namespace;
use crate::sqlite::check;
use crate::sqlite::failure;
use crate::sqlite::log::SqliteLogStorage;
use crate::sqlite::open;
use crate::sqlite::record::SqliteRecordStorage;
use crate::sqlite::worker::{Owner, Worker};

/// How a database is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// The database file, created if needed in an existing directory; `None` = in memory.
    pub path: Option<PathBuf>,
    /// The namespaces of its records.
    pub namespaces: Vec<Namespace>,
    /// How long to wait for another program's lock before [`Error::Busy`]; 5 seconds by default.
    pub busy_timeout: Duration,
    /// When a change of a record is safe; logs are always flushed.
    pub durability: Durability,
    /// The type of the file system that the file is on, as `statfs` gives it in `f_type`; asked for by default.
    ///
    /// On network file systems and on those of FUSE there is no write-ahead log: its shared memory works on one machine only.
    pub file_system: Option<u64>,
}

impl SqliteOptions {
    /// Opens a database file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::in_memory()
        }
    }

    /// Opens an empty database that ends with its last handle.
    pub fn in_memory() -> Self {
        Self {
            path: None,
            namespaces: Vec::new(),
            busy_timeout: Duration::from_secs(5),
            durability: Durability::Normal,
            file_system: None,
        }
    }

    /// Declares the namespaces of the records.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = Namespace>) -> Self {
        self.namespaces = namespaces.into_iter().collect();
        self
    }

    /// Sets how long to wait for another program's lock.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets when a change of a record is safe.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the type of the file system that the file is on.
    #[must_use]
    pub fn file_system(mut self, kind: u64) -> Self {
        self.file_system = Some(kind);
        self
    }
}

/// When a change of a record is safe.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Durability {
    /// It survives a crash of the machine.
    Full,
    /// It survives a crash of the process; a crash of the machine may undo the newest changes, never half of one.
    #[default]
    Normal,
}

/// A database that [`SqliteDatabase::open_or_replace`] opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct Opened {
    /// The database.
    pub database: SqliteDatabase,
    /// Where the damaged file was moved; `None` when it was sound.
    pub replaced: Option<PathBuf>,
}

/// A handle to one database; cloning is cheap, the last one to go closes it.
///
/// Dropping the last handle waits for what its threads are doing.
#[derive(Clone, Debug)]
pub struct SqliteDatabase {
    shared: Arc<Shared>,
}

impl SqliteDatabase {
    /// Opens a database and starts its threads; blocks while it does.
    ///
    /// # Errors
    ///
    /// - [`Error::Corrupt`] for a damaged file, one that is no database, or something that is no file;
    /// - [`Error::NewerFormat`] for a database of a newer version, which is left as it is;
    /// - [`Error::Busy`] when another program locks it for longer than the busy timeout;
    /// - [`Error::StorageFull`] when there is no room;
    /// - [`Error::Io`] for what the operating system refuses: with
    ///   [`PermissionDenied`](std::io::ErrorKind::PermissionDenied) or
    ///   [`ReadOnlyFilesystem`](std::io::ErrorKind::ReadOnlyFilesystem) when it may not be read or written.
    ///
    /// Every call on the database may fail with the same errors later. Damage deep inside is [`Error::Corrupt`] when it is met;
    /// [`check`](Self::check) looks for all of it.
    pub fn open(options: SqliteOptions) -> Result<Self> {
        let connection = open::connect(&options)?;
        Self::start(options, connection)
    }

    /// Opens a database whose content can be rebuilt: a damaged file is moved aside and an empty one takes its place.
    ///
    /// The damaged file is kept beside as `<name>.corrupt-<n>`. The whole file is checked, which takes about a millisecond per
    /// megabyte. Blocks while it does.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), except [`Error::Corrupt`].
    pub fn open_or_replace(options: SqliteOptions) -> Result<Opened> {
        let (connection, replaced) = open::connect_or_replace(&options)?;
        Ok(Opened {
            database: Self::start(options, connection)?,
            replaced,
        })
    }

    /// Looks for damage in the whole file: its structure, the checksum of every record, and whether the indexes hold what the records say.
    ///
    /// It reads on a connection of its own, beside other work, and takes about 10 milliseconds per thousand records.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] that says what was found first, and those of [`open`](Self::open).
    pub async fn check(&self) -> Result<()> {
        let namespaces: Vec<_> = self.shared.namespaces.values().cloned().collect();
        let path = self.path().to_owned();
        let found = self.read(move |owner| check::first_damage(&*owner.read()?, &namespaces));
        match found.await? {
            None => Ok(()),
            Some(what) => Err(Error::Corrupt {
                path,
                source: what.into(),
            }),
        }
    }

    /// Returns the records of this database.
    pub fn records(&self) -> SqliteRecordStorage {
        SqliteRecordStorage::new(self.clone())
    }

    /// Returns the logs of this database.
    pub fn log(&self) -> SqliteLogStorage {
        SqliteLogStorage::new(self.clone())
    }

    fn start(options: SqliteOptions, connection: Connection) -> Result<Self> {
        let readers = open::readers(&options)?;
        let path = options.path.unwrap_or_else(|| PathBuf::from(":memory:"));
        let worker = |name: &str, connection| {
            Worker::start(name, connection)
                .map_err(|source| Error::io("start a thread for", &path, source))
        };
        let writer = worker("openvaala-sqlite-write", connection)?;
        let readers = readers
            .into_iter()
            .map(|connection| worker("openvaala-sqlite-read", connection))
            .collect::<Result<_>>()?;
        let namespaces = options.namespaces.into_iter();
        Ok(Self {
            shared: Arc::new(Shared {
                namespaces: namespaces
                    .map(|it| (it.name.clone(), Arc::new(it)))
                    .collect(),
                durability: options.durability,
                path,
                writer,
                readers,
            }),
        })
    }

    /// Returns the declaration of a namespace.
    pub(super) fn namespace(&self, name: &str) -> Result<Arc<Namespace>> {
        match self.shared.namespaces.get(name) {
            Some(namespace) => Ok(Arc::clone(namespace)),
            None => {
                let mut declared: Vec<_> = self.shared.namespaces.keys().cloned().collect();
                declared.sort();
                Err(Error::UnknownNamespace {
                    name: name.to_owned(),
                    declared,
                })
            }
        }
    }

    pub(super) fn durability(&self) -> Durability {
        self.shared.durability
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs a job on the thread that owns the writing connection.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Owner) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(&self.shared.writer, job).await
    }

    /// Runs a job on the least busy reader; an in-memory database has only its owner.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Owner) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let reader = self
            .shared
            .readers
            .iter()
            .min_by_key(|reader| reader.waiting());
        self.run(reader.unwrap_or(&self.shared.writer), job).await
    }

    async fn run<T: Send + 'static>(
        &self,
        worker: &Worker,
        job: impl FnOnce(&mut Owner) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        match worker.run(job).await {
            Some(result) => result.map_err(|source| failure::error(self.path(), source)),
            None => Err(Error::Closed),
        }
    }
}

#[derive(Debug)]
struct Shared {
    namespaces: HashMap<String, Arc<Namespace>>,
    durability: Durability,
    path: PathBuf,
    writer: Worker,
    readers: Vec<Worker>,
}

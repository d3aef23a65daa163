//! Where the rows lie: a place whose storage can be opened, set aside and replaced.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use openvaala_storage::{Error, RecordStorage};

/// What was opened.
#[derive(Debug)]
pub(crate) struct OpenedIndex {
    pub(crate) records: Arc<dyn RecordStorage>,
    /// Where a damaged one was put that lay there.
    pub(crate) aside: Option<PathBuf>,
}

/// A place for an index. Nobody holds what was opened there when something is moved.
#[async_trait]
pub(crate) trait Place: Debug + Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> String;

    /// Opens what lies there or makes it; a damaged one is set aside.
    async fn open(&self) -> Result<OpenedIndex, Error>;

    /// Moves what lies there out of the way and keeps it.
    async fn set_aside(&self) -> Result<Option<PathBuf>, Error>;

    /// Makes an empty one beside it, in place of one that an interrupted rebuild has left.
    async fn beside(&self) -> Result<Arc<dyn RecordStorage>, Error>;

    /// Puts the one beside in the place of what lies there: after a crash one of the two lies there, whole, or none.
    async fn take_place(&self) -> Result<(), Error>;

    /// Makes an empty one in memory.
    fn in_memory(&self) -> Result<Arc<dyn RecordStorage>, Error>;
}

#[cfg(all(feature = "file", feature = "sqlite"))]
pub(crate) use self::data_dir::DataDirIndex;

#[cfg(all(feature = "file", feature = "sqlite"))]
mod data_dir {
    use std::fs::{self, File};
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use async_trait::async_trait;
    use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
    use openvaala_storage::{Error, RecordStorage};

    use super::{OpenedIndex, Place};
    use crate::dao::index::namespaces;

    /// How long another program's lock is waited for; the rows wait in memory, so it need not be long.
    const BUSY: Duration = Duration::from_secs(1);
    /// What SQLite keeps beside a database.
    const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

    /// The file `metadata.db` of a data directory.
    #[derive(Debug)]
    pub(crate) struct DataDirIndex {
        path: PathBuf,
    }

    impl DataDirIndex {
        pub(crate) fn new(data_dir: &Path) -> Self {
            Self {
                path: data_dir.join("metadata.db"),
            }
        }

        fn beside_path(&self) -> PathBuf {
            with_suffix(&self.path, ".new")
        }
    }

    #[async_trait]
    impl Place for DataDirIndex {
        fn name(&self) -> String {
            self.path.display().to_string()
        }

        async fn open(&self) -> Result<OpenedIndex, Error> {
            let options = options(self.path.clone());
            blocking(move || {
                let opened = SqliteDatabase::open_or_replace(options)?;
                Ok(OpenedIndex {
                    records: Arc::new(opened.database.records()),
                    aside: opened.replaced,
                })
            })
            .await
        }

        async fn set_aside(&self) -> Result<Option<PathBuf>, Error> {
            let path = self.path.clone();
            blocking(move || set_aside(&path)).await
        }

        async fn beside(&self) -> Result<Arc<dyn RecordStorage>, Error> {
            let path = self.beside_path();
            blocking(move || {
                remove_with_companions(&path)?;
                let database = SqliteDatabase::open(options(path))?;
                Ok(Arc::new(database.records()) as Arc<dyn RecordStorage>)
            })
            .await
        }

        async fn take_place(&self) -> Result<(), Error> {
            let (new, path) = (self.beside_path(), self.path.clone());
            blocking(move || take_place(&new, &path)).await
        }

        fn in_memory(&self) -> Result<Arc<dyn RecordStorage>, Error> {
            let options = SqliteOptions::in_memory().namespaces(namespaces());
            Ok(Arc::new(SqliteDatabase::open(options)?.records()))
        }
    }

    fn options(path: PathBuf) -> SqliteOptions {
        SqliteOptions::file(path)
            .namespaces(namespaces())
            .busy_timeout(BUSY)
    }

    async fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The runtime that runs it stops.
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or(Err(Error::Closed))
    }

    fn set_aside(path: &Path) -> Result<Option<PathBuf>, Error> {
        let aside = (1..)
            .map(|n: u32| with_suffix(path, &format!(".corrupt-{n}")))
            .find(|aside| !aside.exists());
        let aside = aside.unwrap_or_else(|| with_suffix(path, ".corrupt"));
        match fs::rename(path, &aside) {
            Ok(()) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::io("move aside", path, source)),
        }
        for companion in COMPANIONS {
            let from = with_suffix(path, companion);
            if let Err(source) = fs::rename(&from, with_suffix(&aside, companion))
                && source.kind() != io::ErrorKind::NotFound
            {
                return Err(Error::io("move aside", from, source));
            }
        }
        Ok(Some(aside))
    }

    /// A write-ahead log that the old file has left must never meet the new file: it is from another database.
    fn take_place(new: &Path, path: &Path) -> Result<(), Error> {
        let synced = File::open(new).and_then(|file| file.sync_all());
        synced.map_err(|source| Error::io("sync", new, source))?;
        if COMPANIONS
            .iter()
            .any(|companion| with_suffix(path, companion).exists())
        {
            remove_with_companions(path)?;
        }
        fs::rename(new, path).map_err(|source| Error::io("rename", new, source))?;
        let parent = path.parent().unwrap_or_else(|| Path::new("."));
        let synced = File::open(parent).and_then(|dir| dir.sync_all());
        synced.map_err(|source| Error::io("sync", parent, source))
    }

    fn remove_with_companions(path: &Path) -> Result<(), Error> {
        let companions = COMPANIONS.map(|companion| with_suffix(path, companion));
        for path in [path.to_owned()].into_iter().chain(companions) {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", path, source));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    }
}

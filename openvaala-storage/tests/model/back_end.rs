//! The back ends, made and opened again.

use std::sync::Arc;

use openvaala_storage::conformance::record::namespaces;
use openvaala_storage::file::{FileOptions, FileStorage};
use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_storage::{LogStorage, RecordStorage, StagedLogStorage, StagedRecordStorage};
use tempfile::TempDir;

/// What is opened in a directory, once and again.
pub(super) trait BackEnd<S: ?Sized>: 'static {
    /// Opens it; what was opened before is closed by then.
    fn open(dir: &TempDir) -> Box<S>;

    /// Whether it outlives being closed.
    const LASTS: bool = true;
}

pub(super) struct Files;
pub(super) struct SqliteOnDisk;
pub(super) struct SqliteInMemory;
/// Some of the paths are staged in memory, the others lie in files.
pub(super) struct StagedInBoth;

fn on_disk(dir: &TempDir) -> SqliteDatabase {
    let options = SqliteOptions::file(dir.path().join("test.db"));
    SqliteDatabase::open(options.namespaces(namespaces())).unwrap()
}

fn in_memory() -> SqliteDatabase {
    SqliteDatabase::open(SqliteOptions::in_memory().namespaces(namespaces())).unwrap()
}

fn files(dir: &TempDir) -> FileStorage {
    FileStorage::open(FileOptions::new(dir.path().join("data"))).unwrap()
}

impl BackEnd<dyn LogStorage> for Files {
    fn open(dir: &TempDir) -> Box<dyn LogStorage> {
        Box::new(files(dir))
    }
}

impl BackEnd<dyn LogStorage> for SqliteOnDisk {
    fn open(dir: &TempDir) -> Box<dyn LogStorage> {
        Box::new(on_disk(dir).log())
    }
}

impl BackEnd<dyn LogStorage> for SqliteInMemory {
    fn open(_: &TempDir) -> Box<dyn LogStorage> {
        Box::new(in_memory().log())
    }

    const LASTS: bool = false;
}

impl BackEnd<dyn LogStorage> for StagedInBoth {
    fn open(dir: &TempDir) -> Box<dyn LogStorage> {
        let storage = StagedLogStorage::new(Arc::new(files(dir)), in_memory().log());
        for path in ["c/ab", "d"] {
            storage.stage(&path.parse().unwrap());
        }
        Box::new(storage)
    }

    const LASTS: bool = false;
}

impl BackEnd<dyn RecordStorage> for SqliteOnDisk {
    fn open(dir: &TempDir) -> Box<dyn RecordStorage> {
        Box::new(on_disk(dir).records())
    }
}

impl BackEnd<dyn RecordStorage> for SqliteInMemory {
    fn open(_: &TempDir) -> Box<dyn RecordStorage> {
        Box::new(in_memory().records())
    }

    const LASTS: bool = false;
}

impl BackEnd<dyn RecordStorage> for StagedInBoth {
    fn open(dir: &TempDir) -> Box<dyn RecordStorage> {
        let real = Arc::new(on_disk(dir).records());
        Box::new(StagedRecordStorage::new(real, in_memory().records()))
    }
}

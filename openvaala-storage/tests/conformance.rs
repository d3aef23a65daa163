//! Every back end, and every wrapper, passes the suites.

use std::sync::Arc;

use openvaala_storage::conformance::record::namespaces;
use openvaala_storage::file::{FileOptions, FileStorage};
use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_storage::{
    LogStorage, RecordStorage, StagedLogStorage, StagedRecordStorage, log_storage_conformance,
    log_storage_durability, record_storage_conformance,
};
use tempfile::TempDir;

fn memory() -> SqliteDatabase {
    SqliteDatabase::open(SqliteOptions::in_memory().namespaces(namespaces())).unwrap()
}

fn on_disk() -> (SqliteDatabase, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions::file(dir.path().join("test.db")).namespaces(namespaces());
    (SqliteDatabase::open(options).unwrap(), dir)
}

fn files() -> (FileStorage, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (
        FileStorage::open(FileOptions::new(dir.path().join("data"))).unwrap(),
        dir,
    )
}

mod file {
    use super::*;

    log_storage_conformance!(|| async { files() });
}

mod file_opened_again {
    use super::*;

    fn open(dir: &TempDir) -> FileStorage {
        FileStorage::open(FileOptions::new(dir.path().join("data"))).unwrap()
    }

    log_storage_durability!(|| async { files() }, |(storage, dir)| async move {
        drop(storage);
        (open(&dir), dir)
    });
}

mod sqlite_log_opened_again {
    use openvaala_storage::sqlite::SqliteLogStorage;

    use super::*;

    type Made = (SqliteLogStorage, TempDir);

    async fn reopen((storage, dir): Made) -> Made {
        drop(storage);
        let options = SqliteOptions::file(dir.path().join("test.db")).namespaces(namespaces());
        (SqliteDatabase::open(options).unwrap().log(), dir)
    }

    log_storage_durability!(
        || async {
            let (database, dir) = on_disk();
            (database.log(), dir)
        },
        reopen
    );
}

mod file_behind_a_pointer {
    use super::*;

    log_storage_conformance!(|| async {
        let (storage, dir) = files();
        (Arc::new(storage) as Arc<dyn LogStorage>, dir)
    });
}

mod file_with_one_open_file_and_one_thread {
    use super::*;

    log_storage_conformance!(|| async {
        let dir = tempfile::tempdir().unwrap();
        let options = FileOptions::new(dir.path()).open_files(1).flush_threads(1);
        (FileStorage::open(options).unwrap(), dir)
    });
}

mod sqlite_log_in_memory {
    use super::*;

    log_storage_conformance!(|| async { (memory().log(), ()) });
}

mod sqlite_log_on_disk {
    use super::*;

    log_storage_conformance!(|| async {
        let (database, dir) = on_disk();
        (database.log(), dir)
    });
}

mod staged_log_in_memory {
    use super::*;

    // Everything that the suite uses is staged.
    log_storage_conformance!(|| async {
        let (real, dir) = files();
        let storage = StagedLogStorage::new(Arc::new(real), memory().log());
        for path in ["c", "d", "t"] {
            storage.stage(&path.parse().unwrap());
        }
        (storage, dir)
    });
}

mod staged_log_in_both {
    use super::*;

    log_storage_conformance!(|| async {
        let (real, dir) = files();
        let storage = StagedLogStorage::new(Arc::new(real), memory().log());
        for path in ["c/one/deep", "c/ab/deep", "c/abc", "c/3", "d"] {
            storage.stage(&path.parse().unwrap());
        }
        (storage, dir)
    });
}

mod sqlite_records_in_memory {
    use super::*;

    record_storage_conformance!(|| async { (memory().records(), ()) });
}

mod sqlite_records_on_disk {
    use super::*;

    record_storage_conformance!(|| async {
        let (database, dir) = on_disk();
        (Arc::new(database.records()) as Arc<dyn RecordStorage>, dir)
    });
}

mod staged_records {
    use super::*;

    record_storage_conformance!(|| async {
        let (real, dir) = on_disk();
        let storage = StagedRecordStorage::new(Arc::new(real.records()), memory().records());
        (storage, dir)
    });
}

//! File systems without a write-ahead log.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pretty_assertions::assert_eq;
use rusqlite::Connection;

use super::{SPACE, keys, options, record};
use crate::record::{ListOptions, RecordStorage};
use crate::sqlite::{Durability, SqliteDatabase};

const NFS: u64 = 0x6969;
const FUSE: u64 = 0x6573_5546;
const CIFS: u64 = 0xff53_4d42;
const EXT4: u64 = 0xef53;

async fn journal(database: &SqliteDatabase) -> String {
    let mode = database.write(|owner| {
        owner
            .read()?
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
    });
    mode.await.unwrap()
}

fn companions(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "test.db").collect();
    names.sort();
    names
}

#[tokio::test]
async fn x_18_on_a_network_file_system_there_is_no_write_ahead_log() {
    for kind in [NFS, FUSE, CIFS] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.db");
        // It was on another file system before, and is copied back later.
        for (kind, expected) in [
            (EXT4, "wal"),
            (kind, "delete"),
            (EXT4, "wal"),
            (kind, "delete"),
        ] {
            let database = SqliteDatabase::open(options(&path).file_system(kind)).unwrap();
            assert_eq!(journal(&database).await, expected, "{kind:x}");
            let records = database.records();
            records
                .set(SPACE, record(expected, 1, "new"))
                .await
                .unwrap();
            let wal: &[&str] = match expected {
                "wal" => &["test.db-shm", "test.db-wal"],
                _ => &[],
            };
            assert_eq!(companions(&path), wal, "{kind:x}");
            let found = keys(&records, ListOptions::default().filter("status", "new")).await;
            assert!(found.contains(&expected.to_owned()));
        }
    }
}

#[tokio::test]
async fn x_18_without_a_write_ahead_log_other_programs_may_read_and_a_change_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let database = SqliteDatabase::open(options(&path).file_system(NFS)).unwrap();
    let other = Connection::open(&path).unwrap();
    let count = |other: &Connection| {
        other.query_row("SELECT count(*) FROM records", [], |row| {
            row.get::<_, u32>(0)
        })
    };
    assert_eq!(count(&other).unwrap(), 0);
    let records = database.records();
    records.set(SPACE, record("a", 1, "new")).await.unwrap();
    assert_eq!(count(&other).unwrap(), 1);
    let journal = dir.path().join("test.db-journal");
    let mode = database.write(move |owner| {
        let transaction = owner.write(Durability::Normal)?;
        transaction.execute("DELETE FROM records", [])?;
        Ok(fs::metadata(journal).unwrap().permissions().mode() & 0o777)
    });
    assert_eq!(mode.await.unwrap(), 0o600);
    assert_eq!(count(&other).unwrap(), 1);
}

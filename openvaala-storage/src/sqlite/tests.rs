//! What only the SQLite back end can get wrong: broken files, other programs, declarations.

mod damage;
mod place;
mod search;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use futures::future::join;
use pretty_assertions::assert_eq;
use rusqlite::{Connection, StatementStatus};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::log::{LogStorage, LogStorageExt, StreamKey};
use crate::record::{ListOptions, Namespace, Record, RecordStorage, SortBy};
use crate::sqlite::list::{Lead, Query};
use crate::sqlite::{Durability, SqliteDatabase, SqliteOptions, SqliteRecordStorage};

const SPACE: &str = "main";

fn options(path: &Path) -> SqliteOptions {
    SqliteOptions::file(path).namespaces([Namespace::new(SPACE, ["status"])])
}

fn record(key: &str, time: i64, status: &str) -> Record {
    let data = format!("{{\"status\":\"{status}\"}}");
    Record::new(key, time, RawValue::from_string(data).unwrap())
}

async fn keys(records: &SqliteRecordStorage, options: ListOptions) -> Vec<String> {
    let page = records.list(SPACE, options).await.unwrap();
    page.records.into_iter().map(|record| record.key).collect()
}

fn stream() -> StreamKey {
    StreamKey::new("c/one".parse().unwrap(), "s".parse().unwrap())
}

#[tokio::test]
async fn records_and_logs_are_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let database = SqliteDatabase::open(options(&path).durability(Durability::Full)).unwrap();
    database
        .records()
        .set(SPACE, record("a", 1, "new"))
        .await
        .unwrap();
    let appended = database
        .log()
        .append_json(&stream(), 1, &[1, 2])
        .await
        .unwrap();
    drop(database);
    let database = SqliteDatabase::open(options(&path)).unwrap();
    assert!(database.records().get(SPACE, "a").await.unwrap().is_some());
    let fingerprint = database.log().fingerprint(&stream()).await.unwrap();
    assert_eq!(fingerprint, Some(appended.fingerprint));
    assert_eq!(
        database
            .log()
            .append_json(&stream(), 1, &[3])
            .await
            .unwrap()
            .first,
        3
    );
}

#[tokio::test]
async fn a_field_declared_later_is_indexed_and_one_withdrawn_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let open = |fields: &[&str]| {
        let namespace = Namespace::new(SPACE, fields.iter().copied());
        SqliteDatabase::open(SqliteOptions::file(&path).namespaces([namespace]))
            .unwrap()
            .records()
    };
    let by_status = || ListOptions::default().filter("status", "new");
    let records = open(&[]);
    records.set(SPACE, record("a", 1, "new")).await.unwrap();
    drop(records);
    assert_eq!(keys(&open(&["status"]), by_status()).await, ["a"]);
    let error = open(&[]).list(SPACE, by_status()).await.unwrap_err();
    assert!(matches!(error, Error::UnknownField { .. }), "{error}");
}

#[test]
fn r_53_a_newer_format_is_refused_and_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    drop(SqliteDatabase::open(options(&path)).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 3)
        .unwrap();
    let error = SqliteDatabase::open_or_replace(options(&path)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NewerFormat {
                found: 3,
                supported: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn x_07_another_programs_lock_is_a_typed_error_and_reading_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let options = options(&path).busy_timeout(Duration::from_millis(50));
    let records = SqliteDatabase::open(options).unwrap().records();
    records.set(SPACE, record("a", 1, "new")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = records.set(SPACE, record("b", 1, "new")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Busy { path: named } if *named == path),
        "{error}"
    );
    assert!(records.get(SPACE, "a").await.unwrap().is_some());
    for sort in [SortBy::Key, SortBy::UpdatedAt] {
        let all = ListOptions::default().sort(sort).filter("status", "new");
        assert_eq!(keys(&records, all).await, ["a"]);
    }
    other.execute_batch("ROLLBACK").unwrap();
    records.set(SPACE, record("b", 1, "new")).await.unwrap();
}

#[tokio::test]
async fn x_18_on_a_file_system_of_several_machines_there_is_no_write_ahead_log() {
    const LOCAL: u64 = 0xef53;
    const SHARED: [(&str, u64); 3] = [
        ("NFS", 0x6969),
        ("SMB 2", 0xfe53_4d42),
        ("FUSE", 0x6573_5546),
    ];
    for (name, kind) in SHARED {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.db");
        // Made elsewhere, with such a log, and copied there.
        for (key, kind, journal) in [
            ("a", LOCAL, "wal"),
            ("b", kind, "delete"),
            ("c", LOCAL, "wal"),
        ] {
            let database = SqliteDatabase::open(options(&path).file_system(kind)).unwrap();
            let records = database.records();
            records.set(SPACE, record(key, 1, "new")).await.unwrap();
            // Another program reads and locks beside it.
            let other = Connection::open(&path).unwrap();
            let mode = |connection: &Connection| {
                connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))
            };
            assert_eq!(mode(&other).unwrap(), journal, "{name}");
            for file in ["test.db-wal", "test.db-shm"] {
                assert_eq!(
                    dir.path().join(file).exists(),
                    journal == "wal",
                    "{name}: {file}"
                );
            }
            other
                .execute_batch("BEGIN IMMEDIATE; SELECT count(*) FROM records; COMMIT")
                .unwrap();
            assert!(records.get(SPACE, key).await.unwrap().is_some(), "{name}");
        }
        let database = SqliteDatabase::open(options(&path)).unwrap();
        assert_eq!(
            keys(&database.records(), ListOptions::default()).await,
            ["a", "b", "c"]
        );
    }
}

#[tokio::test]
async fn x_07_a_listing_does_not_wait_for_a_change_that_is_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let database = SqliteDatabase::open(options(&dir.path().join("test.db"))).unwrap();
    let records = database.records();
    records.set(SPACE, record("a", 1, "new")).await.unwrap();
    let (begun, has_begun) = oneshot::channel();
    let (listed, is_listed) = mpsc::channel();
    let change = database.write(move |owner| {
        let transaction = owner.write(Durability::Normal)?;
        let insert =
            "INSERT INTO records (namespace, key, updated_at, data) VALUES ('main', 'b', 1, '1')";
        transaction.execute(insert, [])?;
        begun.send(()).unwrap();
        is_listed.recv().unwrap();
        transaction.commit()
    });
    let list = async {
        has_begun.await.unwrap();
        let found = keys(&records, ListOptions::default().filter("status", "new")).await;
        listed.send(()).unwrap();
        found
    };
    let (changed, found) = join(change, list).await;
    changed.unwrap();
    assert_eq!(found, ["a"]);
}

#[tokio::test]
async fn r_54_nobody_else_may_read_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let database = SqliteDatabase::open(options(&path)).unwrap();
    database
        .records()
        .set(SPACE, record("a", 1, "new"))
        .await
        .unwrap();
    for name in ["test.db", "test.db-wal", "test.db-shm"] {
        let mode = fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_statement_is_not_parsed_anew_for_another_value() {
    let database = SqliteDatabase::open(
        SqliteOptions::in_memory().namespaces([Namespace::new(SPACE, ["status"])]),
    )
    .unwrap();
    let of = |limit| ListOptions::default().filter("status", "new").limit(limit);
    for limit in 1..10 {
        keys(&database.records(), of(limit)).await;
    }
    let query = Query::new(SPACE, &of(1), None, Lead::Records);
    let counted = database.read(move |owner| {
        let transaction = owner.read()?;
        let statement = transaction.prepare_cached(&query.sql)?;
        Ok([StatementStatus::Run, StatementStatus::RePrepare].map(|it| statement.get_status(it)))
    });
    assert_eq!(counted.await.unwrap(), [9, 0]);
}

#[tokio::test]
async fn a_transaction_that_ends_without_a_commit_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let database = SqliteDatabase::open(options(&dir.path().join("test.db"))).unwrap();
    let insert =
        "INSERT INTO records (namespace, key, updated_at, data) VALUES ('main', 'a', 1, '1')";
    let failed = database.write(move |owner| {
        let transaction = owner.write(Durability::Normal)?;
        transaction.execute(insert, [])?;
        transaction.execute(insert, [])
    });
    failed.await.unwrap_err();
    let records = database.records();
    assert!(records.get(SPACE, "a").await.unwrap().is_none());
    records.set(SPACE, record("b", 1, "new")).await.unwrap();
    assert_eq!(keys(&records, ListOptions::default()).await, ["b"]);
}

#[tokio::test]
async fn a_database_that_can_be_rebuilt_is_flushed_like_any_other_once_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let opened = SqliteDatabase::open_or_replace(options(&dir.path().join("test.db"))).unwrap();
    let level = opened.database.write(|owner| {
        owner
            .read()?
            .query_row("PRAGMA synchronous", [], |row| row.get::<_, u32>(0))
    });
    const NORMAL: u32 = 1;
    assert_eq!(level.await.unwrap(), NORMAL);
}

#[tokio::test]
async fn the_last_handle_closes_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    let database = SqliteDatabase::open(options(&path)).unwrap();
    let records = database.clone().records();
    drop(database);
    records.set(SPACE, record("a", 1, "new")).await.unwrap();
    assert!(dir.path().join("test.db-wal").exists());
    drop(records);
    assert!(!dir.path().join("test.db-wal").exists());
}

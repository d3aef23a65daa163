//! What only the SQLite back end can get wrong: broken files, other programs, declarations; and records against a model.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use rusqlite::{Connection, StatementStatus};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::log::{LogStorage, LogStorageExt, Order, StreamKey};
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
fn x_02_a_file_that_is_no_database_is_a_typed_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    fs::write(&path, "not a database, ".repeat(1000)).unwrap();
    let error = SqliteDatabase::open(options(&path)).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { path: named, .. } if *named == path),
        "{error}"
    );
    let missing = dir.path().join("missing/test.db");
    let error = SqliteDatabase::open(options(&missing)).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path: named, .. } if *named == missing),
        "{error}"
    );
}

#[tokio::test]
async fn x_02_whatever_happened_to_the_file_it_is_served_or_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original.db");
    let records = SqliteDatabase::open(options(&original)).unwrap().records();
    for n in 0..300 {
        records
            .set(SPACE, record(&format!("k{n}"), n, &"x".repeat(100)))
            .await
            .unwrap();
    }
    drop(records);
    let sound = fs::read(&original).unwrap();
    let mut replaced = 0;
    for case in 0..60_usize {
        let mut bytes = sound.clone();
        let page = case * 4096 % bytes.len();
        match case % 6 {
            0 => bytes[..16].copy_from_slice(b"garbage at start"),
            1 => bytes.truncate(bytes.len() / 2),
            2 => bytes[page..page + 4096].fill(0xa5),
            3 => bytes[page..page + 4096].fill(0),
            4 => bytes.clear(),
            _ => bytes[page..page + 100].reverse(),
        }
        let path = dir.path().join(format!("case-{case}.db"));
        fs::write(&path, &bytes).unwrap();
        let opened = SqliteDatabase::open_or_replace(options(&path)).unwrap();
        let records = opened.database.records();
        if let Some(aside) = opened.replaced {
            assert_eq!(fs::read(aside).unwrap(), bytes);
            assert_eq!(keys(&records, ListOptions::default()).await, [""; 0]);
            replaced += 1;
        }
        match records.set(SPACE, record("new", 1, "new")).await {
            Ok(()) => assert!(records.get(SPACE, "new").await.unwrap().is_some()),
            Err(Error::Corrupt { .. }) => {}
            Err(error) => panic!("case {case}: {error}"),
        }
    }
    assert!(replaced >= 30, "{replaced}");
}

#[tokio::test]
async fn x_02_a_damaged_file_is_kept_under_a_new_name_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metadata.db");
    for n in 1..=2 {
        fs::write(&path, format!("text {n}")).unwrap();
        let opened = SqliteDatabase::open_or_replace(options(&path)).unwrap();
        let aside = dir.path().join(format!("metadata.db.corrupt-{n}"));
        assert_eq!(opened.replaced.as_ref(), Some(&aside));
        assert_eq!(fs::read_to_string(aside).unwrap(), format!("text {n}"));
    }
    let opened = SqliteDatabase::open_or_replace(options(&path.with_file_name("new.db"))).unwrap();
    assert_eq!(opened.replaced, None);
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

/// One call in the model test.
#[derive(Clone, Debug)]
enum Call {
    Set(Vec<(usize, i64, usize)>),
    Delete(usize),
    DeleteRange(Option<usize>, Option<usize>),
    MGet(Vec<usize>),
    List {
        sort: bool,
        down: bool,
        from: Option<usize>,
        to: Option<usize>,
        status: Option<usize>,
        limit: usize,
    },
}

const KEYS: &[&str] = &["", "a", "aa", "a%", "b", "b\0", "c'", "ä", "😀", "z"];
const STATUSES: &[&str] = &["new", "done", "%"];

fn call() -> impl Strategy<Value = Call> {
    let key = 0..KEYS.len();
    let bound = prop::option::of(0..KEYS.len());
    let row = (key.clone(), -2i64..3, 0..STATUSES.len());
    prop_oneof![
        4 => prop::collection::vec(row, 0..4).prop_map(Call::Set),
        1 => key.clone().prop_map(Call::Delete),
        1 => (bound.clone(), bound.clone()).prop_map(|(from, to)| Call::DeleteRange(from, to)),
        1 => prop::collection::vec(key, 0..4).prop_map(Call::MGet),
        4 => (any::<(bool, bool)>(), bound.clone(), bound, prop::option::of(0..STATUSES.len()), 1..5_usize).prop_map(
            |((sort, down), from, to, status, limit)| Call::List { sort, down, from, to, status, limit }
        ),
    ]
}

type Model = BTreeMap<&'static str, (i64, &'static str)>;

fn within(key: &str, from: Option<usize>, to: Option<usize>) -> bool {
    from.is_none_or(|from| key >= KEYS[from]) && to.is_none_or(|to| key < KEYS[to])
}

async fn check(records: &SqliteRecordStorage, model: &mut Model, call: Call) {
    let text = |index: Option<usize>| index.map(|index| KEYS[index].to_owned());
    match call {
        Call::Set(rows) => {
            let rows = rows.into_iter().map(|(key, time, status)| {
                model.insert(KEYS[key], (time, STATUSES[status]));
                (SPACE.to_owned(), record(KEYS[key], time, STATUSES[status]))
            });
            records.mset(rows.collect()).await.unwrap();
        }
        Call::Delete(key) => {
            let existed = model.remove(KEYS[key]).is_some();
            assert_eq!(records.delete(SPACE, KEYS[key]).await.unwrap(), existed);
        }
        Call::DeleteRange(from, to) => {
            let before = model.len();
            model.retain(|key, _| !within(key, from, to));
            let (from, to) = (text(from), text(to));
            let deleted = records
                .delete_range(SPACE, from.as_deref(), to.as_deref())
                .await
                .unwrap();
            assert_eq!(deleted, (before - model.len()) as u64);
        }
        Call::MGet(keys) => {
            let keys: Vec<String> = keys.into_iter().map(|key| KEYS[key].to_owned()).collect();
            let found = records.mget(SPACE, &keys).await.unwrap();
            let times = found
                .iter()
                .map(|record| record.as_ref().map(|record| record.updated_at));
            let expected = keys
                .iter()
                .map(|key| model.get(key.as_str()).map(|(time, _)| *time));
            assert!(times.eq(expected));
        }
        Call::List {
            sort,
            down,
            from,
            to,
            status,
            limit,
        } => {
            let mut options = ListOptions::default()
                .range(text(from), text(to))
                .limit(limit);
            let rows = model.iter().filter(|(key, (_, has))| {
                within(key, from, to) && status.is_none_or(|status| STATUSES[status] == *has)
            });
            let mut expected: Vec<(i64, &str)> =
                rows.map(|(key, (time, _))| (*time, *key)).collect();
            if sort {
                options = options.sort(SortBy::UpdatedAt);
                expected.sort_unstable();
            }
            if down {
                options = options.order(Order::Descending);
                expected.reverse();
            }
            if let Some(status) = status {
                options = options.filter("status", STATUSES[status]);
            }
            let mut found = Vec::new();
            loop {
                let page = records.list(SPACE, options.clone()).await.unwrap();
                assert!(page.records.len() == limit || page.next.is_none());
                found.extend(
                    page.records
                        .into_iter()
                        .map(|record| (record.updated_at, record.key)),
                );
                let Some(next) = page.next else { break };
                options = options.cursor(Some(next));
            }
            assert!(
                found
                    .iter()
                    .map(|(time, key)| (*time, key.as_str()))
                    .eq(expected)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn x_11_records_behave_as_a_sorted_map(calls in prop::collection::vec(call(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let options = SqliteOptions::in_memory().namespaces([Namespace::new(SPACE, ["status"])]);
            let records = SqliteDatabase::open(options).unwrap().records();
            let mut model = Model::new();
            for call in calls {
                check(&records, &mut model, call).await;
            }
        });
    }
}

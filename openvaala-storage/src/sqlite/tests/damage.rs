//! Files that are broken in every way: what is read of them is right, or the error says that they are damaged.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use pretty_assertions::assert_eq;
use rusqlite::{Connection, ffi};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::time::timeout;

use super::{SPACE, keys, options, record};
use crate::error::{Error, Result};
use crate::log::Order;
use crate::record::{ListOptions, Namespace, Record, RecordStorage, SortBy};
use crate::sqlite::failure::error;
use crate::sqlite::{SqliteDatabase, SqliteOptions};

/// What a damaged file may cost: much more than any case needs.
const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: usize = 4096;
const ROWS: usize = 400;

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
fn a_directory_in_its_place_is_set_aside_and_a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metadata.db");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "kept").unwrap();
    let error = SqliteDatabase::open(options(&path)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let opened = SqliteDatabase::open_or_replace(options(&path)).unwrap();
    let aside = opened.replaced.unwrap();
    assert_eq!(fs::read_to_string(aside.join("inside")).unwrap(), "kept");

    let pipe = dir.path().join("pipe.db");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = SqliteDatabase::open(options(&pipe)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn what_may_not_be_read_is_told_from_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.db");
    drop(SqliteDatabase::open(options(&path)).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if fs::File::open(&path).is_err() {
        let error = SqliteDatabase::open_or_replace(options(&path)).unwrap_err();
        let is_named = matches!(&error, Error::Io { path: named, source, .. }
            if *named == path && source.kind() == ErrorKind::PermissionDenied);
        assert!(is_named, "{error:?}");
    }
    let kinds = [
        (ffi::SQLITE_CORRUPT, "damaged"),
        (ffi::SQLITE_NOTADB, "damaged"),
        (ffi::SQLITE_IOERR_SHORT_READ, "damaged"),
        (ffi::SQLITE_BUSY, "busy"),
        (ffi::SQLITE_BUSY_SNAPSHOT, "busy"),
        (ffi::SQLITE_LOCKED, "busy"),
        (ffi::SQLITE_PROTOCOL, "busy"),
        (ffi::SQLITE_FULL, "full"),
        (ffi::SQLITE_PERM, "permission denied"),
        (
            ffi::SQLITE_READONLY,
            "read-only filesystem or storage medium",
        ),
        (ffi::SQLITE_READONLY_DBMOVED, "entity not found"),
        (ffi::SQLITE_IOERR_READ, "other error"),
        (ffi::SQLITE_NOMEM, "backend"),
    ];
    for (code, expected) in kinds {
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let kind = match error(&path, source) {
            Error::Corrupt { .. } => "damaged".to_owned(),
            Error::Busy { .. } => "busy".to_owned(),
            Error::StorageFull { .. } => "full".to_owned(),
            Error::Io { source, .. } => source.kind().to_string(),
            Error::Backend { .. } => "backend".to_owned(),
            other => panic!("{code}: {other}"),
        };
        assert_eq!(kind, expected, "{code}");
    }
}

#[tokio::test]
async fn x_02_tables_that_are_not_as_they_were_made_are_damage() {
    for change in [
        "DROP TABLE record_texts",
        "DROP TABLE records",
        "ALTER TABLE records DROP COLUMN crc",
        "DELETE FROM records WHERE key = 'k001'",
        "UPDATE records SET updated_at = updated_at + 1 WHERE key = 'k001'",
        "UPDATE records SET data = replace(data, 'title', 'tit1e') WHERE key = 'k001'",
        "UPDATE records SET data = CAST(x'ff' AS TEXT) WHERE key = 'k001'",
        "UPDATE records SET data = '{' WHERE key = 'k001'",
    ] {
        let (dir, golden) = golden().await;
        let path = dir.path().join("golden.db");
        execute(&path, change);
        let seen = everything(&path).await;
        assert!(
            matches!(seen, Err(Error::Corrupt { .. })),
            "{change}: {:?}",
            seen.map(|it| it.len())
        );
        assert!(!golden.is_empty());
    }
}

#[tokio::test]
async fn x_02_what_an_index_lost_is_found_by_the_check() {
    for change in [
        "DELETE FROM record_fields WHERE key = 'k007'",
        "DELETE FROM record_texts WHERE key = 'k007'",
        "UPDATE record_texts SET text = 'another' WHERE key = 'k007'",
        "INSERT INTO record_fields VALUES ('main', 'status', 'new', 7, 'nobody')",
    ] {
        let (dir, _) = golden().await;
        let path = dir.path().join("golden.db");
        let opened = || SqliteDatabase::open(searched(&path)).unwrap();
        opened().check().await.unwrap();
        execute(&path, change);
        let error = opened().check().await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{change}: {error}");
    }
}

/// Changes a database behind the back of its owner.
fn execute(path: &Path, change: &str) {
    let database = Connection::open(path).unwrap();
    database.execute_batch(change).unwrap();
}

/// How the bytes of a file are changed.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Every bit of a page.
    FlipPage,
    /// A page is noise.
    ScramblePage,
    /// One page has the content of another.
    SwapPages,
    ZeroPage,
    /// Zeros from somewhere to somewhere else.
    ZeroFill,
    Cut,
    Header,
    /// Some bits anywhere.
    FlipBits,
}

const CHANGES: [Change; 8] = [
    Change::FlipPage,
    Change::ScramblePage,
    Change::SwapPages,
    Change::ZeroPage,
    Change::ZeroFill,
    Change::Cut,
    Change::Header,
    Change::FlipBits,
];

/// Numbers that look random and come again with the same seed.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }
}

fn damaged(sound: &[u8], change: Change, noise: &mut Noise) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    let pages = bytes.len() / PAGE;
    let page = noise.below(pages) * PAGE;
    match change {
        Change::FlipPage => bytes[page..page + PAGE]
            .iter_mut()
            .for_each(|it| *it = !*it),
        Change::ScramblePage => {
            let page = &mut bytes[page..page + PAGE];
            page.iter_mut().for_each(|it| *it = noise.below(256) as u8);
        }
        Change::SwapPages => {
            let other = noise.below(pages) * PAGE;
            let first = bytes[page..page + PAGE].to_vec();
            bytes.copy_within(other..other + PAGE, page);
            bytes[other..other + PAGE].copy_from_slice(&first);
        }
        Change::ZeroPage => bytes[page..page + PAGE].fill(0),
        Change::ZeroFill => {
            let start = noise.below(bytes.len());
            let length = noise.below(bytes.len() - start);
            bytes[start..start + length].fill(0);
        }
        // A file of no bytes is an empty database, which is what it is.
        Change::Cut => bytes.truncate(1 + noise.below(sound.len() - 1)),
        Change::Header => {
            let header = &mut bytes[..100];
            header
                .iter_mut()
                .for_each(|it| *it = noise.below(256) as u8);
        }
        Change::FlipBits => {
            for _ in 0..=noise.below(20) {
                let at = noise.below(sound.len());
                bytes[at] ^= 1 << noise.below(8);
            }
        }
    }
    bytes
}

fn searched(path: &Path) -> SqliteOptions {
    let namespace = Namespace::new(SPACE, ["status", "roots"]).search(["title"]);
    SqliteOptions::file(path).namespaces([namespace])
}

/// Question by question, the keys and the contents of what is answered.
type Answers = BTreeMap<String, Vec<(String, i64, String)>>;

/// Makes a database and says what it answers.
async fn golden() -> (tempfile::TempDir, Answers) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("golden.db");
    let database = SqliteDatabase::open(searched(&path)).unwrap();
    let rows = (0..ROWS).map(|n| {
        let long = "long ".repeat(if n % 50 == 0 { 2_000 } else { n % 7 });
        let data = json!({
            "status": if n % 2 == 0 { "new" } else { "done" },
            "roots": [format!("/r{}", n % 5), "/all"],
            "title": format!("Title {n} {}", long),
        });
        let record = Record::new(format!("k{n:03}"), n as i64, to_raw_value(&data).unwrap());
        (SPACE.to_owned(), record)
    });
    database.records().mset(rows.collect()).await.unwrap();
    drop(database);
    let answers = everything(&path).await.unwrap();
    let counts: Vec<_> = answers.values().map(Vec::len).collect();
    assert_eq!(counts, [400, 400, 400, 400, 200, 80, 100, 80, 400]);
    (dir, answers)
}

/// Opens a database and asks everything that can be asked; the check is part of what opens it last.
async fn everything(path: &Path) -> Result<Answers> {
    let database = SqliteDatabase::open(searched(path))?;
    let records = database.records();
    let all = ListOptions::default().limit(1_000);
    let by_time = all.clone().sort(SortBy::UpdatedAt);
    let questions = [
        ("a: by key", all.clone()),
        ("b: by key, down", all.clone().order(Order::Descending)),
        ("c: by time", by_time.clone()),
        ("d: by time, down", by_time.clone().order(Order::Descending)),
        ("e: status", by_time.clone().filter("status", "new")),
        ("f: root", all.filter("roots", "/r3")),
        (
            "g: title",
            by_time
                .clone()
                .contains("title", "TITLE 3")
                .updated_from(Some(60)),
        ),
        (
            "h: both",
            by_time.filter("roots", "/r1").contains("title", "title"),
        ),
    ];
    let rows = |records: Vec<Record>| {
        let row = |it: Record| (it.key, it.updated_at, it.data.get().to_owned());
        records.into_iter().map(row).collect()
    };
    let mut answers = Answers::new();
    for (name, question) in questions {
        let page = records.list(SPACE, question).await?;
        answers.insert(name.to_owned(), rows(page.records));
    }
    let keys: Vec<_> = (0..ROWS).map(|n| format!("k{n:03}")).collect();
    let found = records.mget(SPACE, &keys).await?;
    answers.insert(
        "i: each".to_owned(),
        rows(found.into_iter().flatten().collect()),
    );
    Ok(answers)
}

/// Whatever was changed: an answer is right, or an error says that the file is damaged. Single bits may hide where no
/// question notices them; then the check finds them.
#[tokio::test]
async fn x_02_every_answer_of_a_damaged_file_is_right_or_says_so() {
    let cases = match env::var_os("OPENVAALA_LONG") {
        Some(_) => 2_000,
        None => 200,
    };
    let (dir, golden) = golden().await;
    let sound = fs::read(dir.path().join("golden.db")).unwrap();
    let path = dir.path().join("case.db");
    let (mut noticed, mut checked) = (0, 0);
    for case in 0..cases {
        let change = CHANGES[case % CHANGES.len()];
        let bytes = damaged(&sound, change, &mut Noise(case as u64));
        fs::write(&path, &bytes).unwrap();
        let run = async {
            match everything(&path).await {
                Ok(answers) if answers == golden => 0,
                Ok(_) => {
                    let database = SqliteDatabase::open(searched(&path)).unwrap();
                    let found = database.check().await;
                    assert!(
                        matches!(found, Err(Error::Corrupt { .. })),
                        "case {case}, {change:?}: a wrong answer that the check does not explain: {found:?}"
                    );
                    2
                }
                // Noise in the header may look like a number of a newer format.
                Err(Error::Corrupt { .. } | Error::NewerFormat { .. }) => 1,
                Err(error) => panic!("case {case}, {change:?}: {error:?}"),
            }
        };
        match timeout(PATIENCE, run).await {
            Ok(0) => {}
            Ok(1) => noticed += 1,
            Ok(_) => checked += 1,
            Err(_) => panic!("case {case}, {change:?}: it hangs"),
        }
        for companion in ["case.db-wal", "case.db-shm"] {
            let _ = fs::remove_file(dir.path().join(companion));
        }
    }
    println!("{noticed} of {cases} were noticed, {checked} by the check only");
    assert!(noticed >= cases / 2, "{noticed}");
}

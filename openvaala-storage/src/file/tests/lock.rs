//! The lock of a data directory, and what may be looked at without it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use pretty_assertions::assert_eq;
use rustix::fs::Mode;
use rustix::process::umask;

use super::faulty::{Fault, FaultyFs, Op};
use super::{Bench, all, append, key, lines, new_entry, open};
use crate::error::Error;
use crate::file::{FileOptions, FileStorage};
use crate::log::LogStorage;

#[tokio::test]
async fn p_01_a_second_owner_is_refused_and_told_who_holds_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = FileStorage::open(FileOptions::new(dir.path()).started_at(5)).unwrap();
    first.announce("127.0.0.1:8790").unwrap();
    let error = FileStorage::open(FileOptions::new(dir.path())).unwrap_err();
    let Error::Locked {
        path,
        holder: Some(holder),
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(path, dir.path());
    assert_eq!(
        (holder.pid, holder.started_at),
        (std::process::id(), Some(5))
    );
    assert_eq!(holder.address.as_deref(), Some("127.0.0.1:8790"));
    assert!(holder.host.is_some());
    assert!(error.to_string().contains("127.0.0.1:8790"), "{error}");
    append(&first, &key("c/s"), "1").await;
    drop(first);
    open(dir.path());
}

#[test]
fn p_02_p_03_a_lock_file_that_nobody_holds_is_only_information() {
    let dir = tempfile::tempdir().unwrap();
    for text in [
        "",
        "not json",
        r#"{"pid":1,"host":null,"started_at":null,"address":null}"#,
        &format!(
            r#"{{"pid":{},"host":"x","started_at":1,"address":"y"}}"#,
            std::process::id()
        ),
    ] {
        fs::write(dir.path().join("openvaala.lock"), text).unwrap();
        open(dir.path());
    }
}

#[test]
fn p_05_a_deleted_or_replaced_lock_file_does_not_admit_a_second_owner() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path());
    fs::remove_file(dir.path().join("openvaala.lock")).unwrap();
    for _ in 0..2 {
        let error = FileStorage::open(FileOptions::new(dir.path())).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        fs::write(dir.path().join("openvaala.lock"), "{}").unwrap();
    }
}

#[test]
fn p_06_another_way_to_the_directory_is_the_same_lock() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data");
    let _first = open(&root);
    symlink(&root, dir.path().join("link")).unwrap();
    for other in ["link", "data/../data", "data/."] {
        let error = FileStorage::open(FileOptions::new(dir.path().join(other))).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{other}: {error}");
    }
}

#[test]
fn p_07_a_file_system_that_cannot_lock_is_refused() {
    const ENOLCK: i32 = 37;
    let dir = tempfile::tempdir().unwrap();
    let fs = FaultyFs::new(&[Op::Lock], Fault::Forever(ENOLCK));
    fs.arm(1);
    let error =
        FileStorage::open(FileOptions::new(dir.path()).fs(Arc::clone(&fs) as _)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Io {
                operation: "lock",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn reading_needs_no_lock_and_writing_is_refused() {
    let bench = Bench::new();
    let key = key("c/s");
    append(&bench.storage, &key, "1").await;
    let reader = FileStorage::open_read_only(FileOptions::new(bench.dir.path())).unwrap();
    assert_eq!(all(&reader, &key).await, [(1, "1".to_owned())]);
    let refused = [
        reader.append(&key, vec![new_entry("2")]).await.err(),
        reader.delete(&key).await.err(),
        reader.delete_path(&key.path).await.err(),
        reader.announce("x").err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(Error::ReadOnly)), "{error:?}");
    }
    let missing = FileOptions::new(bench.dir.path().join("missing"));
    let error = FileStorage::open_read_only(missing).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn r_53_a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let path = dir.path().join("openvaala.format");
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    fs::write(&path, "2\n").unwrap();
    let error = FileStorage::open(FileOptions::new(dir.path())).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NewerFormat {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
    FileStorage::open_read_only(FileOptions::new(dir.path())).unwrap();
}

#[tokio::test]
async fn r_54_nobody_else_may_read_anything_under_any_umask() {
    umask(Mode::empty());
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("outer/data");
    let storage = open(&root);
    let key = key("c/one/s");
    append(&storage, &key, "1").await;
    let torn = root.join("c/one/t.jsonl");
    fs::write(&torn, [lines(1..=1), b"torn".to_vec()].concat()).unwrap();
    fs::set_permissions(&torn, fs::Permissions::from_mode(0o600)).unwrap();
    append(&storage, &super::key("c/one/t"), "1").await;
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
    for path in ["..", ".", "c", "c/one"] {
        assert_eq!(mode(path), 0o700, "{path}");
    }
    for path in [
        "c/one/s.jsonl",
        "c/one/t.torn-1",
        "openvaala.lock",
        "openvaala.format",
    ] {
        assert_eq!(mode(path), 0o600, "{path}");
    }
}

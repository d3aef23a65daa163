//! Moves that are interrupted, and what else lies in the directory that moves.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pretty_assertions::assert_eq;

use super::faulty::{Fault, FaultyFs, Op};
use super::{Bench, all, append, key, open};
use crate::error::{Error, Result};
use crate::file::{FileOptions, FileStorage};
use crate::log::LogStorage;

const EIO: i32 = 5;

async fn move_ab(storage: &FileStorage) -> Result<bool> {
    let (from, to) = ("c/ab".parse()?, "t/ab".parse()?);
    storage.rename_path(&from, &to).await
}

async fn counts(storage: &FileStorage, directory: &str) -> Vec<u64> {
    let mut counts = Vec::new();
    for n in 0..3 {
        let info = storage.info(&key(&format!("{directory}/s{n}"))).await;
        counts.push(info.unwrap().map_or(0, |info| info.last));
    }
    counts
}

#[tokio::test]
async fn r_25_a_move_that_is_interrupted_anywhere_is_whole_or_not_begun() {
    let ops = [
        Op::CreateDir,
        Op::Metadata,
        Op::RemoveDir,
        Op::Rename,
        Op::SyncDir,
    ];
    for fault in [Fault::Forever(EIO), Fault::Once(EIO)] {
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let fs = FaultyFs::new(&ops, fault);
            let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
            let storage = FileStorage::open(options).unwrap();
            for name in ["c/ab/s0", "c/ab/s1", "c/ab/s2", "c/abc/s0"] {
                append(&storage, &key(name), "1").await;
            }
            fs.arm(n);
            let moved = move_ab(&storage).await;
            let happened = fs.disarm();
            drop(storage);
            let storage = open(dir.path());
            let places = [
                counts(&storage, "c/ab").await,
                counts(&storage, "t/ab").await,
            ];
            let is_old = places == [vec![1; 3], vec![0; 3]];
            let is_new = places == [vec![0; 3], vec![1; 3]];
            assert!(is_old || is_new, "{fault:?} {n}: {places:?}");
            assert!(moved.is_err() || is_new, "{fault:?} {n}: {moved:?}");
            assert_eq!(all(&storage, &key("c/abc/s0")).await.len(), 1);
            // What was left half done does not stand in the way of another try.
            if is_old {
                assert!(move_ab(&storage).await.unwrap());
            }
            if !happened {
                assert!(moved.unwrap());
                break;
            }
        }
    }
}

#[tokio::test]
async fn both_directories_are_flushed_before_a_move_returns() {
    let dir = tempfile::tempdir().unwrap();
    let fs = FaultyFs::new(&[Op::SyncDir], Fault::Once(EIO));
    let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
    let storage = FileStorage::open(options).unwrap();
    append(&storage, &key("c/ab/s"), "1").await;
    fs.count();
    assert!(move_ab(&storage).await.unwrap());
    // The root, for the new parent; then the new parent and the old one.
    assert_eq!(fs.counted(), 3);
}

#[tokio::test]
async fn files_beside_the_streams_move_with_them() {
    let bench = Bench::new();
    append(&bench.storage, &key("c/ab/s"), "1").await;
    let old = bench.dir.path().join("c/ab");
    fs::write(old.join("s.torn-1"), "half").unwrap();
    assert!(move_ab(&bench.storage).await.unwrap());
    let kept = fs::read(bench.dir.path().join("t/ab/s.torn-1")).unwrap();
    assert_eq!(kept, b"half");
    assert!(!old.exists());
}

#[tokio::test]
async fn a_move_over_anything_but_an_empty_directory_is_refused() {
    let bench = Bench::new();
    append(&bench.storage, &key("c/ab/s"), "1").await;
    let place = |name: &str| bench.dir.path().join(name);
    let plant = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    };
    plant(&place("t/file"));
    plant(&place("t/full/notes.txt"));
    fs::create_dir_all(place("t/empty")).unwrap();
    let from = key("c/ab/s").path;
    for taken in ["t/file", "t/full"] {
        let error = bench
            .storage
            .rename_path(&from, &taken.parse().unwrap())
            .await;
        assert!(matches!(error, Err(Error::PathExists { .. })), "{error:?}");
    }
    assert_eq!(fs::read(place("t/full/notes.txt")).unwrap(), b"mine");
    let moved = bench
        .storage
        .rename_path(&from, &"t/empty".parse().unwrap())
        .await;
    assert!(moved.unwrap());
    assert_eq!(all(&bench.storage, &key("t/empty/s")).await.len(), 1);
}

#[tokio::test]
async fn a_storage_that_is_open_for_reading_moves_nothing() {
    let bench = Bench::new();
    append(&bench.storage, &key("c/ab/s"), "1").await;
    let reader = FileStorage::open_read_only(FileOptions::new(bench.dir.path())).unwrap();
    let error = move_ab(&reader).await;
    assert!(matches!(error, Err(Error::ReadOnly)), "{error:?}");
    assert_eq!(all(&bench.storage, &key("c/ab/s")).await.len(), 1);
}

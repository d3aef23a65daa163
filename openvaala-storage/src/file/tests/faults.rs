//! Disks that fail: each n-th operation, until a run is clean.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use pretty_assertions::assert_eq;

use super::faulty::{Fault, FaultyFs, Op};
use super::{all, append, key, new_entry, open};
use crate::error::Error;
use crate::file::{FileOptions, FileStorage};
use crate::log::{LogStorage, LogStorageExt, ReadOptions, StreamKey};

const EIO: i32 = 5;
const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;
const ALL: &[Op] = &[
    Op::CreateDir,
    Op::List,
    Op::Metadata,
    Op::Open,
    Op::Read,
    Op::RemoveDir,
    Op::Rename,
    Op::Sync,
    Op::SyncDir,
    Op::Truncate,
    Op::Unlink,
    Op::Write,
];

/// What was acknowledged: payload by stream and number.
type Acknowledged = BTreeMap<(StreamKey, u64), String>;

/// Uses a storage in every way, and remembers what it promised.
async fn work(storage: &FileStorage, acknowledged: &mut Acknowledged, errors: &mut Vec<Error>) {
    let streams = [
        "c/one/s", "c/one/s", "c/one/t", "c/two/s", "c/one/s", "c/two/s", "c/one/t",
    ];
    for (round, name) in streams.iter().enumerate() {
        let key = key(name);
        let texts: Vec<String> = (0..=round % 3)
            .map(|n| format!("\"{round}-{n}\""))
            .collect();
        let batch = texts.iter().map(|text| new_entry(text)).collect();
        match storage.append(&key, batch).await {
            Ok(appended) => {
                assert_eq!(appended.last - appended.first + 1, texts.len() as u64);
                for (seq, text) in (appended.first..).zip(texts) {
                    let before = acknowledged.insert((key.clone(), seq), text);
                    assert_eq!(before, None, "{key} has number {seq} twice");
                }
            }
            Err(error) => errors.push(error),
        }
        match storage.read(&key, ReadOptions::ascending()).await {
            Ok(page) => {
                let found = page.entries.iter().map(super::short);
                let promised = acknowledged.iter().filter(|((of, _), _)| *of == key);
                let promised = promised.map(|((_, seq), text)| (*seq, text.clone()));
                assert!(
                    found.eq(promised),
                    "{key} shows something else than was acknowledged"
                );
            }
            Err(Error::NotFound { .. }) => {
                assert!(
                    !acknowledged.keys().any(|(of, _)| *of == key),
                    "{key} is gone"
                );
            }
            Err(error) => errors.push(error),
        }
    }
}

/// After a fresh start all that was acknowledged is there, surplus only behind it, and appends go on.
async fn is_whole(storage: &FileStorage, acknowledged: &Acknowledged) {
    for key in ["c/one/s", "c/one/t", "c/two/s"].map(key) {
        let promised: Vec<_> = acknowledged
            .iter()
            .filter(|((of, _), _)| *of == key)
            .map(|((_, seq), text)| (*seq, text.clone()))
            .collect();
        let found = match storage.read_all(&key).await {
            Ok(entries) => entries.iter().map(super::short).collect(),
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => panic!("{key}: {error}"),
        };
        assert!(
            found.starts_with(&promised),
            "{key}: {found:?} instead of {promised:?}"
        );
        let surplus = &found[promised.len()..];
        assert!(
            surplus.iter().all(|(_, text)| text != "damaged"),
            "{key}: {surplus:?}"
        );
        assert_eq!(
            append(storage, &key, "1").await.first,
            found.len() as u64 + 1
        );
        assert_eq!(all(storage, &key).await.len(), found.len() + 1);
    }
}

/// Runs the work with the n-th operation failing, n = 1, 2, 3 … until nothing fails any more; returns how many runs failed.
async fn each(ops: &[Op], fault: Fault, mut check: impl FnMut(&[Error])) -> u64 {
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let fs = FaultyFs::new(ops, fault);
        let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
        let storage = FileStorage::open(options).unwrap();
        let (mut acknowledged, mut errors) = (Acknowledged::new(), Vec::new());
        fs.arm(n);
        work(&storage, &mut acknowledged, &mut errors).await;
        let happened = fs.disarm();
        check(&errors);
        if !matches!(fault, Fault::Forever(_)) {
            // The same storage works again without a restart.
            work_again(&storage, &mut acknowledged).await;
        }
        drop(storage);
        is_whole(&open(dir.path()), &acknowledged).await;
        if !happened {
            assert_eq!(errors.len(), 0);
            return n - 1;
        }
    }
    unreachable!()
}

async fn work_again(storage: &FileStorage, acknowledged: &mut Acknowledged) {
    for key in ["c/one/s", "c/one/t", "c/two/s"].map(key) {
        let appended = append(storage, &key, "\"again\"").await;
        acknowledged.insert((key.clone(), appended.first), "\"again\"".to_owned());
    }
}

#[tokio::test]
async fn r_16_an_error_of_any_single_operation_loses_nothing() {
    assert!(each(ALL, Fault::Once(EIO), |_| {}).await > 50);
}

#[tokio::test]
async fn r_03_a_disk_that_is_gone_from_any_operation_on_loses_nothing() {
    assert!(each(ALL, Fault::Forever(EIO), |_| {}).await > 50);
}

#[tokio::test]
async fn r_12_a_full_disk_is_a_typed_error_and_the_stream_goes_on() {
    let full = |errors: &[Error]| {
        for error in errors {
            assert!(matches!(error, Error::StorageFull { .. }), "{error}");
        }
    };
    assert_eq!(each(&[Op::Write], Fault::Once(ENOSPC), full).await, 7);
    each(&[Op::Write], Fault::Half(ENOSPC), full).await;
    each(&[Op::CreateDir, Op::Open], Fault::Once(ENOSPC), full).await;
}

#[tokio::test]
async fn r_15_short_and_interrupted_writes_are_completed() {
    let none = |errors: &[Error]| assert!(errors.is_empty(), "{errors:?}");
    each(&[Op::Write], Fault::Half(EINTR), none).await;
    assert_eq!(each(&[Op::Write], Fault::Once(EINTR), none).await, 7);
    assert!(each(&[Op::Read], Fault::Once(EINTR), none).await > 0);
    // However short they are, from any of them on.
    for most in [1, 7, 64] {
        // All that follow are short as well, so there is a run for each of the seven.
        let runs = each(&[Op::Write], Fault::Short(most), none).await;
        assert_eq!(runs, 7, "{most}");
    }
}

#[tokio::test]
async fn r_15_a_write_that_would_block_is_told_and_leaves_no_half_line() {
    let one = |errors: &[Error]| {
        assert!(errors.len() <= 1, "{errors:?}");
        for error in errors {
            let Error::Io { source, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(source.raw_os_error(), Some(EAGAIN));
        }
    };
    assert_eq!(each(&[Op::Write], Fault::Once(EAGAIN), one).await, 7);
    each(&[Op::Write], Fault::Half(EAGAIN), one).await;
}

#[tokio::test]
async fn r_17_a_failed_flush_fails_its_append_and_poisons_only_its_stream() {
    let poisoned = |errors: &[Error]| {
        assert!(errors.len() <= 1, "{errors:?}");
        for error in errors {
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        }
    };
    assert_eq!(each(&[Op::Sync], Fault::Once(EIO), poisoned).await, 7);
}

#[tokio::test]
async fn r_17_a_failed_flush_is_never_tried_again_on_its_handle() {
    let dir = tempfile::tempdir().unwrap();
    let fs = FaultyFs::new(&[Op::Sync, Op::Open, Op::Truncate], Fault::Once(EIO));
    let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
    let storage = FileStorage::open(options).unwrap();
    let key = key("c/s");
    append(&storage, &key, "1").await;
    fs.arm(1);
    storage
        .append(&key, vec![new_entry("2")])
        .await
        .unwrap_err();
    let length = fs::metadata(dir.path().join("c/s.jsonl")).unwrap().len();
    // The bytes of the failed append are still there, but nobody sees them.
    assert_eq!(all(&storage, &key).await, [(1, "1".to_owned())]);
    // The recovery opens the file anew before anything else: this fails as well, and nothing is written.
    fs.arm(1);
    storage
        .append(&key, vec![new_entry("3")])
        .await
        .unwrap_err();
    assert_eq!(
        fs::metadata(dir.path().join("c/s.jsonl")).unwrap().len(),
        length
    );
    fs.disarm();
    assert_eq!(append(&storage, &key, "4").await.first, 2);
    assert_eq!(
        all(&storage, &key).await,
        [(1, "1".to_owned()), (2, "4".to_owned())]
    );
}

#[tokio::test]
async fn r_18_a_stream_whose_directory_was_not_flushed_does_not_exist() {
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let fs = FaultyFs::new(&[Op::SyncDir], Fault::Once(EIO));
        let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
        let storage = FileStorage::open(options).unwrap();
        let key = key("c/one/s");
        fs.arm(n);
        let appended = storage.append(&key, vec![new_entry("1")]).await;
        if !fs.disarm() {
            // The file's directory, the two above it.
            assert_eq!(n, 4);
            appended.unwrap();
            return;
        }
        appended.unwrap_err();
        assert_eq!(storage.info(&key).await.unwrap(), None);
        assert_eq!(storage.list(None).await.unwrap(), Default::default());
        assert_eq!(append(&storage, &key, "1").await.first, 1);
    }
}

#[tokio::test]
async fn directories_are_flushed_again_only_if_a_deletion_may_have_removed_them() {
    let dir = tempfile::tempdir().unwrap();
    let fs = FaultyFs::new(&[Op::SyncDir], Fault::Once(EIO));
    let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
    let storage = FileStorage::open(options).unwrap();
    append(&storage, &key("c/one/s"), "1").await;
    let (absent, present) = (key("c/two/s"), key("c/one/s"));
    // The directory that is new, and the one in which it is.
    for (deleted, existed, flushes) in [(&absent, false, 2), (&present, true, 3)] {
        assert_eq!(storage.delete_path(&deleted.path).await.unwrap(), existed);
        fs.count();
        append(&storage, deleted, "1").await;
        assert_eq!(fs.counted(), flushes, "{deleted}");
    }
}

#[tokio::test]
async fn r_24_r_25_a_deletion_that_is_interrupted_anywhere_is_whole_or_not_begun() {
    for target in ["path", "stream"] {
        for n in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let fs = FaultyFs::new(ALL, Fault::Forever(EIO));
            let options = FileOptions::new(dir.path()).fs(Arc::<FaultyFs>::clone(&fs));
            let storage = FileStorage::open(options).unwrap();
            let keys: Vec<StreamKey> = (0..5).map(|n| key(&format!("c/ab/s{n}"))).collect();
            for key in keys.iter().chain([&key("c/abc/s")]) {
                append(&storage, key, "1").await;
            }
            fs.arm(n);
            let deleted = match target {
                "path" => storage.delete_path(&keys[0].path).await,
                _ => storage.delete(&keys[0]).await,
            };
            let happened = fs.disarm();
            drop(storage);
            let storage = open(dir.path());
            let mut left = Vec::new();
            for key in &keys {
                left.push(storage.info(key).await.unwrap().map_or(0, |info| info.last));
            }
            let gone = if target == "path" {
                vec![0; 5]
            } else {
                vec![0, 1, 1, 1, 1]
            };
            assert!(left == gone || left == [1; 5], "{target} {n}: {left:?}");
            assert!(deleted.is_err() || left == gone);
            assert_eq!(all(&storage, &key("c/abc/s")).await.len(), 1);
            // Work of the flushing threads is done when the storage is gone.
            drop(storage);
            let names: Vec<_> = fs::read_dir(dir.path())
                .unwrap()
                .map(|it| it.unwrap().file_name())
                .collect();
            assert!(
                names
                    .iter()
                    .all(|name| !name.to_string_lossy().starts_with(".trash")),
                "{names:?}"
            );
            if !happened {
                deleted.unwrap();
                break;
            }
        }
    }
}

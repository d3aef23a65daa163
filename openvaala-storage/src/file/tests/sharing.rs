//! Who waits for whom, and what an operation costs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;

use futures::future::{join_all, select};
use futures::poll;
use pretty_assertions::assert_eq;
use tokio::task::yield_now;

use super::faulty::{Fault, FaultyFs, Op};
use super::{all, append, expected, key, lines, new_entry, payload};
use crate::error::Result;
use crate::file::{FileOptions, FileStorage};
use crate::log::{Fingerprint, LogStorage, ReadOptions};

fn counted(root: &Path) -> (Arc<FaultyFs>, FileStorage) {
    let fs = FaultyFs::sound();
    let storage = FileStorage::open(FileOptions::new(root).fs(Arc::clone(&fs) as _)).unwrap();
    (fs, storage)
}

#[tokio::test]
async fn appends_that_wait_for_a_stream_share_one_flush() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, storage) = counted(dir.path());
    let key = key("c/s");
    append(&storage, &key, "0").await;
    let (open_gate, gate) = mpsc::channel();
    disk.hold_sync(dir.path().join("c/s.jsonl"), gate);
    let before = disk.syncs();
    let mut appends: Vec<_> = (1..=64)
        .map(|n| storage.append(&key, vec![new_entry(&n.to_string())]))
        .collect();
    for append in &mut appends {
        assert!(poll!(append.as_mut()).is_pending());
    }
    // The coordinator answers in order: it has seen all appends.
    storage.reports().unwrap();
    assert_eq!(all(&storage, &key).await, [(1, "0".to_owned())]);
    open_gate.send(()).unwrap();
    let numbers: Vec<u64> = join_all(appends)
        .await
        .into_iter()
        .map(|it| it.unwrap().first)
        .collect();
    assert_eq!(numbers, (2..=65).collect::<Vec<_>>());
    assert_eq!(disk.syncs() - before, 2);
}

#[tokio::test]
async fn r_34_a_slow_flush_of_one_stream_stops_no_other_and_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, storage) = counted(dir.path());
    let (slow, other) = (key("c/slow"), key("c/other"));
    append(&storage, &slow, "1").await;
    let (open_gate, gate) = mpsc::channel();
    disk.hold_sync(dir.path().join("c/slow.jsonl"), gate);
    let mut waiting = storage.append(&slow, vec![new_entry("2")]);
    assert!(poll!(waiting.as_mut()).is_pending());
    for n in 1..=20 {
        assert_eq!(append(&storage, &other, "1").await.first, n);
    }
    assert_eq!(all(&storage, &slow).await, [(1, "1".to_owned())]);
    let info = storage.info(&slow).await.unwrap().unwrap();
    assert_eq!(
        storage.fingerprint(&slow).await.unwrap(),
        Some(info.fingerprint)
    );
    assert!(poll!(waiting.as_mut()).is_pending());
    open_gate.send(()).unwrap();
    assert_eq!(waiting.await.unwrap().first, 2);
}

#[tokio::test]
async fn many_fingerprints_tell_nothing_of_an_append_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, storage) = counted(dir.path());
    let (slow, other) = (key("c/slow"), key("c/other"));
    let before = append(&storage, &slow, "1").await.fingerprint;
    let beside = append(&storage, &other, "1").await.fingerprint;
    let (open_gate, gate) = mpsc::channel();
    disk.hold_sync(dir.path().join("c/slow.jsonl"), gate);
    let mut waiting = storage.append(&slow, vec![new_entry("2")]);
    assert!(poll!(waiting.as_mut()).is_pending());
    let found = storage.fingerprints(&[slow.clone(), other]).await;
    assert_eq!(sound(found), [Some(before), Some(beside)]);
    open_gate.send(()).unwrap();
    let after = waiting.await.unwrap().fingerprint;
    let found = storage.fingerprints(&[slow]).await;
    assert_eq!(sound(found), [Some(after)]);
}

#[tokio::test]
async fn many_fingerprints_tell_nothing_of_an_append_that_begins_meanwhile_and_fails() {
    let dir = tempfile::tempdir().unwrap();
    let key = key("c/s");
    append(&counted(dir.path()).1, &key, "1").await;
    let disk = FaultyFs::new(&[Op::Sync], Fault::Once(5));
    let options = FileOptions::new(dir.path()).fs(Arc::clone(&disk) as _);
    let storage = FileStorage::open(options).unwrap();
    disk.arm(1);
    let path = dir.path().join("c/s.jsonl");
    let (steps, look_steps) = mpsc::channel();
    let (let_look, look) = mpsc::channel();
    disk.hold_look(path.clone(), steps, look);
    let keys = [key.clone()];
    let mut found = storage.fingerprints(&keys);
    assert!(poll!(found.as_mut()).is_pending());
    look_steps.recv().unwrap();
    let (let_flush, flush) = mpsc::channel();
    disk.hold_sync(path.clone(), flush);
    let length = fs::metadata(&path).unwrap().len();
    let mut waiting = storage.append(&key, vec![new_entry("2")]);
    assert!(poll!(waiting.as_mut()).is_pending());
    while fs::metadata(&path).unwrap().len() == length {
        yield_now().await;
    }
    let_look.send(()).unwrap();
    look_steps.recv().unwrap();
    let_flush.send(()).unwrap();
    waiting.await.unwrap_err();
    let cut_back = storage.fingerprint(&key).await.unwrap();
    assert_eq!(sound(found.await), [cut_back]);
}

#[tokio::test]
async fn a_stream_that_cannot_be_looked_at_fails_alone_among_many() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (key("c/one"), key("d/other"));
    {
        let (_, storage) = counted(dir.path());
        append(&storage, &one, "1").await;
        append(&storage, &other, "1").await;
    }
    let disk = FaultyFs::new(&[Op::Metadata], Fault::Forever(5));
    let options = FileOptions::new(dir.path()).fs(Arc::clone(&disk) as _);
    let storage = FileStorage::open(options).unwrap();
    disk.arm(2);
    let keys = [one.clone(), other];
    let found = storage.fingerprints(&keys).await;
    let is_sound: Vec<bool> = found.iter().map(Result::is_ok).collect();
    assert_eq!(is_sound, [true, false]);
    disk.disarm();
    assert!(storage.fingerprints(&keys).await.iter().all(Result::is_ok));
}

fn sound(found: Vec<Result<Option<Fingerprint>>>) -> Vec<Option<Fingerprint>> {
    found.into_iter().map(Result::unwrap).collect()
}

#[tokio::test]
async fn r_27_a_deletion_waits_for_the_running_append_and_refuses_those_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, storage) = counted(dir.path());
    let key = key("c/s");
    append(&storage, &key, "1").await;
    let (open_gate, gate) = mpsc::channel();
    disk.hold_sync(dir.path().join("c/s.jsonl"), gate);
    let mut running = storage.append(&key, vec![new_entry("2")]);
    assert!(poll!(running.as_mut()).is_pending());
    let mut waiting = storage.append(&key, vec![new_entry("3")]);
    assert!(poll!(waiting.as_mut()).is_pending());
    let mut deletion = storage.delete_path(&key.path);
    assert!(poll!(deletion.as_mut()).is_pending());
    waiting.await.unwrap_err();
    storage
        .append(&key, vec![new_entry("4")])
        .await
        .unwrap_err();
    storage
        .read(&key, ReadOptions::default())
        .await
        .unwrap_err();
    open_gate.send(()).unwrap();
    assert_eq!(running.await.unwrap().first, 2);
    assert!(deletion.await.unwrap());
    assert!(!dir.path().join("c").exists());
    assert_eq!(append(&storage, &key, "5").await.first, 1);
}

#[tokio::test]
async fn an_append_whose_caller_left_happens_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (_, storage) = counted(dir.path());
    let key = key("c/s");
    let appended = storage.append(&key, vec![new_entry("1"), new_entry("2")]);
    // Whatever is ready first, the append is dropped after its first step.
    select(appended, futures::future::ready(())).await;
    append(&storage, &key, "3").await;
    let found = all(&storage, &key).await;
    assert_eq!(
        found
            .iter()
            .map(|(_, text)| text.as_str())
            .collect::<Vec<_>>(),
        ["1", "2", "3"]
    );
}

#[tokio::test]
async fn r_40_opening_costs_the_tail_and_paging_the_length() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("c")).unwrap();
    let bytes = lines(1..=20_000);
    fs::write(dir.path().join("c/s.jsonl"), &bytes).unwrap();
    let (disk, storage) = counted(dir.path());
    let key = key("c/s");
    let page = storage
        .read(&key, ReadOptions::descending().limit(10))
        .await
        .unwrap();
    assert_eq!(page.entries[0].seq, 20_000);
    assert!(
        disk.bytes_read() <= 256 * 1024,
        "{} bytes for the tail",
        disk.bytes_read()
    );
    for options in [ReadOptions::ascending(), ReadOptions::descending()] {
        let before = disk.bytes_read();
        let mut options = options.limit(500);
        let mut count = 0;
        while let Some(page) = Some(storage.read(&key, options).await.unwrap()) {
            count += page.entries.len();
            match page.next {
                Some(next) => options.cursor = next,
                None => break,
            }
        }
        let read = disk.bytes_read() - before;
        assert_eq!(count, 20_000);
        assert!(
            read < 4 * bytes.len() as u64,
            "{read} bytes for {} in pages",
            bytes.len()
        );
    }
    // A page in the middle is found without a scan by now.
    let before = disk.bytes_read();
    let middle = ReadOptions::ascending().cursor(9_999).limit(1);
    let page = storage.read(&key, middle).await.unwrap();
    assert_eq!(
        page.entries.iter().map(super::short).collect::<Vec<_>>(),
        expected(10_000..=10_000)
    );
    assert!(disk.bytes_read() - before <= 64 * 1024);
    assert_eq!(append(&storage, &key, &payload(20_001)).await.first, 20_001);
}

#[tokio::test]
async fn streams_beyond_the_limit_of_open_files_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FileStorage::open(FileOptions::new(dir.path()).open_files(3)).unwrap();
    let keys: Vec<_> = (0..10).map(|n| key(&format!("c/s{n}"))).collect();
    for round in 1..=3 {
        for key in &keys {
            assert_eq!(append(&storage, key, "1").await.first, round);
        }
    }
    // The last file is closed after its append was answered, and before this is.
    storage.reports().unwrap();
    #[cfg(target_os = "linux")]
    {
        let root = dir.path().join("c");
        let open = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        assert_eq!(open.filter(|path| path.starts_with(&root)).count(), 3);
    }
}

//! The rules of a [`LogStorage`] that outlives its process: what was acknowledged is there when it is opened again.

use std::future::Future;

use crate::conformance::raw;
use crate::log::{LogStorage, LogStorageExt, NewEntry, StreamKey};

/// Every acknowledged entry is there, with its number, its time and its payload; the very last one, too.
pub async fn acknowledged_entries_are_there_after_a_restart<S, G, R, F>(made: (S, G), reopen: R)
where
    S: LogStorage,
    R: Fn((S, G)) -> F,
    F: Future<Output = (S, G)>,
{
    let (one, two) = (key("c/one", "s"), key("c/two/deep", "t"));
    let mut now = made;
    for round in 1..=3_u64 {
        for key in [&one, &two] {
            append(&now.0, key, round).await;
        }
        now = reopen(now).await;
        for key in [&one, &two] {
            let expected: Vec<_> = (1..=round).map(|n| (n, n as i64, n.to_string())).collect();
            assert_eq!(entries(&now.0, key).await, expected);
        }
    }
}

/// The next append has the next number, not one that was given before.
pub async fn numbers_go_on_after_a_restart<S, G, R, F>(made: (S, G), reopen: R)
where
    S: LogStorage,
    R: Fn((S, G)) -> F,
    F: Future<Output = (S, G)>,
{
    let key = key("c/one", "s");
    append(&made.0, &key, 1).await;
    append(&made.0, &key, 2).await;
    let (storage, _guard) = reopen(made).await;
    let appended = storage.append(&key, vec![NewEntry::new(3, raw("3"))]).await;
    assert_eq!(appended.unwrap().first, 3);
    assert_eq!(entries(&storage, &key).await.len(), 3);
}

/// A deleted stream, and all below a deleted path, stays away; its neighbours stay.
pub async fn deletions_last_over_a_restart<S, G, R, F>(made: (S, G), reopen: R)
where
    S: LogStorage,
    R: Fn((S, G)) -> F,
    F: Future<Output = (S, G)>,
{
    let (stream, path, neighbour) = (key("c/one", "s"), key("c/two", "s"), key("c/one", "t"));
    for key in [&stream, &path, &neighbour] {
        append(&made.0, key, 1).await;
    }
    assert!(made.0.delete(&stream).await.unwrap());
    assert!(made.0.delete_path(&path.path).await.unwrap());
    let (storage, _guard) = reopen(made).await;
    assert_eq!(storage.info(&stream).await.unwrap(), None);
    assert_eq!(storage.info(&path).await.unwrap(), None);
    assert_eq!(entries(&storage, &neighbour).await.len(), 1);
}

fn key(path: &str, stream: &str) -> StreamKey {
    let path = path.parse().expect("the suite's paths are valid");
    let stream = stream.parse().expect("the suite's stream ids are valid");
    StreamKey::new(path, stream)
}

async fn append(storage: &dyn LogStorage, key: &StreamKey, n: u64) {
    let entry = NewEntry::new(n as i64, raw(&n.to_string()));
    storage.append(key, vec![entry]).await.unwrap();
}

async fn entries(storage: &dyn LogStorage, key: &StreamKey) -> Vec<(u64, i64, String)> {
    let entries = storage.read_all(key).await.unwrap();
    let text = |entry: &crate::log::Entry| entry.json().map(|data| data.get().to_owned());
    let found = entries.iter().map(|entry| {
        let text = text(entry).expect("no entry is damaged");
        (entry.seq, entry.time, text)
    });
    found.collect()
}

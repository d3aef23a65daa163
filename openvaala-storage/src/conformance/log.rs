//! The rules of [`LogStorage`], one function each, for an empty storage.

use std::collections::BTreeSet;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt};

use crate::conformance::{DELICATE_PAYLOADS, raw};
use crate::error::{Error, Result};
use crate::log::{
    Appended, Entry, EntryData, Listing, LogPath, LogStorage, LogStorageExt, NewEntry, Order, Page,
    ReadOptions, StreamKey,
};

/// The first entry has number 1, each append goes on where the last one ended.
pub async fn numbers_are_dense_from_one(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let mut next = 1;
    for size in [1, 3, 1, 10, 2] {
        let appended = append(storage, &key, size).await;
        assert_eq!(
            (appended.first, appended.last),
            (next, next + size as u64 - 1)
        );
        next = appended.last + 1;
    }
    let seqs: Vec<u64> = all(storage, &key)
        .await
        .iter()
        .map(|entry| entry.seq)
        .collect();
    assert_eq!(seqs, (1..next).collect::<Vec<_>>());
}

/// Entries lie in the order of their batch, with the times they were given, also when those go back.
pub async fn a_batch_keeps_its_order_and_times(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let times = [5, -3, i64::MAX, i64::MIN, 0];
    let batch = times
        .iter()
        .map(|time| NewEntry::new(*time, raw(&time.to_string())))
        .collect();
    storage.append(&key, batch).await.unwrap();
    let found: Vec<_> = all(storage, &key)
        .await
        .iter()
        .map(|it| (it.time, text(it)))
        .collect();
    assert_eq!(found, times.map(|time| (time, time.to_string())));
}

/// Pages of 1 to N+1 entries, forwards and backwards, give each entry exactly once.
pub async fn r_29_pages_of_every_size_give_each_entry_once(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    for _ in 0..3 {
        append(storage, &key, 3).await;
    }
    for order in [Order::Ascending, Order::Descending] {
        let mut expected: Vec<u64> = (1..=9).collect();
        if order == Order::Descending {
            expected.reverse();
        }
        for limit in 1..=10 {
            let mut options = ReadOptions::default().order(order).limit(limit);
            let (mut seqs, mut pages) = (Vec::new(), 0);
            loop {
                let page = storage.read(&key, options).await.unwrap();
                assert!(page.entries.len() <= limit && !page.entries.is_empty());
                seqs.extend(page.entries.iter().map(|entry| entry.seq));
                pages += 1;
                match page.next {
                    Some(next) => options.cursor = next,
                    None => break,
                }
            }
            assert_eq!(
                (&seqs, pages),
                (&expected, 9_usize.div_ceil(limit)),
                "{order:?} {limit}"
            );
        }
    }
}

/// What is appended while somebody pages forwards comes at the end; backwards it does not appear.
pub async fn r_29_entries_appended_between_pages_come_last(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    append(storage, &key, 4).await;
    let forwards = read(storage, &key, ReadOptions::ascending().limit(3)).await;
    let backwards = read(storage, &key, ReadOptions::descending().limit(3)).await;
    append(storage, &key, 2).await;
    let cursor = forwards.next.expect("one entry is left");
    let rest = read(storage, &key, ReadOptions::ascending().cursor(cursor)).await;
    assert_eq!(numbers(&rest), [4, 5, 6]);
    let cursor = backwards.next.expect("one entry is left");
    let rest = read(storage, &key, ReadOptions::descending().cursor(cursor)).await;
    assert_eq!(numbers(&rest), [1]);
}

/// A reader that has seen everything gets an empty page, and later what is new.
pub async fn r_29_a_cursor_at_the_end_is_an_empty_page(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    append(storage, &key, 2).await;
    let end = read(storage, &key, ReadOptions::ascending().cursor(2)).await;
    assert_eq!((numbers(&end), end.next), (vec![], None));
    let end = read(storage, &key, ReadOptions::descending().cursor(1)).await;
    assert_eq!((numbers(&end), end.next), (vec![], None));
    append(storage, &key, 1).await;
    let new = read(storage, &key, ReadOptions::ascending().cursor(2)).await;
    assert_eq!(numbers(&new), [3]);
}

/// A cursor that the stream never gave out is an error, not wrong data.
pub async fn r_28_a_cursor_beyond_the_end_is_refused(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    append(storage, &key, 3).await;
    storage.delete(&key).await.unwrap();
    append(storage, &key, 1).await;
    for options in [
        ReadOptions::ascending().cursor(2),
        ReadOptions::ascending().cursor(u64::MAX),
        ReadOptions::descending().cursor(3),
        ReadOptions::descending().cursor(u64::MAX),
    ] {
        let error = storage.read(&key, options).await.unwrap_err();
        assert!(
            matches!(error, Error::InvalidCursor { .. }),
            "{options:?}: {error}"
        );
    }
    let page = read(storage, &key, ReadOptions::descending().cursor(2)).await;
    assert_eq!(numbers(&page), [1]);
}

/// A page has at least one entry if there is one.
pub async fn a_limit_of_zero_counts_as_one(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    append(storage, &key, 2).await;
    let page = read(storage, &key, ReadOptions::ascending().limit(0)).await;
    assert_eq!((numbers(&page), page.next), (vec![1], Some(1)));
    let page = read(storage, &key, ReadOptions::ascending().limit(usize::MAX)).await;
    assert_eq!((numbers(&page), page.next), (vec![1, 2], None));
}

/// 64 appends at once: dense numbers, each batch in one piece, in the order of its own entries.
pub async fn r_31_concurrent_batches_are_dense_and_contiguous(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let appends = (0..64_usize).map(|n| {
        let size = n % 5 + 1;
        let batch = (0..size).map(|part| NewEntry::new(0, raw(&format!("[{n},{part}]"))));
        storage.append(&key, batch.collect())
    });
    let acknowledged = join_all(appends).await;
    let entries = all(storage, &key).await;
    let mut covered = BTreeSet::new();
    for (n, appended) in acknowledged.into_iter().enumerate() {
        let Appended { first, last, .. } = appended.unwrap();
        assert_eq!(last - first, (n % 5) as u64);
        for (part, seq) in (first..=last).enumerate() {
            assert_eq!(text(&entries[seq as usize - 1]), format!("[{n},{part}]"));
            assert!(covered.insert(seq));
        }
    }
    assert_eq!(covered, (1..=entries.len() as u64).collect());
}

/// Big integers, spacing, key order, duplicate keys and odd escapes are kept.
pub async fn r_38_payloads_come_back_byte_for_byte(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let batch = DELICATE_PAYLOADS
        .iter()
        .map(|payload| NewEntry::new(0, raw(payload)));
    storage.append(&key, batch.collect()).await.unwrap();
    let found: Vec<String> = all(storage, &key).await.iter().map(text).collect();
    assert_eq!(found, DELICATE_PAYLOADS);
}

/// A payload over several lines stays one entry.
pub async fn r_39_line_breaks_between_tokens_may_only_become_spaces(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let pretty = "{\n  \"a\": [\r\n    1\n  ]\n}";
    storage
        .append(&key, vec![NewEntry::new(0, raw(pretty)); 2])
        .await
        .unwrap();
    let flat = |text: &str| text.replace(['\n', '\r'], " ");
    let found: Vec<String> = all(storage, &key)
        .await
        .iter()
        .map(|it| flat(&text(it)))
        .collect();
    assert_eq!(found, [flat(pretty), flat(pretty)]);
}

/// An empty batch is an error and creates nothing.
pub async fn an_empty_batch_is_refused(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let error = storage.append(&key, Vec::new()).await.unwrap_err();
    assert!(matches!(error, Error::EmptyBatch), "{error}");
    assert_eq!(storage.info(&key).await.unwrap(), None);
}

/// What was never written is reported as absent, and looking does not create it.
pub async fn an_unknown_stream_is_absent_in_every_way(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let error = storage
        .read(&key, ReadOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { key: named } if *named == key),
        "{error}"
    );
    assert_eq!(storage.fingerprint(&key).await.unwrap(), None);
    assert_eq!(storage.info(&key).await.unwrap(), None);
    assert!(!storage.delete(&key).await.unwrap());
    assert!(!storage.delete_path(&key.path).await.unwrap());
    assert_eq!(
        storage.list(Some(&key.path)).await.unwrap(),
        Listing::default()
    );
    assert_eq!(storage.list(None).await.unwrap(), Listing::default());
}

/// The fingerprint of an append, of `info` and of `fingerprint` are one, until the next append.
pub async fn fingerprints_change_with_every_append(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let mut seen = BTreeSet::new();
    for n in 1..=3 {
        let appended = append(storage, &key, 1).await;
        let info = storage
            .info(&key)
            .await
            .unwrap()
            .expect("the stream exists");
        assert_eq!((info.last, &info.fingerprint), (n, &appended.fingerprint));
        assert_eq!(
            storage.fingerprint(&key).await.unwrap(),
            Some(info.fingerprint.clone())
        );
        all(storage, &key).await;
        assert_eq!(
            storage.fingerprint(&key).await.unwrap(),
            Some(info.fingerprint.clone())
        );
        assert!(seen.insert(info.fingerprint.to_string()));
    }
}

/// Many fingerprints at once are those of each stream, in the order of the keys, also of absent streams and of one that is asked for twice.
pub async fn fingerprints_of_many_are_those_of_each(storage: &dyn LogStorage) {
    let mut keys = Vec::new();
    let mut expected = Vec::new();
    for n in (0..200).rev() {
        let key = key(&format!("c/{n}"), "s");
        expected.push(match n % 3 {
            0 => None,
            _ => Some(append(storage, &key, 1).await.fingerprint),
        });
        keys.push(key);
    }
    keys.push(keys[0].clone());
    expected.push(expected[0].clone());
    let found = storage.fingerprints(&keys).await.into_iter();
    assert_eq!(found.collect::<Result<Vec<_>>>().unwrap(), expected);
    expected[0] = Some(append(storage, &keys[0], 1).await.fingerprint);
    storage.delete(&keys[1]).await.unwrap();
    expected[1] = None;
    let found = storage.fingerprints(&keys[..2]).await.into_iter();
    assert_eq!(found.collect::<Result<Vec<_>>>().unwrap(), expected[..2]);
    assert_eq!(storage.fingerprints(&[]).await.len(), 0);
}

/// The same entries in a stream that was deleted meanwhile are not the same stream.
pub async fn a_stream_begun_anew_has_another_fingerprint(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    let before = append(storage, &key, 1).await;
    storage.delete(&key).await.unwrap();
    let after = append(storage, &key, 1).await;
    assert_ne!(before.fingerprint, after.fingerprint);
}

/// After a deletion the stream is absent, its neighbour is not, and it begins at 1.
pub async fn r_28_a_deleted_stream_begins_again_at_one(storage: &dyn LogStorage) {
    let (key, neighbour) = (key("c/one", "s"), key("c/one", "s.blobs"));
    append(storage, &key, 3).await;
    append(storage, &neighbour, 2).await;
    assert!(storage.delete(&key).await.unwrap());
    assert!(!storage.delete(&key).await.unwrap());
    assert_eq!(storage.info(&key).await.unwrap(), None);
    assert_eq!(all(storage, &neighbour).await.len(), 2);
    assert_eq!(append(storage, &key, 1).await.first, 1);
    assert_eq!(all(storage, &key).await.len(), 1);
}

/// Neighbours whose names begin alike stay.
pub async fn r_26_deleting_a_path_removes_exactly_its_subtree(storage: &dyn LogStorage) {
    let inside = [key("c/ab", "s"), key("c/ab", "t"), key("c/ab/deep/er", "s")];
    let outside = [
        key("c/abc", "s"),
        key("c/ab.c", "s"),
        key("c/ab-c/x", "s"),
        key("c", "ab"),
    ];
    for key in inside.iter().chain(&outside) {
        append(storage, key, 1).await;
    }
    assert!(storage.delete_path(&inside[0].path).await.unwrap());
    assert!(!storage.delete_path(&inside[0].path).await.unwrap());
    for key in &inside {
        assert_eq!(storage.info(key).await.unwrap(), None, "{key}");
    }
    for key in &outside {
        assert_eq!(all(storage, key).await.len(), 1, "{key}");
    }
    let listing = storage.list(Some(&path("c"))).await.unwrap();
    assert_eq!(
        listing.paths,
        [path("c/ab-c"), path("c/ab.c"), path("c/abc")]
    );
    assert_eq!(append(storage, &inside[0], 1).await.first, 1);
}

/// Whatever a racing append answers, the stream afterwards is what it says.
pub async fn r_27_an_append_that_races_with_a_deletion_is_whole_or_refused(
    storage: &dyn LogStorage,
) {
    let key = key("c/one", "s");
    for round in 0..20 {
        append(storage, &key, 2).await;
        let batch = vec![NewEntry::new(0, raw("1")); 3];
        let (appended, deleted) = if round % 2 == 0 {
            futures::join!(storage.append(&key, batch), storage.delete_path(&key.path))
        } else {
            let (deleted, appended) =
                futures::join!(storage.delete(&key), storage.append(&key, batch));
            (appended, deleted)
        };
        assert!(deleted.unwrap());
        let left = storage
            .info(&key)
            .await
            .unwrap()
            .map_or(0, |info| info.last);
        match appended {
            Ok(Appended { first: 1, .. }) => assert_eq!(left, 3),
            Ok(_) | Err(Error::Deleted { .. }) => assert_eq!(left, 0),
            Err(error) => panic!("{error}"),
        }
        storage.delete(&key).await.unwrap();
    }
}

/// A moved path keeps its payloads, numbers and fingerprints; appends go on there, and the old path is free.
pub async fn a_path_moves_with_all_its_streams_and_numbers(storage: &dyn LogStorage) {
    let (from, to) = (path("c/one"), path("t/one"));
    assert!(!storage.rename_path(&from, &to).await.unwrap());
    for (of, size) in [("c/one", 3), ("c/one/deep", 2)] {
        append(storage, &key(of, "s"), size).await;
    }
    let before = storage.fingerprint(&key("c/one", "s")).await.unwrap();
    let kept = texts(&all(storage, &key("c/one", "s")).await);
    assert!(storage.rename_path(&from, &to).await.unwrap());
    assert!(!storage.rename_path(&from, &to).await.unwrap());
    let moved = key("t/one", "s");
    assert_eq!(texts(&all(storage, &moved).await), kept);
    assert_eq!(storage.fingerprint(&moved).await.unwrap(), before);
    assert_eq!(all(storage, &key("t/one/deep", "s")).await.len(), 2);
    assert!(is_absent(storage, &key("c/one", "s")).await);
    assert_eq!(append(storage, &moved, 1).await.first, 4);
    assert_eq!(append(storage, &key("c/one", "s"), 1).await.first, 1);
    let listing = storage.list(Some(&path("t"))).await.unwrap();
    assert_eq!(listing.paths, [to]);
}

/// Moving `c/ab` leaves `c/abc`, `c/ab.c` and `c/a` where they are.
pub async fn r_26_moving_a_path_takes_exactly_its_subtree(storage: &dyn LogStorage) {
    for name in ["c/ab", "c/ab/x", "c/abc", "c/ab.c", "c/a"] {
        append(storage, &key(name, "s"), 1).await;
    }
    let moved = storage.rename_path(&path("c/ab"), &path("t/z")).await;
    assert!(moved.unwrap());
    for name in ["c/abc", "c/ab.c", "c/a", "t/z", "t/z/x"] {
        assert_eq!(all(storage, &key(name, "s")).await.len(), 1, "{name}");
    }
    for name in ["c/ab", "c/ab/x"] {
        assert!(is_absent(storage, &key(name, "s")).await, "{name}");
    }
}

/// What lies at or below the new path makes a move fail, and nothing changes; so do paths that cannot be.
pub async fn a_path_is_never_moved_onto_another(storage: &dyn LogStorage) {
    for name in ["c/one", "t/one/deep", "t/two"] {
        append(storage, &key(name, "s"), 2).await;
    }
    let one = path("c/one");
    for taken in ["t/one", "t/two"] {
        let error = storage.rename_path(&one, &path(taken)).await.unwrap_err();
        let named = matches!(&error, Error::PathExists { path } if path.as_str() == taken);
        assert!(named, "{taken}: {error:?}");
    }
    for odd in ["c", "c/one", "c/one/x", "d/e/f"] {
        let error = storage.rename_path(&one, &path(odd)).await.unwrap_err();
        assert!(
            matches!(error, Error::InvalidRename { .. }),
            "{odd}: {error:?}"
        );
    }
    for name in ["c/one", "t/one/deep", "t/two"] {
        assert_eq!(all(storage, &key(name, "s")).await.len(), 2, "{name}");
    }
}

/// Of appends that race with a move, each lands whole, before it or after it, or is refused; none is lost.
pub async fn r_27_an_append_that_races_with_a_move_is_whole_or_refused(storage: &dyn LogStorage) {
    for round in 0..10 {
        let (from, to) = (format!("c/{round}"), format!("t/{round}"));
        let (old, new) = (key(&from, "s"), key(&to, "s"));
        append(storage, &old, 2).await;
        let batch = || (0..2).map(|n| NewEntry::new(n, raw("0"))).collect();
        let appends = join_all((0..8).map(|_| storage.append(&old, batch())));
        let (from, to) = (path(&from), path(&to));
        let (moved, appended) = futures::join!(storage.rename_path(&from, &to), appends);
        assert!(moved.unwrap(), "there were entries before");
        let mut acknowledged = 2;
        for result in appended {
            match result {
                Ok(_) => acknowledged += 2,
                Err(Error::Deleted { key }) => assert_eq!(key, old),
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut found = all(storage, &new).await.len();
        if !is_absent(storage, &old).await {
            found += all(storage, &old).await.len();
        }
        assert_eq!(found, acknowledged);
    }
}

/// A listing shows what lies directly below, sorted.
pub async fn listings_are_sorted_and_direct(storage: &dyn LogStorage) {
    for key in [
        key("c/two", "s"),
        key("c/one", "z"),
        key("c/one", "a.b"),
        key("c/one/deep", "s"),
        key("d", "s"),
    ] {
        append(storage, &key, 1).await;
    }
    let listing = |paths: &[&str], streams: &[&str]| Listing {
        paths: paths.iter().map(|text| path(text)).collect(),
        streams: streams.iter().map(|text| text.parse().unwrap()).collect(),
    };
    assert_eq!(storage.list(None).await.unwrap(), listing(&["c", "d"], &[]));
    let c = storage.list(Some(&path("c"))).await.unwrap();
    assert_eq!(c, listing(&["c/one", "c/two"], &[]));
    let one = storage.list(Some(&path("c/one"))).await.unwrap();
    assert_eq!(one, listing(&["c/one/deep"], &["a.b", "z"]));
}

/// Appends to many streams at once are each numbered on their own.
pub async fn streams_do_not_touch_each_other(storage: &dyn LogStorage) {
    let keys: Vec<StreamKey> = (0..32)
        .map(|n| key(&format!("c/{}", n % 8), &format!("s{n}")))
        .collect();
    for round in 0..3 {
        let appended = join_all(keys.iter().map(|key| append(storage, key, 2))).await;
        assert!(
            appended
                .iter()
                .all(|appended| appended.first == 2 * round + 1)
        );
    }
    for key in &keys {
        assert_eq!(all(storage, key).await.len(), 6);
    }
}

/// `append_json`, `read_all` and `stream` agree with the plain methods.
pub async fn extensions_read_what_was_appended(storage: &dyn LogStorage) {
    let key = key("c/one", "s");
    storage
        .append_json(&key, 7, &["a", "b", "c"])
        .await
        .unwrap();
    let options = ReadOptions::descending().limit(2);
    let streamed: Vec<Entry> = storage.stream(&key, options).try_collect().await.unwrap();
    let streamed: Vec<_> = streamed
        .iter()
        .map(|it| (it.seq, it.time, text(it)))
        .collect();
    let mut expected: Vec<_> = all(storage, &key)
        .await
        .iter()
        .map(|it| (it.seq, it.time, text(it)))
        .collect();
    expected.reverse();
    assert_eq!(streamed, expected);
    assert_eq!(expected[0], (3, 7, "\"c\"".to_owned()));
    let unknown = self::key("c/two", "s");
    let results: Vec<_> = storage.stream(&unknown, options).collect().await;
    assert!(matches!(results[..], [Err(Error::NotFound { .. })]));
}

fn path(text: &str) -> LogPath {
    text.parse().expect("the suite's paths are valid")
}

fn key(path: &str, stream: &str) -> StreamKey {
    StreamKey::new(
        self::path(path),
        stream.parse().expect("the suite's stream ids are valid"),
    )
}

async fn append(storage: &dyn LogStorage, key: &StreamKey, size: usize) -> Appended {
    let batch = (0..size).map(|n| NewEntry::new(n as i64, raw(&format!("{{\"n\":{n}}}"))));
    storage.append(key, batch.collect()).await.unwrap()
}

async fn read(storage: &dyn LogStorage, key: &StreamKey, options: ReadOptions) -> Page {
    storage.read(key, options).await.unwrap()
}

async fn all(storage: &dyn LogStorage, key: &StreamKey) -> Vec<Entry> {
    storage.read_all(key).await.unwrap()
}

fn numbers(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.seq).collect()
}

fn texts(entries: &[Entry]) -> Vec<(u64, i64, String)> {
    let entries = entries.iter();
    entries.map(|it| (it.seq, it.time, text(it))).collect()
}

async fn is_absent(storage: &dyn LogStorage, key: &StreamKey) -> bool {
    storage.info(key).await.unwrap().is_none()
}

fn text(entry: &Entry) -> String {
    match &entry.data {
        EntryData::Json(data) => data.get().to_owned(),
        EntryData::Damaged(damage) => panic!("entry {} is damaged: {damage:?}", entry.seq),
    }
}

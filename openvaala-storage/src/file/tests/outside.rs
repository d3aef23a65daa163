//! Other programs that change files while the storage is open.

use std::fs::{self, OpenOptions};
use std::io::Write;

use pretty_assertions::assert_eq;

use super::{Bench, all, append, expected, key, lines, payload};
use crate::log::{LogStorage, StreamKey};

/// A stream of three entries, known and open.
async fn known() -> (Bench, StreamKey) {
    let (bench, key) = (Bench::new(), key("c/s"));
    for n in 1..=3 {
        append(&bench.storage, &key, &payload(n)).await;
    }
    (bench, key)
}

#[tokio::test]
async fn r_49_a_replaced_file_is_opened_anew() {
    for read_first in [false, true] {
        let (bench, key) = known().await;
        let other = bench.dir.path().join("other");
        fs::write(&other, lines(1..=5)).unwrap();
        fs::rename(&other, bench.path(&key)).unwrap();
        if read_first {
            assert_eq!(all(&bench.storage, &key).await, expected(1..=5));
        }
        assert_eq!(append(&bench.storage, &key, &payload(6)).await.first, 6);
        assert_eq!(all(&bench.storage, &key).await, expected(1..=6));
        assert_eq!(
            bench
                .bytes(&key)
                .iter()
                .filter(|byte| **byte == b'\n')
                .count(),
            6
        );
    }
}

#[tokio::test]
async fn r_49_a_shortened_file_is_read_anew() {
    for read_first in [false, true] {
        let (bench, key) = known().await;
        let file = OpenOptions::new()
            .write(true)
            .open(bench.path(&key))
            .unwrap();
        file.set_len(bench.bytes(&key).len() as u64 - 5).unwrap();
        if read_first {
            assert_eq!(all(&bench.storage, &key).await, expected(1..=2));
        }
        assert_eq!(append(&bench.storage, &key, &payload(3)).await.first, 3);
        assert_eq!(all(&bench.storage, &key).await, expected(1..=3));
    }
}

#[tokio::test]
async fn r_49_lines_of_another_program_are_taken_over() {
    let (bench, key) = known().await;
    let mut file = OpenOptions::new()
        .append(true)
        .open(bench.path(&key))
        .unwrap();
    file.write_all(&lines(4..=4)).unwrap();
    assert_eq!(all(&bench.storage, &key).await, expected(1..=4));
    file.write_all(b"half a li").unwrap();
    assert_eq!(all(&bench.storage, &key).await, expected(1..=4));
    assert_eq!(append(&bench.storage, &key, &payload(5)).await.first, 5);
    assert_eq!(all(&bench.storage, &key).await, expected(1..=5));
}

#[tokio::test]
async fn r_49_an_append_never_goes_to_a_file_that_is_gone() {
    let (bench, key) = known().await;
    fs::remove_dir_all(bench.dir.path().join("c")).unwrap();
    let appended = append(&bench.storage, &key, &payload(1)).await;
    assert_eq!(appended.first, 1);
    assert_eq!(
        bench
            .bytes(&key)
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        1
    );
    fs::remove_file(bench.path(&key)).unwrap();
    assert_eq!(bench.storage.info(&key).await.unwrap(), None);
    assert_eq!(append(&bench.storage, &key, &payload(1)).await.first, 1);
}

#[tokio::test]
async fn files_of_others_are_neither_listed_nor_touched() {
    let (bench, key) = known().await;
    let root = bench.dir.path();
    for name in [
        "metadata.db",
        "c/notes.txt",
        "c/Upper.jsonl",
        "c/.hidden.jsonl",
    ] {
        fs::write(root.join(name), "x").unwrap();
    }
    fs::create_dir(root.join("c/.git")).unwrap();
    let listing = bench.storage.list(None).await.unwrap();
    assert_eq!(
        (listing.paths, listing.streams),
        (vec!["c".parse().unwrap()], vec![])
    );
    let listing = bench.storage.list(Some(&key.path)).await.unwrap();
    assert_eq!(
        (listing.paths, listing.streams),
        (vec![], vec!["s".parse().unwrap()])
    );
    for path in ["metadata.db", "c/notes.txt", "openvaala.lock"] {
        assert!(
            !bench
                .storage
                .delete_path(&path.parse().unwrap())
                .await
                .unwrap()
        );
        assert!(root.join(path).exists());
    }
    assert!(bench.storage.delete(&key).await.unwrap());
    assert!(root.join("c/notes.txt").exists());
}

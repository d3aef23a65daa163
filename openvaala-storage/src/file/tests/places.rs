//! Long streams: pages without reading the file, and the side file that is never believed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::faulty::FaultyFs;
use super::{Bench, all, append, key, new_entry, open, short};
use crate::file::layout::Layout;
use crate::file::line::encode;
use crate::file::look;
use crate::file::offsets::Update;
use crate::file::{FileOptions, FileStorage};
use crate::fs::RealFs;
use crate::log::{LogStorage, Order, ReadOptions, StreamKey};

const ENTRIES: u64 = 1500;

/// About 1 KiB, so that the stream is long.
fn long_payload(n: u64) -> String {
    format!("\"{n} {}\"", "x".repeat(1000))
}

fn long_lines() -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 1..=ENTRIES {
        encode(&mut bytes, n, 0, &long_payload(n));
    }
    bytes
}

fn side_file(bench: &Bench) -> PathBuf {
    bench.dir.path().join("c/s.offsets")
}

/// Makes the side file as a storage does, without waiting for one; returns it.
fn made(bench: &Bench, key: &StreamKey) -> Vec<u8> {
    let layout = Layout {
        fs: Arc::new(RealFs::default()),
        root: bench.dir.path().into(),
    };
    let view = look::inspect(&layout, key).unwrap().unwrap();
    let update = Update {
        layout,
        key: key.clone(),
        view,
        anew: false,
        writes: true,
        cancelled: Arc::new(AtomicBool::new(false)),
    };
    assert!(update.run().is_some());
    fs::read(side_file(bench)).unwrap()
}

/// Returns the entries that a page of a sound stream must have.
fn numbers(options: ReadOptions) -> Vec<u64> {
    let limit = options.limit as u64;
    match options.order {
        Order::Ascending => (options.cursor + 1..=ENTRIES.min(options.cursor + limit)).collect(),
        Order::Descending => {
            let before = if options.cursor == 0 {
                ENTRIES + 1
            } else {
                options.cursor
            };
            (before.saturating_sub(limit).max(1)..before)
                .rev()
                .collect()
        }
    }
}

async fn is_right(storage: &FileStorage, key: &StreamKey, options: ReadOptions) {
    let page = storage.read(key, options).await.unwrap();
    let found: Vec<_> = page.entries.iter().map(short).collect();
    let expected: Vec<_> = numbers(options)
        .into_iter()
        .map(|n| (n, long_payload(n)))
        .collect();
    assert!(found == expected, "{options:?}");
}

#[tokio::test]
async fn a_page_anywhere_costs_a_few_short_reads_with_or_without_a_side_file() {
    let bench = Bench::new();
    let key = key("c/s");
    bench.plant(&key, &long_lines());
    for with_side_file in [false, true] {
        if with_side_file {
            made(&bench, &key);
        }
        for cursor in [1, 777, 1200, ENTRIES - 1] {
            for options in [ReadOptions::ascending(), ReadOptions::descending()] {
                let disk = FaultyFs::sound();
                let options = options.cursor(cursor).limit(10);
                let layout = Layout {
                    fs: Arc::clone(&disk) as _,
                    root: bench.dir.path().into(),
                };
                let view = look::inspect(&layout, &key).unwrap().unwrap();
                let (page, _) = look::read_page(&layout, &key, &view, options).unwrap();
                let found: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
                assert_eq!(found, numbers(options));
                assert!(
                    disk.bytes_read() <= 512 * 1024,
                    "{} bytes",
                    disk.bytes_read()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_side_file_belongs_to_its_stream() {
    let bench = Bench::new();
    let (key, small) = (key("c/s"), key("c/small"));
    append(&bench.storage, &small, "1").await;
    bench.plant(&key, &long_lines());
    let before = made(&bench, &key);
    let mode = fs::metadata(side_file(&bench))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // It is up to date: making it again changes nothing.
    assert_eq!(made(&bench, &key), before);
    let listing = bench.storage.list(Some(&key.path)).await.unwrap();
    assert_eq!(
        listing.streams,
        ["s", "small"].map(|name| name.parse().unwrap())
    );
    assert!(!bench.dir.path().join("c/small.offsets").exists());
    assert!(bench.storage.delete(&key).await.unwrap());
    assert!(!side_file(&bench).exists());
    bench.plant(&key, &long_lines());
    made(&bench, &key);
    assert!(bench.storage.delete_path(&key.path).await.unwrap());
    assert!(!bench.dir.path().join("c").exists());
}

#[tokio::test]
async fn appends_make_the_side_file_and_opening_or_reading_only_leaves_it_alone() {
    let bench = Bench::new();
    let key = key("c/s");
    for first in (0..ENTRIES).step_by(250) {
        let batch = (first + 1..=first + 250).map(|n| new_entry(&long_payload(n)));
        bench.storage.append(&key, batch.collect()).await.unwrap();
    }
    let dir = bench.dir;
    // Dropping the storage waits for the threads, a scan that was begun may be cut short.
    drop(bench.storage);
    let bench = Bench {
        storage: open(dir.path()),
        dir,
    };
    made(&bench, &key);
    let before = fs::read(side_file(&bench)).unwrap();
    for _ in 0..10 {
        let storage = FileStorage::open_read_only(FileOptions::new(bench.dir.path())).unwrap();
        is_right(&storage, &key, ReadOptions::ascending().cursor(1234)).await;
    }
    is_right(&bench.storage, &key, ReadOptions::descending().cursor(345)).await;
    drop(bench.storage);
    for _ in 0..10 {
        let storage = open(bench.dir.path());
        is_right(&storage, &key, ReadOptions::ascending().cursor(1234)).await;
    }
    let dir = bench.dir;
    assert!(before == fs::read(dir.path().join("c/s.offsets")).unwrap());
    fs::remove_file(dir.path().join("c/s.offsets")).unwrap();
    let storage = FileStorage::open_read_only(FileOptions::new(dir.path())).unwrap();
    is_right(&storage, &key, ReadOptions::ascending().cursor(1234)).await;
    drop(storage);
    assert!(!dir.path().join("c/s.offsets").exists());
}

#[tokio::test]
async fn a_wrong_side_file_is_made_anew() {
    let bench = Bench::new();
    let key = key("c/s");
    bench.plant(&key, &long_lines());
    let sound = made(&bench, &key);
    let mut newer = sound.clone();
    newer[8] = 9;
    let mut last_wrong = sound.clone();
    let at = last_wrong.len() - 8;
    last_wrong[at] ^= 1;
    for wrong in [
        Vec::new(),
        b"garbage".repeat(100),
        newer,
        last_wrong,
        sound[..100].to_vec(),
    ] {
        fs::write(side_file(&bench), &wrong).unwrap();
        assert!(made(&bench, &key) == sound);
    }
}

#[tokio::test]
async fn a_hint_that_lies_is_found_out_and_the_side_file_made_anew() {
    let bench = Bench::new();
    let key = key("c/s");
    bench.plant(&key, &long_lines());
    let sound = made(&bench, &key);
    // The last mark is right, so loading believes the file.
    let mut wrong = sound.clone();
    for record in wrong[16..].chunks_exact_mut(16).rev().skip(1) {
        record[8] ^= 7;
    }
    fs::write(side_file(&bench), &wrong).unwrap();
    // The first page has the places loaded, a later one uses them: as often as it takes to be seen.
    for n in 0.. {
        let cursor = 100 + n * 137 % (ENTRIES - 200);
        is_right(
            &bench.storage,
            &key,
            ReadOptions::ascending().cursor(cursor).limit(3),
        )
        .await;
        is_right(
            &bench.storage,
            &key,
            ReadOptions::descending().cursor(cursor).limit(3),
        )
        .await;
        if fs::read(side_file(&bench)).unwrap() == sound {
            break;
        }
        assert!(n < 10_000, "the side file stays wrong");
    }
}

#[tokio::test]
async fn a_deletion_while_places_are_looked_for_leaves_nothing() {
    for round in 0..8 {
        let bench = Bench::new();
        let key = key("c/s");
        bench.plant(&key, &long_lines());
        is_right(
            &bench.storage,
            &key,
            ReadOptions::descending().limit(round + 1),
        )
        .await;
        assert!(bench.storage.delete(&key).await.unwrap());
        assert_eq!(append(&bench.storage, &key, "1").await.first, 1);
        assert_eq!(all(&bench.storage, &key).await, [(1, "1".to_owned())]);
        assert!(!side_file(&bench).exists());
    }
}

/// What may happen to the side file.
#[derive(Clone, Debug)]
enum Harm {
    Bytes(Vec<u8>),
    Cut(usize),
    Flip(usize, u8),
    Junk(usize, Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = 0usize..1000;
    let bytes = prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        bytes.clone().prop_map(Harm::Bytes),
        at.clone().prop_map(Harm::Cut),
        (at.clone(), 1u8..=255).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        (at, bytes).prop_map(|(at, bytes)| Harm::Junk(at, bytes)),
    ]
}

fn apply(mut file: Vec<u8>, harm: Harm) -> Vec<u8> {
    match harm {
        Harm::Bytes(bytes) => return bytes,
        Harm::Cut(at) => file.truncate(at),
        Harm::Flip(at, bits) => {
            if let Some(byte) = file.get_mut(at) {
                *byte ^= bits;
            }
        }
        Harm::Junk(at, bytes) => {
            let at = at.min(file.len());
            file.splice(at..at, bytes);
        }
    }
    file
}

fn damaged(mut log: Vec<u8>, flips: &[usize]) -> Vec<u8> {
    for at in flips {
        let at = at % log.len();
        // A line break must stay one: entries are damaged, not joined.
        if log[at] != b'\n' {
            log[at] = b'#';
        }
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_is_in_the_side_file_changes_no_answer(
        harms in prop::collection::vec(harm(), 1..4),
        flips in prop::collection::vec(any::<usize>(), 0..6),
        pages in prop::collection::vec((any::<bool>(), 0..=ENTRIES, 1usize..60), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let bench = Bench::new();
            let key = key("c/s");
            bench.plant(&key, &damaged(long_lines(), &flips));
            let sound = made(&bench, &key);
            fs::remove_file(side_file(&bench)).unwrap();
            // Whole from the beginning, so that nothing but the lines counts.
            let truth = all(&bench.storage, &key).await;
            let side = side_file(&bench);
            drop(bench.storage);
            fs::write(&side, harms.into_iter().fold(sound, apply)).unwrap();
            let storage = open(bench.dir.path());
            for (down, cursor, limit) in pages {
                let order = if down { Order::Descending } else { Order::Ascending };
                let options = ReadOptions { order, cursor: cursor.min(truth.len() as u64), limit };
                let page = storage.read(&key, options).await.unwrap();
                for entry in &page.entries {
                    assert_eq!(short(entry), truth[entry.seq as usize - 1]);
                }
                let found: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
                if truth.len() as u64 == ENTRIES {
                    assert_eq!(found, numbers(options));
                }
            }
        });
    }
}

//! Recovery that is interrupted itself, starts that have nothing to do, clocks that go back, and the simulation's own honesty.

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures::executor::block_on;
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;

use super::super::key;
use super::promises::Promises;
use super::{Payloads, file, open, options, restart, send};
use crate::fs::{Fs, Open};
use crate::log::{LogStorage, LogStorageExt, NewEntry, StreamKey};
use crate::sim::{Effect, Fault, Op, SimFs};

/// What power cuts leave behind the last entry.
const TAILS: [&[u8]; 4] = [
    b"{\"seq\":3,\"time\":7,\"crc\":\"00",
    &[0; 700],
    b"half\n\0\0\0\0",
    b"\n\n{\"seq\":9}\n",
];

/// A disk with torn streams, and what was promised about them.
fn torn() -> (SimFs, Promises, Payloads) {
    let disk = SimFs::new();
    let (mut promises, mut payloads) = (Promises::default(), Payloads::default());
    let storage = open(options(&disk)).unwrap();
    for key in keys() {
        let batch = vec![payloads.sized(0), payloads.sized(600)];
        let result = send(&storage, &key, &batch);
        promises.appended(&key, batch, &result);
    }
    drop(storage);
    for (key, tail) in keys().iter().zip(TAILS) {
        let mut file = disk.open(&file(key), Open::Append).unwrap();
        assert_eq!(file.write(tail).unwrap(), tail.len());
        file.sync_data().unwrap();
    }
    (disk, promises, payloads)
}

fn keys() -> Vec<StreamKey> {
    let keys = (0..TAILS.len()).map(|n| key(&format!("c/{n}/s")));
    keys.collect()
}

/// I-4: the bytes of each tail are still somewhere: behind the stream, or in one of its side files.
fn tails_are_kept(tree: &BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for (key, tail) in keys().iter().zip(TAILS) {
        let directory = file(key).parent().unwrap().to_owned();
        let beside = tree.iter().filter(|(path, _)| path.starts_with(&directory));
        let mut contents = beside.filter_map(|(_, content)| content.as_ref());
        let tail = tail.trim_ascii_start();
        assert!(
            contents.any(|content| content.windows(tail.len()).any(|part| part == tail)),
            "I-4: the end of {key} is gone"
        );
    }
}

#[test]
fn r_20_a_recovery_that_is_interrupted_anywhere_is_done_again() {
    let (torn, promises, payloads) = torn();
    for n in 1.. {
        for seed in 0..4 {
            let disk = torn.kill();
            let (mut promises, mut payloads) = (promises.clone(), payloads.clone());
            disk.inject(Fault::at(n, Effect::PowerCut));
            if let Ok(storage) = open(options(&disk)) {
                for key in keys() {
                    let batch = vec![payloads.sized(0)];
                    let result = send(&storage, &key, &batch);
                    promises.appended(&key, batch, &result);
                }
            }
            let (is_cut, is_kill) = (disk.is_cut(), seed == 0);
            let found = if is_kill {
                disk.kill()
            } else {
                disk.crash(seed)
            };
            let options = options(&found);
            drop(restart(
                &found,
                options,
                &mut promises,
                &mut payloads,
                is_kill,
                |_| true,
            ));
            tails_are_kept(&found.tree());
            if !is_cut {
                assert!(n > 40, "{n}");
                return;
            }
        }
    }
}

#[test]
fn a_start_with_nothing_to_do_changes_nothing() {
    let (disk, mut promises, mut payloads) = torn();
    // The first start recovers.
    drop(restart(
        &disk,
        options(&disk),
        &mut promises,
        &mut payloads,
        true,
        |_| true,
    ));
    let before = disk.hash();
    for _ in 0..10 {
        let storage = open(options(&disk)).unwrap();
        promises.check_running(&storage);
        assert_eq!(storage.reports().unwrap(), []);
        drop(storage);
        assert_eq!(disk.hash(), before);
    }
    assert_eq!(disk.crash(1).tree().len(), disk.tree().len());
}

#[test]
fn r_25_a_deletion_that_its_successor_finishes_is_whole_after_the_next_power_cut() {
    let disk = SimFs::new();
    let (mut promises, mut payloads) = (Promises::default(), Payloads::default());
    let storage = open(options(&disk)).unwrap();
    for n in 0..20 {
        let (key, batch) = (key(&format!("c/many/s{n}")), vec![payloads.sized(9)]);
        let result = send(&storage, &key, &batch);
        promises.appended(&key, batch, &result);
    }
    // The process ends between the rename and its flush.
    let path = "c/many".parse().unwrap();
    disk.inject(Fault::at(1, Effect::PowerCut).of(&[Op::SyncDir]));
    let deleted = block_on(storage.delete_path(&path));
    promises.path_deleted(&path, &deleted);
    drop(storage);
    let successor = disk.kill();
    drop(open(options(&successor)).unwrap());
    for seed in 0..50 {
        let found = successor.crash(seed);
        let (mut promises, mut payloads) = (promises.clone(), payloads.clone());
        let options = options(&found);
        restart(&found, options, &mut promises, &mut payloads, false, |_| {
            false
        });
    }
}

#[test]
fn r_43_numbers_stay_dense_when_the_clock_goes_back() {
    let disk = SimFs::new();
    let key = key("c/one/s");
    let times = [
        1_700_000_000_000,
        1_699_996_400_000,
        0,
        -1,
        i64::MIN,
        i64::MAX,
        5,
    ];
    for (number, time) in (1..).zip(times) {
        // Each by a process of its own.
        let storage = open(options(&disk)).unwrap();
        let entry = NewEntry::new(time, RawValue::from_string("1".to_owned()).unwrap());
        let appended = block_on(storage.append(&key, vec![entry])).unwrap();
        assert_eq!((appended.first, appended.last), (number, number));
    }
    let storage = open(options(&disk.crash(3))).unwrap();
    let entries = block_on(storage.read_all(&key)).unwrap();
    let found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.seq, entry.time))
        .collect();
    assert_eq!(found, (1..).zip(times).collect::<Vec<_>>());
}

#[test]
fn a_disk_that_lies_about_a_flush_costs_only_the_stream_that_it_lied_about() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = SimFs::new();
        let storage = open(options(&disk)).unwrap();
        let (mut payloads, keys) = (Payloads::default(), keys());
        let batches: Vec<_> = keys.iter().map(|_| vec![payloads.sized(30)]).collect();
        disk.inject(Fault::at(2, Effect::SyncLies));
        let (mut lied, mut promises) = (Promises::default(), Promises::default());
        for (n, (key, batch)) in keys.iter().zip(batches).enumerate() {
            let result = send(&storage, key, &batch);
            let promises = if n == 1 { &mut lied } else { &mut promises };
            promises.appended(key, batch, &result);
        }
        drop(storage);
        let storage = open(options(&disk.crash(seed))).unwrap();
        // I-5: the others are whole. No storage can help the one.
        promises.check_after_crash(&storage);
        let number = block_on(storage.info(&keys[1]))
            .unwrap()
            .map_or(0, |info| info.last);
        lost += 1 - number;
    }
    assert!(lost > 0, "the simulation loses what was not flushed");
}

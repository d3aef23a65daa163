//! Many callers at once: batches share flushes while the power is cut, operations fail, and streams are deleted.

use std::collections::BTreeMap;
use std::{slice, thread};

use futures::executor::block_on;

use super::super::{all, key, short};
use super::promises::{Promises, Text};
use super::{EIO, Payloads, Story, open, options, restart, seeds, send};
use crate::error::{Error, Result};
use crate::file::FileStorage;
use crate::log::{Appended, LogStorage, ReadOptions, StreamKey};
use crate::sim::{Effect, Fault, Op, Random, SimFs};

const APPENDERS: u64 = 8;
const STREAMS: [&str; 3] = ["c/one/s", "c/one/t", "c/two/s"];

/// An append and what became of it.
struct Sent {
    key: StreamKey,
    batch: Vec<Text>,
    result: Result<Appended>,
}

/// Appends batches until the disk is gone; a second of them at most, whatever fails.
fn appender(storage: &FileStorage, disk: &SimFs, seed: u64, number: u64) -> Vec<Sent> {
    let mut random = Random::new(seed * APPENDERS + number);
    let mut payloads = Payloads {
        made: number * 1_000_000,
        ..Payloads::default()
    };
    let mut sent = Vec::new();
    for _ in 0..12 {
        let key = key(random.pick(&STREAMS).unwrap());
        let batch = payloads.batch(&mut random);
        let result = send(storage, &key, &batch);
        sent.push(Sent { key, batch, result });
        if disk.is_cut() {
            break;
        }
    }
    sent
}

/// Tells the promises what was acknowledged, in the order of the numbers, then what was not.
fn promise(promises: &mut Promises, mut sent: Vec<Sent>) {
    let first = |sent: &Sent| sent.result.as_ref().map_or(u64::MAX, |it| it.first);
    sent.sort_by_key(first);
    for Sent { key, batch, result } in sent {
        promises.appended(&key, batch, &result);
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let disk = SimFs::new();
    let mut story = Story::new(seed, &disk);
    let storage = open(options(&disk).flush_threads(3)).unwrap();
    let (effect, within) = match random.below(4) {
        0 => (Effect::Error(EIO), 150),
        1 => (Effect::SyncLoses(EIO), 20),
        _ => (Effect::PowerCut, 250),
    };
    let fault = Fault::at(1 + random.below(within), effect);
    story.tell(format!("{fault:?}"));
    disk.inject(fault);
    let sent: Vec<Sent> = thread::scope(|scope| {
        let start = |number| {
            let (storage, disk) = (&storage, &disk);
            scope.spawn(move || appender(storage, disk, seed, number))
        };
        let appenders: Vec<_> = (0..APPENDERS).map(start).collect();
        let sent = appenders.into_iter().map(|thread| thread.join().unwrap());
        sent.flatten().collect()
    });
    let mut promises = Promises::joined();
    promise(&mut promises, sent);
    if !disk.is_cut() {
        disk.clear_faults();
        promises.check_running(&storage);
    }
    drop(storage);
    let is_kill = disk.is_cut() && random.percent(30);
    let found = if is_kill {
        disk.kill()
    } else {
        disk.crash(seed)
    };
    story.disk = found.clone();
    let mut payloads = Payloads {
        made: 100 * 1_000_000,
        ..Payloads::default()
    };
    restart(
        &found,
        options(&found),
        &mut promises,
        &mut payloads,
        is_kill,
        |_| true,
    );
}

#[test]
fn r_20_appends_that_share_flushes_keep_every_promise() {
    seeds(100, run);
}

/// Appends single entries until it is told to stop by the number of deletions; returns what was acknowledged.
fn rival(storage: &FileStorage, key: &StreamKey, number: u64) -> BTreeMap<Text, u64> {
    let mut payloads = Payloads {
        made: number * 1_000_000,
        ..Payloads::default()
    };
    let mut acknowledged = BTreeMap::new();
    for _ in 0..60 {
        let text = payloads.sized(20);
        match send(storage, key, slice::from_ref(&text)) {
            Ok(appended) => drop(acknowledged.insert(text, appended.first)),
            Err(Error::Deleted { .. }) => {}
            Err(error) => panic!("an append that races with a deletion: {error}"),
        }
    }
    acknowledged
}

fn reader(storage: &FileStorage, key: &StreamKey) {
    for _ in 0..60 {
        let mut options = ReadOptions::ascending().limit(3);
        loop {
            match block_on(storage.read(key, options)) {
                Ok(page) => {
                    let numbers = page.entries.iter().map(short).map(|(number, _)| number);
                    let expected = options.cursor + 1..;
                    assert!(
                        expected.zip(numbers).all(|(one, other)| one == other),
                        "I-2"
                    );
                    match page.next {
                        Some(next) => options.cursor = next,
                        None => break,
                    }
                }
                // The stream is gone, or another one that is shorter.
                Err(Error::NotFound { .. } | Error::InvalidCursor { .. }) => break,
                Err(error) => panic!("a read that races with a deletion: {error}"),
            }
        }
    }
}

#[test]
fn r_27_appends_and_reads_that_race_with_deletions_are_whole_or_refused() {
    seeds(100, |seed| {
        let disk = SimFs::new();
        let _story = Story::new(seed, &disk);
        let storage = open(options(&disk).flush_threads(3)).unwrap();
        let key = key("c/one/s");
        let acknowledged: Vec<BTreeMap<Text, u64>> = thread::scope(|scope| {
            let (storage, key) = (&storage, &key);
            scope.spawn(move || reader(storage, key));
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..20 {
                    let deleted = if random.percent(50) {
                        block_on(storage.delete(key))
                    } else {
                        block_on(storage.delete_path(&key.path))
                    };
                    deleted.unwrap();
                }
            });
            let rivals = (1..4).map(|n| scope.spawn(move || rival(storage, key, n)));
            let rivals: Vec<_> = rivals.collect();
            rivals
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let acknowledged: BTreeMap<Text, u64> = acknowledged.into_iter().flatten().collect();
        let last: Text = "\"last\"".into();
        let number = send(&storage, &key, &[last]).unwrap().first;
        let mut found = block_on(all(&storage, &key));
        assert_eq!(found.len() as u64, number, "I-2");
        found.pop();
        for (number, text) in &found {
            // No entry is in the new stream that was acknowledged in the old one.
            assert_eq!(acknowledged.get(text.as_str()), Some(number), "I-3: {text}");
        }
        drop(storage);
        let storage = open(options(&disk.crash(seed))).unwrap();
        let mut after = block_on(all(&storage, &key));
        after.pop();
        assert!(after == found, "I-1");
    });
}

#[test]
fn r_16_an_append_that_shares_a_flush_with_others_fails_with_them() {
    let disk = SimFs::new();
    let storage = open(options(&disk)).unwrap();
    let key = key("c/one/s");
    let mut payloads = Payloads::default();
    let mut promises = Promises::joined();
    disk.inject(Fault::at(3, Effect::Error(EIO)).of(&[Op::Sync]));
    let batches: Vec<Vec<Text>> = (0..40).map(|_| vec![payloads.sized(9)]).collect();
    let sent = thread::scope(|scope| {
        let (storage, key) = (&storage, &key);
        let send = |batch: Vec<Text>| {
            scope.spawn(move || Sent {
                key: key.clone(),
                result: send(storage, key, &batch),
                batch,
            })
        };
        let threads: Vec<_> = batches.into_iter().map(send).collect();
        let sent = threads.into_iter().map(|thread| thread.join().unwrap());
        sent.collect()
    });
    promise(&mut promises, sent);
    promises.check_running(&storage);
}

//! One scripted run in which the n-th operation goes wrong, n = 1, 2, 3 … until a run is clean.

use futures::executor::block_on;

use super::super::key;
use super::promises::Promises;
use super::{EIO, ENOSPC, Payloads, Story, file, is_long, open, options, restart, send};
use crate::error::Error;
use crate::file::FileStorage;
use crate::fs::{Fs, Open};
use crate::log::{LogStorage, ReadOptions, StreamKey};
use crate::sim::{Effect, Fault, Op, SimFs};

const TORN: &[u8] = b"{\"seq\":3,\"time\":7,\"crc\":\"0000";

/// A disk with streams of all kinds, and what was promised about them.
struct Start {
    disk: SimFs,
    promises: Promises,
    payloads: Payloads,
}

impl Start {
    fn new() -> Self {
        let disk = SimFs::new();
        let mut start = Self {
            disk: disk.clone(),
            promises: Promises::default(),
            payloads: Payloads::default(),
        };
        let storage = open(options(&disk)).unwrap();
        let many = (0..20).map(|n| format!("c/many/s{n}"));
        for name in many.chain(["c/one/s", "c/one/t", "c/other/s"].map(str::to_owned)) {
            start.append(&storage, &key(&name), &[20, 0]);
        }
        drop(storage);
        // A power cut has torn a stream, and another one has interrupted a deletion.
        let mut torn = disk.open(&file(&key("c/one/s")), Open::Append).unwrap();
        assert_eq!(torn.write(TORN).unwrap(), TORN.len());
        torn.sync_data().unwrap();
        drop(torn);
        disk.create_dir("/data/.trash-3".as_ref()).unwrap();
        let leftover = "/data/.trash-3/old.jsonl".as_ref();
        disk.open(leftover, Open::CreateNew).unwrap();
        for directory in ["/data", "/data/.trash-3"] {
            disk.sync_dir(directory.as_ref()).unwrap();
        }
        start
    }

    /// Makes the same again, on a disk of its own.
    fn fork(&self) -> Self {
        Self {
            disk: self.disk.kill(),
            promises: self.promises.clone(),
            payloads: Payloads {
                made: self.payloads.made,
                ..Payloads::default()
            },
        }
    }

    fn append(&mut self, storage: &FileStorage, key: &StreamKey, sizes: &[u64]) -> Option<Error> {
        let sizes = sizes.iter();
        let batch: Vec<_> = sizes.map(|size| self.payloads.sized(*size)).collect();
        let result = send(storage, key, &batch);
        self.promises.appended(key, batch, &result);
        result.err()
    }

    /// Uses a storage in every way; returns the errors.
    fn script(&mut self, storage: &FileStorage) -> Vec<Error> {
        let (torn, deep) = (key("c/one/s"), key("c/new/deep/s"));
        let (gone, one_of_many) = (key("c/one/t"), key("c/many/s1"));
        let mut errors = Vec::new();
        errors.extend(self.append(storage, &torn, &[30]));
        errors.extend(self.append(storage, &deep, &[0, 600, 40]));
        errors.extend(self.append(storage, &deep, &[9000]));
        errors.extend(self.append(storage, &key("c/one/u"), &[0]));
        for options in [ReadOptions::ascending(), ReadOptions::descending()] {
            errors.extend(block_on(storage.read(&deep, options.limit(2))).err());
        }
        let deleted = block_on(storage.delete(&gone));
        self.promises.deleted(&gone, &deleted);
        errors.extend(deleted.err());
        errors.extend(self.append(storage, &gone, &[10, 0]));
        let path = "c/many".parse().unwrap();
        let deleted = block_on(storage.delete_path(&path));
        self.promises.path_deleted(&path, &deleted);
        let is_half = deleted.is_err();
        errors.extend(deleted.err());
        if !is_half {
            errors.extend(self.append(storage, &one_of_many, &[0]));
        }
        errors.extend(block_on(storage.list(None)).err());
        errors
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Crash(u64),
    Kill,
    /// The process ends, the next one begins, and then the power is cut.
    KillAndCrash(u64),
}

impl End {
    /// Returns two ends for the n-th run, in a long run all kinds and several power cuts.
    fn some(n: u64) -> Vec<Self> {
        if is_long() {
            let cuts = (0..10).flat_map(|seed| {
                let seed = 10 * n + seed;
                [Self::Crash(seed), Self::KillAndCrash(seed)]
            });
            return cuts.chain([Self::Kill]).collect();
        }
        let other = if n.is_multiple_of(2) {
            Self::Kill
        } else {
            Self::KillAndCrash(n)
        };
        vec![Self::Crash(n), other]
    }

    /// Returns the disk that is found.
    fn of(self, disk: &SimFs) -> SimFs {
        match self {
            Self::Crash(seed) => disk.crash(seed),
            Self::Kill => disk.kill(),
            Self::KillAndCrash(seed) => {
                let killed = disk.kill();
                drop(open(options(&killed)).unwrap());
                killed.crash(seed)
            }
        }
    }
}

/// Runs the script with an effect at the n-th operation, n = 1, 2, 3 …; ends each run in several ways and checks what is found.
///
/// Returns how many runs met the effect.
fn each(effect: Effect, kinds: Option<&[Op]>, mut check: impl FnMut(&[Error])) -> u64 {
    let start = Start::new();
    for n in 1.. {
        let mut run = start.fork();
        let mut story = Story::new(n, &run.disk);
        story.tell(format!("{effect:?} at operation {n} of {kinds:?}"));
        let fault = Fault::at(n, effect);
        run.disk.inject(match kinds {
            Some(kinds) => fault.of(kinds),
            None => fault,
        });
        let mut errors = Vec::new();
        let storage = open(options(&run.disk)).map_err(|error| errors.push(error));
        if let Ok(storage) = &storage {
            errors.extend(run.script(storage));
        }
        let happened = run.disk.is_cut() || run.disk.clear_faults();
        check(&errors);
        if effect != Effect::PowerCut {
            works_again(&mut run, storage);
        }
        for end in End::some(n) {
            story.tell(format!("{end:?}"));
            let mut found = run.fork();
            found.disk = end.of(&run.disk);
            let is_kill = matches!(end, End::Kill);
            story.disk = found.disk.clone();
            let (promises, payloads) = (&mut found.promises, &mut found.payloads);
            restart(
                &found.disk,
                options(&found.disk),
                promises,
                payloads,
                is_kill,
                |_| true,
            );
            is_clean(&found.disk);
        }
        if !happened {
            assert_eq!(errors.len(), 0, "{errors:?}");
            return n - 1;
        }
    }
    unreachable!()
}

/// The same storage goes on without a restart, if it could be opened.
fn works_again<E>(run: &mut Start, storage: Result<FileStorage, E>) {
    let storage = storage.unwrap_or_else(|_| open(options(&run.disk)).unwrap());
    run.promises.check_running(&storage);
    // what does not exist is not listed either.
    let path = "c/new/deep".parse().unwrap();
    let deep = key("c/new/deep/s");
    let is_listed = !block_on(storage.list(Some(&path)))
        .unwrap()
        .streams
        .is_empty();
    assert_eq!(is_listed, block_on(storage.info(&deep)).unwrap().is_some());
    for name in ["c/one/s", "c/one/t", "c/new/deep/s", "c/other/s"] {
        assert_eq!(
            run.append(&storage, &key(name), &[5])
                .map(|e| e.to_string()),
            None
        );
    }
    run.promises.check_running(&storage);
}

/// what was deleted takes no room for ever.
fn is_clean(disk: &SimFs) {
    // Deletions that were interrupted are finished by the thread that flushes, before it does anything else.
    let tree = disk.tree();
    let trash = tree
        .keys()
        .find(|path| path.to_string_lossy().contains("trash"));
    assert_eq!(trash, None);
}

#[test]
fn r_03_r_22_r_24_r_25_a_power_cut_or_a_kill_at_any_operation_breaks_no_promise() {
    assert!(each(Effect::PowerCut, None, |_| {}) > 100);
}

#[test]
fn r_16_an_io_error_of_any_operation_breaks_no_promise() {
    let one = |errors: &[Error]| assert!(errors.len() <= 1, "I-5: {errors:?}");
    assert!(each(Effect::Error(EIO), None, one) > 100);
}

#[test]
fn r_16_a_full_disk_at_any_operation_breaks_no_promise() {
    let one = |errors: &[Error]| assert!(errors.len() <= 1, "I-5: {errors:?}");
    assert!(each(Effect::Error(ENOSPC), None, one) > 100);
}

#[test]
fn r_15_short_writes_are_completed_wherever_they_are() {
    let none = |errors: &[Error]| assert!(errors.is_empty(), "{errors:?}");
    assert!(each(Effect::Short, None, none) > 5);
}

#[test]
fn r_17_a_flush_that_loses_what_it_should_flush_is_never_believed() {
    let one = |errors: &[Error]| assert!(errors.len() <= 1, "I-5: {errors:?}");
    assert!(each(Effect::SyncLoses(EIO), None, one) > 5);
}

#[test]
fn r_18_a_directory_that_can_not_be_flushed_acknowledges_nothing() {
    let one = |errors: &[Error]| assert!(errors.len() <= 1, "I-5: {errors:?}");
    assert!(each(Effect::Error(EIO), Some(&[Op::SyncDir]), one) > 5);
}

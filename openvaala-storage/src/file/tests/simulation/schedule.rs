//! Schedules that a seed decides: one thing after the other, with crashes and faults in between.

use std::path::PathBuf;

use futures::executor::block_on;
use pretty_assertions::assert_eq;

use super::super::key;
use super::promises::Promises;
use super::{EIO, ENOSPC, Payloads, Story, open, options, restart, seeds, send};
use crate::error::Result;
use crate::file::{FileOptions, FileStorage};
use crate::log::{LogStorage, StreamKey};
use crate::sim::{Effect, Fault, Op, Random, SimFs};

const EINTR: i32 = 4;
const EFBIG: i32 = 27;
const EDQUOT: i32 = 122;
const STREAMS: [&str; 7] = [
    "c/one/s",
    "c/one/t",
    "c/one/sub/s",
    "c/onetwo/s",
    "c/two/s",
    "d/s",
    "d/e/f/s",
];

/// A storage on a disk, and what it has promised.
struct World {
    random: Random,
    disk: SimFs,
    storage: Option<FileStorage>,
    open_files: usize,
    streams: Vec<StreamKey>,
    promises: Promises,
    payloads: Payloads,
    /// Something may fail.
    is_armed: bool,
    /// A flush may lose what it should flush.
    is_lossy: bool,
    /// A process has ended with bytes that were perhaps not flushed.
    was_killed: bool,
    story: Story,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let disk = SimFs::new();
        let some = 1 + random.below(4);
        let streams = (0..some).map(|_| key(random.pick(&STREAMS).unwrap()));
        let streams = streams.collect();
        let open_files = *random.pick(&[0, 1, 256]).unwrap();
        let story = Story::new(seed, &disk);
        let mut world = Self {
            random,
            disk,
            storage: None,
            open_files,
            streams,
            promises: Promises::default(),
            payloads: Payloads {
                are_large: seed % 50 == 49,
                ..Payloads::default()
            },
            is_armed: false,
            is_lossy: false,
            was_killed: false,
            story,
        };
        world.storage = Some(open(world.options()).unwrap());
        world
    }

    fn options(&self) -> FileOptions {
        options(&self.disk).open_files(self.open_files)
    }

    fn run(&mut self) {
        for _ in 0..5 + self.random.below(20) {
            if self.random.percent(25) {
                self.arm();
            }
            self.step();
            if self.disk.is_cut() {
                self.story.tell("the power is cut");
                self.end();
            }
            if self.is_armed && self.random.percent(60) {
                self.disarm();
            }
        }
        self.end();
    }

    /// Prepares something that fails soon.
    fn arm(&mut self) {
        if self.is_lossy {
            // A process that can't cut what a flush has lost leaves it to its successor, who can't know. Nobody can help that.
            return;
        }
        let random = &mut self.random;
        self.is_armed = true;
        if random.percent(10) {
            let bytes = self
                .disk
                .tree()
                .values()
                .flatten()
                .map(Vec::len)
                .sum::<usize>();
            let quota = bytes as u64 + random.below(400);
            self.story.tell(format!("quota {quota}"));
            return self.disk.set_quota(Some(quota));
        }
        let code = *random.pick(&[EIO, ENOSPC, EDQUOT, EFBIG, EINTR]).unwrap();
        let (effect, within) = match random.below(10) {
            0..4 => (Effect::PowerCut, 40),
            4..8 => (Effect::Error(code), 20),
            8 => (Effect::Short, 3),
            // What a process could not flush before its end may be lost by its successor's flush, which can't know.
            _ if self.was_killed => (Effect::Error(code), 20),
            _ => (Effect::SyncLoses(EIO), 3),
        };
        if matches!(effect, Effect::SyncLoses(_)) {
            self.disk.clear_faults();
            self.disk.set_quota(None);
            self.is_lossy = true;
        }
        let nth = 1 + random.below(within);
        let mut fault = Fault::at(nth, effect);
        if effect == Effect::Short && random.percent(50) {
            // The rest of the write fails.
            self.disk
                .inject(Fault::at(nth + 1, Effect::Error(code)).of(&[Op::Write]));
        } else if matches!(effect, Effect::Error(_)) && random.percent(50) {
            let kinds = [
                Op::Open,
                Op::Rename,
                Op::Sync,
                Op::SyncDir,
                Op::Truncate,
                Op::Write,
            ];
            let kind = *random.pick(&kinds).unwrap();
            fault = Fault::at(nth.min(3), effect).of(&[kind]);
        }
        self.story.tell(format!("{fault:?}"));
        self.disk.inject(fault);
    }

    fn sound(&mut self) {
        self.disk.clear_faults();
        self.disk.set_quota(None);
        (self.is_armed, self.is_lossy) = (false, false);
    }

    fn disarm(&mut self) {
        self.sound();
        // Whatever happened, nothing is shown that was not acknowledged, and nothing else is missing.
        self.promises.check_running(self.storage.as_ref().unwrap());
        self.story.tell("disarmed");
    }

    fn step(&mut self) {
        let key = self.random.pick(&self.streams).unwrap().clone();
        match self.random.below(100) {
            0..60 => self.append(&key),
            60..72 => self.read(&key),
            72..79 => {
                let result = block_on(self.storage.as_ref().unwrap().delete(&key));
                self.tell(format!("delete {key}"), &result);
                self.promises.deleted(&key, &result);
            }
            79..84 => {
                let ancestors: Vec<_> = key.path.ancestors().collect();
                let path = self.random.pick(&ancestors).unwrap().clone();
                let result = block_on(self.storage.as_ref().unwrap().delete_path(&path));
                self.tell(format!("delete path {path}"), &result);
                self.promises.path_deleted(&path, &result);
            }
            84..90 => self.reopen(),
            _ => self.end(),
        }
    }

    fn append(&mut self, key: &StreamKey) {
        let batch = self.payloads.batch(&mut self.random);
        let result = send(self.storage.as_ref().unwrap(), key, &batch);
        let bytes: usize = batch.iter().map(|text| text.len()).sum();
        self.tell(
            format!("append {} entries, {bytes} bytes to {key}", batch.len()),
            &result,
        );
        self.promises.appended(key, batch, &result);
    }

    fn read(&mut self, key: &StreamKey) {
        let storage = self.storage.as_ref().unwrap();
        if self.is_armed {
            // May fail, but may not change anything.
            let info = block_on(storage.info(key));
            self.story.tell(format!("info of {key}: {info:?}"));
        } else {
            self.promises.check_running(storage);
            self.story.tell("read all");
        }
    }

    /// Closes and opens; when that fails, once more. Faults end by it.
    fn reopen(&mut self) {
        self.storage = None;
        let has_trash = |path: &PathBuf| path.to_string_lossy().contains("trash");
        if self.disk.tree().keys().any(has_trash) {
            // It is cleaned up while the storage is used: which operation would be the n-th is a matter of luck.
            self.sound();
        }
        let result = open(self.options());
        self.tell("reopen".to_owned(), &result);
        if self.disk.is_cut() {
            return;
        }
        self.sound();
        let storage = result.unwrap_or_else(|_| open(self.options()).unwrap());
        // What a failed append has left counts from now on, as after the end of a process.
        self.promises.check_after_kill(&storage);
        self.storage = Some(storage);
    }

    /// Ends the process, by a power cut or not, and starts again.
    fn end(&mut self) {
        self.storage = None;
        // Of a machine whose power was cut nothing unflushed is left; a process can end at any operation as well.
        let is_kill = !self.is_lossy && self.random.percent(30);
        if is_kill {
            self.story.tell("kill");
            self.was_killed = true;
            self.disk = self.disk.kill();
        } else {
            let seed = self.random.draw();
            self.story.tell(format!("crash {seed}"));
            self.was_killed = false;
            self.disk = self.disk.crash(seed);
        }
        self.story.disk = self.disk.clone();
        (self.is_armed, self.is_lossy) = (false, false);
        let random = &mut self.random;
        self.storage = Some(restart(
            &self.disk,
            options(&self.disk).open_files(self.open_files),
            &mut self.promises,
            &mut self.payloads,
            is_kill,
            |_| random.percent(50),
        ));
    }

    /// Remembers what was done; without a fault everything works.
    fn tell<T>(&mut self, what: String, result: &Result<T>) {
        let error = result.as_ref().err();
        let outcome = error.map_or_else(|| "done".to_owned(), ToString::to_string);
        self.story.tell(format!("{what}: {outcome}"));
        assert!(error.is_none() || self.is_armed, "{what}: {error:?}");
    }
}

#[test]
fn r_20_seeded_schedules_keep_every_promise() {
    seeds(1000, |seed| World::new(seed).run());
}

#[test]
fn a_seed_decides_everything() {
    for seed in 0..30 {
        let run = || {
            let mut world = World::new(seed);
            world.run();
            world.storage = None;
            (world.story.told.clone(), world.disk.hash())
        };
        assert_eq!(run(), run(), "seed {seed}");
    }
}

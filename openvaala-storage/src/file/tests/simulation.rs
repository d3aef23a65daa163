//! The storage on a simulated disk: power cuts, ends of the process and failing operations, checked against what was promised.
//!
//! The invariants by their ids: I-1 what was acknowledged is there, byte for byte; I-2 numbers are dense; I-3 nothing is there that was not
//! submitted, and of what was not acknowledged only a prefix of a batch; I-4 what is cut is kept and reported; I-5 no stream suffers from another.

mod concurrent;
mod each;
mod once;
mod promises;
mod recovery;
mod schedule;

use std::path::PathBuf;
use std::sync::Arc;
use std::{env, thread};

use futures::executor::block_on;
use serde_json::value::RawValue;

use self::promises::{Promises, Text};
use crate::error::Result;
use crate::file::{FileOptions, FileStorage};
use crate::log::{Appended, LogStorage, NewEntry, StreamKey};
use crate::sim::{Random, SimFs};

const ROOT: &str = "/data";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn options(disk: &SimFs) -> FileOptions {
    FileOptions::new(ROOT)
        .fs(Arc::new(disk.clone()))
        .flush_threads(1)
}

/// Opens a storage; old deletions are cleaned up when it returns, so that one thing happens at a time from then on.
fn open(options: FileOptions) -> Result<FileStorage> {
    let storage = FileStorage::open(options)?;
    // The only thread that flushes does one thing after the other; this is no path, so nothing happens to it.
    block_on(storage.delete_path(&"openvaala.lock".parse().unwrap()))?;
    Ok(storage)
}

fn file(key: &StreamKey) -> PathBuf {
    PathBuf::from(ROOT).join(format!("{key}.jsonl"))
}

fn send(storage: &FileStorage, key: &StreamKey, batch: &[Text]) -> Result<Appended> {
    let entry = |text: &Text| NewEntry::new(7, RawValue::from_string(text.to_string()).unwrap());
    block_on(storage.append(key, batch.iter().map(entry).collect()))
}

/// Makes payloads that are never the same twice.
#[derive(Clone, Debug, Default)]
struct Payloads {
    made: u64,
    /// All are large, so that a stream grows over a MiB and gets an index of places.
    are_large: bool,
}

impl Payloads {
    /// Makes up to 50 payloads of 1 byte to 200 KiB; most batches and payloads are small.
    fn batch(&mut self, random: &mut Random) -> Vec<Text> {
        let is_long = random.percent(10) && !self.are_large;
        let most = if is_long { 50 } else { 4 };
        let entries = 1 + random.below(most);
        (0..entries).map(|_| self.payload(random)).collect()
    }

    fn payload(&mut self, random: &mut Random) -> Text {
        let size = match random.below(1000) {
            _ if self.are_large => random.below(200 * 1024),
            0 => random.below(200 * 1024),
            1..20 => random.below(5000),
            20..300 => 0,
            _ => random.below(120),
        };
        self.sized(size)
    }

    /// Makes a payload of about a size in bytes.
    fn sized(&mut self, size: u64) -> Text {
        self.made += 1;
        match size {
            0 => self.made.to_string().into(),
            size => format!("\"{}:{}\"", self.made, "ä".repeat(size as usize / 2)).into(),
        }
    }
}

/// Runs seeds; a long run has a hundred times as many, and `OPENVAALA_SEED=n` runs one.
fn seeds(normal: u64, run: impl Fn(u64)) {
    if let Ok(seed) = env::var("OPENVAALA_SEED") {
        return run(seed.parse().unwrap());
    }
    let count = if is_long() { normal * 100 } else { normal };
    (0..count).for_each(run);
}

fn is_long() -> bool {
    env::var("OPENVAALA_LONG").is_ok_and(|value| value == "1")
}

/// Shows how to repeat a run when it fails.
struct Story {
    seed: u64,
    disk: SimFs,
    told: Vec<String>,
}

impl Story {
    fn new(seed: u64, disk: &SimFs) -> Self {
        Self {
            seed,
            disk: disk.clone(),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, line: impl Into<String>) {
        self.told.push(line.into());
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "\nseed {}: repeat with OPENVAALA_SEED={}",
                self.seed, self.seed
            );
            eprintln!("what was done:\n  {}", self.told.join("\n  "));
            let trace = self.disk.trace();
            let newest = &trace[trace.len().saturating_sub(80)..];
            eprintln!("newest operations of the disk:\n  {}", newest.join("\n  "));
        }
    }
}

/// Opens what is left on a disk, checks all that was promised, and that each chosen stream goes on.
fn restart(
    disk: &SimFs,
    options: FileOptions,
    promises: &mut Promises,
    payloads: &mut Payloads,
    is_kill: bool,
    mut goes_on: impl FnMut(&StreamKey) -> bool,
) -> FileStorage {
    let before = disk.tree();
    let storage = open(options).unwrap();
    if is_kill {
        promises.check_after_kill(&storage);
    } else {
        promises.check_after_crash(&storage);
    }
    let known = storage.reports().unwrap().len();
    assert_eq!(known, 0, "reading reports nothing, for it cuts nothing");
    for key in promises.keys() {
        if !goes_on(&key) {
            continue;
        }
        let batch = vec![payloads.sized(0)];
        let appended = send(&storage, &key, &batch);
        promises.appended(&key, batch, &appended);
        appended.unwrap();
        let reports = storage.reports().unwrap();
        let report = reports.iter().find(|report| report.key == key);
        let (after, path) = (disk.tree(), file(&key));
        let was = before.get(&path).cloned().flatten().unwrap_or_default();
        let is = after[&path].clone().unwrap();
        // I-4: what is no more in the file is in the side file, and was reported.
        let kept = report.map_or(was.len(), |report| report.offset as usize);
        assert!(is.starts_with(&was[..kept]), "{key} was cut without a word");
        if let Some(report) = report {
            let side_file = after[&report.side_file].as_deref();
            assert!(side_file == Some(&was[kept..]), "{key}: {report:?}");
            assert_eq!(report.length, (was.len() - kept) as u64, "{report:?}");
        }
    }
    promises.check_running(&storage);
    storage
}

//! A file system in memory that can lose what a power cut loses, for tests; not covered by the promise of stable versions.
//!
//! A [`SimFs`] keeps two images. The volatile one is what a running process sees. The durable one is what was flushed:
//! the content of a file by a flush of the file, the entries of a directory by a flush of the directory.
//! [`crash`](SimFs::crash) draws by a seed what a machine finds after a power cut, [`kill`](SimFs::kill) is the end of the process only.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use openvaala_storage::file::{FileOptions, FileStorage};
//! use openvaala_storage::sim::{Effect, Fault, SimFs};
//!
//! let disk = SimFs::new();
//! disk.inject(Fault::at(40, Effect::PowerCut));
//! let storage = FileStorage::open(FileOptions::new("/data").fs(Arc::new(disk.clone())))?;
//! // … use it until everything fails …
//! drop(storage);
//! let found = disk.crash(7);
//! FileStorage::open(FileOptions::new("/data").fs(Arc::new(found)))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a power cut may leave
//!
//! - Of the writes to a file since its last flush any subset: whole, a beginning, some of its sectors of 512 bytes, or its length only,
//!   with zeros or with bytes of something else in its place. Files are independent of each other.
//! - Of the entries since the last flush of a directory any subset, except that changes of the same name stay in order and a directory
//!   is removed only after what happened in it. A rename is one change: it is durable with either directory, and nothing is ever at neither place.
//! - No lock.

mod crash;
mod disk;
mod fault;
mod file;
mod image;
mod journal;
mod random;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::disk::Disk;
pub use self::fault::{Effect, Fault, Op};
use self::fault::{Faults, Operation};
pub use self::random::Random;

/// A simulated file system; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
}

/// A disk and what happens to it.
#[derive(Debug, Default)]
struct State {
    disk: Disk,
    faults: Faults,
}

impl SimFs {
    /// Makes an empty file system: a root directory, no faults, no limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault; its operations are counted from now on.
    pub fn inject(&self, fault: Fault) {
        self.state().faults.add(fault);
    }

    /// Ends all faults, also a power cut; returns whether one had happened since the last call.
    pub fn clear_faults(&self) -> bool {
        self.state().faults.clear()
    }

    /// Tells whether the power was cut: everything fails until [`clear_faults`](Self::clear_faults).
    pub fn is_cut(&self) -> bool {
        self.state().faults.is_cut()
    }

    /// Limits the content of all files together, in bytes; `None` lifts the limit.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.state().disk.quota = bytes;
    }

    /// Returns what a machine finds after a power cut now, drawn by a seed, as a file system of its own.
    ///
    /// This one stays as it is; the new one has no faults, no quota and no locks.
    pub fn crash(&self, seed: u64) -> Self {
        Self::of(self.state().disk.after_power_cut(&mut Random::new(seed)))
    }

    /// Returns what the next process finds when this one ends now: all that was written, flushed or not, and no locks.
    ///
    /// What was not flushed can still be lost in a later crash of the new file system. This one stays as it is.
    pub fn kill(&self) -> Self {
        Self::of(self.state().disk.without_handles())
    }

    /// Returns how many operations of each kind there were, failed ones included.
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        self.state().faults.counts.clone()
    }

    /// Returns how many operations there were, failed ones included.
    pub fn operations(&self) -> u64 {
        self.state().faults.counts.values().sum()
    }

    /// Returns the newest operations as text, at most 500, to be shown when a test fails.
    pub fn trace(&self) -> Vec<String> {
        self.state().faults.trace()
    }

    /// Returns all paths below the root as a process sees them: `None` for a directory, the content for a file.
    pub fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        self.state().disk.tree()
    }

    /// Returns a number that is the same for equal [trees](Self::tree), on every machine.
    pub fn hash(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for (path, content) in self.tree() {
            random::hash(&mut hash, path.as_os_str().as_encoded_bytes());
            random::hash(&mut hash, &[u8::from(content.is_some())]);
            let content = content.unwrap_or_default();
            random::hash(&mut hash, &(content.len() as u64).to_le_bytes());
            random::hash(&mut hash, &content);
        }
        hash
    }

    fn of(disk: Disk) -> Self {
        let state = State {
            disk,
            faults: Faults::default(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another thread can't leave the state half changed in a way that matters to a test that fails anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an operation; returns what is special about it.
    fn begin(&mut self, op: Op, path: &Path) -> io::Result<Option<Effect>> {
        self.faults.begin(Operation {
            op,
            path: path.to_owned(),
            failed: false,
        })
    }
}

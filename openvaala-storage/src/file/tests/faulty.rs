//! A file system that fails on demand.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use crate::fs::{DirEntry, Fs, FsFile, Open, RealFs, Stamp};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Op {
    CreateDir,
    List,
    Lock,
    Metadata,
    Open,
    Read,
    RemoveDir,
    Rename,
    Sync,
    SyncDir,
    Truncate,
    Unlink,
    Write,
}

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// This error, once.
    Once(i32),
    /// This error from then on: the disk, or the process, is gone.
    Forever(i32),
    /// Half of a write, then this error.
    Half(i32),
    /// From then on every write takes so few bytes at the most.
    Short(usize),
}

#[derive(Debug)]
pub(super) struct FaultyFs {
    plan: Arc<Plan>,
}

/// A look at a file that says when it begins to wait and when it has looked, and waits in between.
#[derive(Debug)]
struct HeldLook {
    path: PathBuf,
    steps: Sender<()>,
    gate: Receiver<()>,
}

#[derive(Debug)]
struct Plan {
    ops: Vec<Op>,
    fault: Fault,
    /// The number of the operation that fails, from 1; 0 = none.
    at: AtomicU64,
    count: AtomicU64,
    half_done: AtomicBool,
    bytes_read: AtomicU64,
    syncs: AtomicU64,
    gate: Mutex<Option<(PathBuf, Receiver<()>)>>,
    look: Mutex<Option<HeldLook>>,
}

impl FaultyFs {
    /// Prepares a fault; nothing fails before [`arm`](Self::arm).
    pub(super) fn new(ops: &[Op], fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            plan: Arc::new(Plan {
                ops: ops.to_vec(),
                fault,
                at: AtomicU64::new(0),
                count: AtomicU64::new(0),
                half_done: AtomicBool::new(false),
                bytes_read: AtomicU64::new(0),
                syncs: AtomicU64::new(0),
                gate: Mutex::new(None),
                look: Mutex::new(None),
            }),
        })
    }

    /// A file system that only counts.
    pub(super) fn sound() -> Arc<Self> {
        Self::new(&[], Fault::Once(0))
    }

    /// Makes the n-th of the chosen operations from now on fail.
    pub(super) fn arm(&self, n: u64) {
        self.plan.count.store(0, Ordering::SeqCst);
        self.plan.at.store(n, Ordering::SeqCst);
    }

    /// Ends all faults; returns whether one has happened.
    pub(super) fn disarm(&self) -> bool {
        let at = self.plan.at.swap(0, Ordering::SeqCst);
        self.plan.count.load(Ordering::SeqCst) >= at
    }

    /// Counts the chosen operations from now on; none fails.
    pub(super) fn count(&self) {
        self.arm(u64::MAX);
    }

    /// Returns how many of the chosen operations there were since [`count`](Self::count).
    pub(super) fn counted(&self) -> u64 {
        self.plan.count.load(Ordering::SeqCst)
    }

    /// Makes the next flush of a file wait for a message.
    pub(super) fn hold_sync(&self, path: PathBuf, gate: Receiver<()>) {
        *self.plan.gate.lock().unwrap() = Some((path, gate));
    }

    /// Makes the next look at a file wait for a message; it says when it begins to wait, and when it has looked.
    pub(super) fn hold_look(&self, path: PathBuf, steps: Sender<()>, gate: Receiver<()>) {
        *self.plan.look.lock().unwrap() = Some(HeldLook { path, steps, gate });
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.plan.bytes_read.load(Ordering::SeqCst)
    }

    pub(super) fn syncs(&self) -> u64 {
        self.plan.syncs.load(Ordering::SeqCst)
    }
}

impl Plan {
    fn check(&self, op: Op) -> io::Result<()> {
        let at = self.at.load(Ordering::SeqCst);
        if at == 0 || !self.ops.contains(&op) {
            return Ok(());
        }
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fault {
            Fault::Once(code) if count == at => Err(io::Error::from_raw_os_error(code)),
            Fault::Forever(code) if count >= at => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(()),
        }
    }

    fn is_armed(&self) -> bool {
        let at = self.at.load(Ordering::SeqCst);
        at > 0 && self.count.load(Ordering::SeqCst) >= at
    }

    /// Tells how much of a write gets through.
    fn write(&self, length: usize) -> io::Result<usize> {
        self.check(Op::Write)?;
        if let Fault::Short(most) = self.fault
            && self.is_armed()
        {
            return Ok(length.min(most));
        }
        let Fault::Half(code) = self.fault else {
            return Ok(length);
        };
        let (at, count) = (
            self.at.load(Ordering::SeqCst),
            self.count.load(Ordering::SeqCst),
        );
        if at == 0 || count < at {
            return Ok(length);
        }
        if count == at && !self.half_done.swap(true, Ordering::SeqCst) {
            return Ok(length.div_ceil(2));
        }
        if count == at + 1 {
            return Err(io::Error::from_raw_os_error(code));
        }
        Ok(length)
    }
}

impl Fs for FaultyFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn FsFile>> {
        self.plan.check(Op::Open)?;
        Ok(Box::new(FaultyFile {
            file: RealFs::default().open(path, how)?,
            path: path.to_owned(),
            plan: Arc::clone(&self.plan),
        }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Stamp> {
        self.plan.check(Op::Metadata)?;
        let held = self
            .plan
            .look
            .lock()
            .unwrap()
            .take_if(|held| held.path == path);
        let Some(HeldLook { steps, gate, .. }) = held else {
            return RealFs::default().metadata(path);
        };
        steps.send(()).unwrap();
        gate.recv().unwrap();
        let found = RealFs::default().metadata(path);
        steps.send(()).unwrap();
        found
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.check(Op::CreateDir)?;
        RealFs::default().create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.plan.check(Op::List)?;
        RealFs::default().list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.check(Op::Rename)?;
        RealFs::default().rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.plan.check(Op::Unlink)?;
        RealFs::default().unlink(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.check(Op::RemoveDir)?;
        RealFs::default().remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.check(Op::SyncDir)?;
        RealFs::default().sync_dir(path)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn FsFile>,
    path: PathBuf,
    plan: Arc<Plan>,
}

impl FsFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.check(Op::Read)?;
        let read = self.file.read_at(buffer, offset)?;
        self.plan
            .bytes_read
            .fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.plan.write(bytes.len())?;
        self.file.write(&bytes[..length])
    }

    fn sync_data(&self) -> io::Result<()> {
        let gate = self
            .plan
            .gate
            .lock()
            .unwrap()
            .take_if(|(path, _)| *path == self.path);
        if let Some((_, gate)) = gate {
            gate.recv().unwrap();
        }
        // A flush that is held fails at its end.
        self.plan.check(Op::Sync)?;
        self.plan.syncs.fetch_add(1, Ordering::SeqCst);
        self.file.sync_data()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.plan.check(Op::Truncate)?;
        self.file.truncate(length)
    }

    fn metadata(&self) -> io::Result<Stamp> {
        self.plan.check(Op::Metadata)?;
        self.file.metadata()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.plan.check(Op::Lock)?;
        self.file.try_lock()
    }
}

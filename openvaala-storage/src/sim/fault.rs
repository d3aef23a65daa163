//! Operations that fail, or do something else than they say.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::{io, mem};

const TRACED: usize = 500;
const EIO: i32 = 5;

/// A kind of operation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Op {
    /// A directory is created.
    CreateDir,
    /// A directory is listed.
    List,
    /// A lock is tried.
    Lock,
    /// What is known of a path or a file is asked for.
    Metadata,
    /// A file or directory is opened or created.
    Open,
    /// A file is read.
    Read,
    /// A directory is removed.
    RemoveDir,
    /// A file or directory is renamed.
    Rename,
    /// A file is flushed.
    Sync,
    /// A directory is flushed.
    SyncDir,
    /// A file is cut.
    Truncate,
    /// A file is removed.
    Unlink,
    /// A file is written to.
    Write,
}

/// What happens at the chosen operation instead of what should.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// It does nothing and fails with this code of the operating system.
    Error(i32),
    /// It and everything from then on does nothing and fails: the moment of a power cut.
    PowerCut,
    /// A write writes half and says so.
    Short,
    /// A flush of a file says that all is well, and flushes nothing.
    SyncLies,
    /// A flush of a file fails with this code and forgets what it had to flush: later flushes say that all is well,
    /// and after a crash zeros or old bytes are there.
    SyncLoses(i32),
}

/// A fault: which operation, and what happens.
#[derive(Clone, Debug)]
#[must_use]
pub struct Fault {
    ops: Option<Vec<Op>>,
    nth: u64,
    effect: Effect,
}

impl Fault {
    /// Chooses the n-th operation from the injection on, counted from 1.
    ///
    /// Of all operations, or of those that the effect is about: writes for [`Effect::Short`], flushes of files for
    /// [`Effect::SyncLies`] and [`Effect::SyncLoses`].
    pub fn at(nth: u64, effect: Effect) -> Self {
        let ops = match effect {
            Effect::Error(_) | Effect::PowerCut => None,
            Effect::Short => Some(vec![Op::Write]),
            Effect::SyncLies | Effect::SyncLoses(_) => Some(vec![Op::Sync]),
        };
        Self { ops, nth, effect }
    }

    /// Counts operations of these kinds only.
    pub fn of(mut self, ops: &[Op]) -> Self {
        self.ops = Some(ops.to_vec());
        self
    }
}

/// An operation as it is shown to people.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) op: Op,
    pub(super) path: PathBuf,
    pub(super) failed: bool,
}

/// The faults to come and what has happened.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) counts: BTreeMap<Op, u64>,
    to_come: Vec<Fault>,
    cut: bool,
    happened: bool,
    newest: VecDeque<Operation>,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.to_come.push(fault);
    }

    pub(super) fn clear(&mut self) -> bool {
        self.to_come.clear();
        self.cut = false;
        mem::take(&mut self.happened)
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn trace(&self) -> Vec<String> {
        let line = |operation: &Operation| {
            let failed = if operation.failed { " failed" } else { "" };
            format!("{:?} {}{failed}", operation.op, operation.path.display())
        };
        self.newest.iter().map(line).collect()
    }

    /// Counts an operation; returns what it does besides failing.
    pub(super) fn begin(&mut self, mut operation: Operation) -> io::Result<Option<Effect>> {
        let op = operation.op;
        *self.counts.entry(op).or_default() += 1;
        let effect = if self.cut {
            Some(Effect::PowerCut)
        } else {
            self.due(op)
        };
        operation.failed = effect.is_some();
        if self.newest.len() == TRACED {
            self.newest.pop_front();
        }
        self.newest.push_back(operation);
        match effect {
            Some(Effect::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Effect::PowerCut) => {
                self.cut = true;
                Err(io::Error::from_raw_os_error(EIO))
            }
            other => Ok(other),
        }
    }

    /// Counts down all faults that this kind concerns; returns the effect of the first that is due.
    fn due(&mut self, op: Op) -> Option<Effect> {
        let mut due = None;
        for fault in &mut self.to_come {
            if fault.ops.as_ref().is_none_or(|ops| ops.contains(&op)) {
                fault.nth = fault.nth.saturating_sub(1);
                if fault.nth == 0 && due.is_none() {
                    due = Some(fault.effect);
                }
            }
        }
        self.to_come.retain(|fault| fault.nth > 0);
        self.happened |= due.is_some();
        due
    }
}

//! The storage that serves the rows at the moment, and how it stands with it.

use std::convert::Infallible;
use std::sync::Arc;

use openvaala_storage::{Error, RecordStorage};
use tokio::sync::oneshot;

/// A storage of rows that serves until another one takes its place.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) records: Arc<dyn RecordStorage>,
    /// Which one it is: a later one has a larger number, the first 1.
    pub(crate) generation: u64,
    /// Dropped after the records: tells that nobody reads or writes them any more.
    _closed: oneshot::Sender<Infallible>,
}

impl Shelf {
    /// Gives the shelf and what ends when nobody holds it any more.
    pub(super) fn new(
        records: Arc<dyn RecordStorage>,
        generation: u64,
    ) -> (Arc<Self>, oneshot::Receiver<Infallible>) {
        let (closed, wait) = oneshot::channel();
        let shelf = Self {
            records,
            generation,
            _closed: closed,
        };
        (Arc::new(shelf), wait)
    }
}

/// How the index stands.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Standing {
    /// Whether it has been brought in step with the log since its storage was opened.
    pub(super) is_checked: bool,
    /// What keeps it from being where it belongs.
    pub(super) trouble: Option<String>,
}

/// What is wrong with a storage that has to be replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fault {
    /// What is in it is damaged: it is set aside.
    Damaged,
    /// It does not answer, or not as it should: it is opened again.
    Failing,
}

impl Fault {
    /// What an error of a read says; `None` if the storage is sound.
    pub(super) fn of_read(error: &Error) -> Option<Self> {
        match error {
            Error::Corrupt { .. } => Some(Self::Damaged),
            // Locks pass by themselves; the others are mistakes of whoever asks.
            Error::Busy { .. }
            | Error::InvalidCursor { .. }
            | Error::UnknownField { .. }
            | Error::UnknownNamespace { .. } => None,
            _ => Some(Self::Failing),
        }
    }

    /// What an error of a write says after so many in a row; `None` if it is to be tried again.
    pub(super) fn of_write(error: &Error, times: u32) -> Option<Self> {
        match error {
            Error::Corrupt { .. } => Some(Self::Damaged),
            Error::Busy { .. } | Error::StorageFull { .. } => None,
            _ if times >= 3 => Some(Self::Failing),
            _ => None,
        }
    }
}

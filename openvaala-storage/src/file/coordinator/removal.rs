//! Deletions: each waits for the threads that are at its streams.

use std::path::PathBuf;

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::file::coordinator::{Coordinator, Event};
use crate::file::layout::present;
use crate::file::pool::Outcome;
use crate::file::remove::{self, Target};
use crate::log::StreamKey;

/// A deletion that runs, or waits for threads to be done with its streams.
pub(super) struct Removal {
    pub(super) id: u64,
    target: Target,
    /// Away when it runs.
    reply: Option<oneshot::Sender<Result<bool>>>,
}

impl Coordinator {
    pub(super) fn remove(&mut self, target: Target, reply: oneshot::Sender<Result<bool>>) {
        if self.lock.is_none() {
            let _ = reply.send(Err(Error::ReadOnly));
            return;
        }
        for (key, slot) in &mut self.slots {
            if target.covers(key) {
                for batch in slot.appends.drain(..) {
                    let key = key.clone();
                    let _ = batch.reply.send(Err(Error::Deleted { key }));
                }
            }
        }
        self.counter += 1;
        self.removals.push_back(Removal {
            id: self.counter,
            target,
            reply: Some(reply),
        });
        self.start_removals();
    }

    /// Starts each deletion whose streams nobody uses, in the order in which they came where they overlap.
    pub(super) fn start_removals(&mut self) {
        for index in 0..self.removals.len() {
            let target = self.removals[index].target.clone();
            let mut earlier = self.removals.iter().take(index);
            let blocked = earlier.any(|other| other.target.overlaps(&target))
                || self.reading.keys().any(|key| target.covers(key))
                || self
                    .slots
                    .iter()
                    .any(|(key, slot)| slot.busy && target.covers(key));
            if blocked {
                continue;
            }
            if self.places.stop(&target) {
                continue;
            }
            if let Some(reply) = self.removals[index].reply.take() {
                self.start_removal(self.removals[index].id, target, reply);
            }
        }
    }

    fn start_removal(&mut self, id: u64, target: Target, reply: oneshot::Sender<Result<bool>>) {
        self.slots.retain(|key, slot| {
            // A stream that a move would have to replace stays, and makes the move fail.
            let stays = slot.stream.spoiled && !target.takes(key);
            let covered = target.covers(key) && !stays;
            if let (true, Some(used)) = (covered, slot.used) {
                self.open.remove(&used);
            }
            !covered
        });
        let removed = target.path();
        // With something that is there, empty directories above are removed as well. Nobody but this storage can put
        // it there until the deletion is done.
        let place = target.place(&self.layout);
        let is_there = !matches!(present(self.layout.fs.metadata(&place)), Ok(None));
        self.durable
            .retain(|path| !(removed.contains(path) || is_there && path.contains(removed)));
        let layout = self.layout.clone();
        self.flushers.run(Box::new(move || {
            let result = remove::remove(&layout, &target, id);
            Outcome::new(Event::Removed { removal: id }, || drop(reply.send(result)))
        }));
    }

    pub(super) fn is_being_removed(&self, key: &StreamKey) -> bool {
        self.removals
            .iter()
            .any(|removal| removal.target.covers(key))
    }
}

/// Returns a number that no leftover has.
pub(super) fn trash_number(trash: &[(PathBuf, bool)]) -> u64 {
    let numbers = trash.iter().filter_map(|(path, _)| {
        let (_, number) = path.file_name()?.to_str()?.rsplit_once('-')?;
        number.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

//! When the places of long streams are looked for: one stream after the other, on a thread that reads.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::coordinator::{Coordinator, Event};
use crate::file::offsets::{GROWTH, Update};
use crate::file::pool::Outcome;
use crate::file::remove::Target;
use crate::file::view::{Mark, Marks, View};
use crate::log::StreamKey;

/// How many streams keep their places in memory, up to one MiB each.
const MAX_PLACED: usize = 32;

/// Which streams have their places, or wait for them.
#[derive(Default)]
pub(super) struct Places {
    /// At work, and how to stop it.
    running: Option<(StreamKey, Arc<AtomicBool>)>,
    waiting: VecDeque<StreamKey>,
    /// The streams whose side files were wrong.
    distrusted: HashSet<StreamKey>,
    /// The streams that have their places, the least recently used first.
    placed: VecDeque<StreamKey>,
}

impl Places {
    /// Stops the work.
    pub(super) fn cancel(&mut self) {
        self.waiting.clear();
        if let Some((_, cancelled)) = &self.running {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Stops the work at the streams of a deletion; returns whether a thread is still at one.
    pub(super) fn stop(&mut self, target: &Target) -> bool {
        self.waiting.retain(|key| !target.covers(key));
        self.placed.retain(|key| !target.covers(key));
        self.distrusted.retain(|key| !target.covers(key));
        match &self.running {
            Some((key, cancelled)) if target.covers(key) => {
                cancelled.store(true, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Makes a stream the last one to give its places back.
    fn touch(&mut self, key: &StreamKey) {
        if let Some(index) = self.placed.iter().position(|other| other == key) {
            let key = self.placed.remove(index);
            self.placed.extend(key);
        }
    }

    /// Has the side file of a stream made anew.
    pub(super) fn distrust(&mut self, key: &StreamKey) {
        self.distrusted.insert(key.clone());
    }
}

impl Coordinator {
    /// Looks for the places of a stream, if it is long and grew by much since.
    pub(super) fn look_for_places(&mut self, key: &StreamKey) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        let Some(view) = &slot.stream.view else {
            return;
        };
        let known = slot.placed.unwrap_or(0);
        if view.end >= GROWTH {
            self.places.touch(key);
        }
        if !view.marks.is_orderly() || view.end < known.saturating_add(GROWTH) {
            return;
        }
        if !self.places.waiting.contains(key) {
            self.places.waiting.push_back(key.clone());
        }
        self.find_next_places();
    }

    /// The file of a stream is another one, or was changed by somebody else.
    pub(super) fn forget_places(&mut self, key: &StreamKey) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.placed = None;
        }
    }

    pub(super) fn placed(&mut self, key: &StreamKey, inode: u64, hints: Option<Arc<[Mark]>>) {
        self.places.running = None;
        if let (Some(slot), Some(hints)) = (self.slots.get_mut(key), hints) {
            let views = [&mut slot.stream.view, &mut slot.published];
            for view in views.into_iter().flatten() {
                if view.stamp.inode == inode {
                    Arc::make_mut(&mut view.marks).set_hints(Arc::clone(&hints));
                }
            }
            self.places.placed.retain(|other| other != key);
            self.places.placed.push_back(key.clone());
            self.give_back_places();
        }
        if !self.removals.is_empty() {
            self.start_removals();
        }
        self.find_next_places();
    }

    fn find_next_places(&mut self) {
        while self.places.running.is_none()
            && let Some(key) = self.places.waiting.pop_front()
        {
            let slot = self.slots.get_mut(&key);
            let view = slot.and_then(|slot| {
                let view = slot
                    .stream
                    .view
                    .clone()
                    .or_else(|| slot.published.clone())?;
                slot.placed = Some(view.end);
                Some(view)
            });
            if let Some(view) = view {
                self.find_places(key, view);
            }
        }
    }

    fn find_places(&mut self, key: StreamKey, view: View) {
        let inode = view.stamp.inode;
        let cancelled = Arc::new(AtomicBool::new(false));
        let update = Update {
            layout: self.layout.clone(),
            key: key.clone(),
            view,
            anew: self.places.distrusted.remove(&key),
            writes: self.lock.is_some(),
            cancelled: Arc::clone(&cancelled),
        };
        self.places.running = Some((key.clone(), cancelled));
        self.readers.run(Box::new(move || {
            let hints = update.run();
            drop(update);
            Outcome::new(Event::Placed { key, inode, hints }, || {})
        }));
    }

    /// Keeps the memory for places within bounds.
    fn give_back_places(&mut self) {
        while self.places.placed.len() > MAX_PLACED {
            let Some(key) = self.places.placed.pop_front() else {
                return;
            };
            let Some(slot) = self.slots.get_mut(&key) else {
                continue;
            };
            slot.placed = None;
            for view in [&mut slot.stream.view, &mut slot.published]
                .into_iter()
                .flatten()
            {
                if view.marks.is_orderly() {
                    view.marks = Arc::new(Marks::default());
                }
            }
        }
    }
}

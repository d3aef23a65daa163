//! Looks at many files at once, by a thread that knows nothing of their streams.

use tokio::sync::oneshot;

use crate::file::coordinator::{Coordinator, Event};
use crate::file::look::{self, Seen};
use crate::file::pool::Outcome;
use crate::log::StreamKey;

/// What a thread has seen, and whom to tell.
pub(in crate::file) struct Glance {
    streams: Vec<(StreamKey, Seen)>,
    reply: oneshot::Sender<Vec<Seen>>,
}

impl Coordinator {
    pub(super) fn glance(&mut self, keys: Vec<StreamKey>, reply: oneshot::Sender<Vec<Seen>>) {
        let keys = keys.into_iter().map(|key| (self.is_in_use(&key), key));
        let keys: Vec<(bool, StreamKey)> = keys.collect();
        let layout = self.layout.clone();
        self.readers.run(Box::new(move || {
            let look = |(is_in_use, key)| {
                let seen = if is_in_use {
                    Seen::Unsure
                } else {
                    look::glance(&layout, &key)
                };
                (key, seen)
            };
            let streams = keys.into_iter().map(look).collect();
            Outcome::new(Event::Glanced(Glance { streams, reply }), || {})
        }));
    }

    /// What was seen does not count for a stream that somebody has begun to use meanwhile: it may lie behind its acknowledged end.
    pub(super) fn glanced(&self, glance: Glance) {
        let seen = glance.streams.into_iter();
        let seen = seen.map(|(key, seen)| {
            if self.is_in_use(&key) {
                Seen::Unsure
            } else {
                seen
            }
        });
        // Whoever left before the answer is ignored.
        let _ = glance.reply.send(seen.collect());
    }

    fn is_in_use(&self, key: &StreamKey) -> bool {
        self.slots.contains_key(key) || self.is_being_removed(key)
    }
}

//! What a subscriber is told: each thing once in memory, however many are told it.

use std::any::Any;
use std::io;
use std::sync::{Arc, OnceLock};

use openvaala_protocol::event::{Entry, Live, ResumeCursor};
use openvaala_protocol::id::ItemId;

/// Something that a subscriber is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FeedEvent {
    /// Something was flushed to the log.
    Entry {
        /// What it was.
        entry: Arc<Entry>,
        /// Up to where the subscriber has now seen the conversation.
        cursor: ResumeCursor,
    },
    /// Something shows that is not yet, or never, in the log.
    Live(Arc<Live>),
    /// The subscriber was too slow and has missed something: subscribe again with the last cursor.
    Gap {
        /// What happened.
        reason: String,
    },
    /// The conversation was deleted; nothing comes after this.
    Deleted,
}

/// An event that all subscribers of a conversation share, and what a transport has made of it.
#[derive(Debug)]
pub struct Told {
    event: FeedEvent,
    bytes: usize,
    made: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// What an event costs besides its text: a queue of small ones is bounded too.
const OVERHEAD: usize = 256;

impl Told {
    pub(super) fn new(event: FeedEvent) -> Self {
        let text = match &event {
            FeedEvent::Entry { entry, .. } => json_bytes(entry),
            FeedEvent::Live(live) => match &**live {
                Live::Started(partial) => partial.text.len(),
                Live::Delta(delta) => delta.text.len(),
                Live::Degraded { message, .. } => message.len(),
                _ => 0,
            },
            FeedEvent::Gap { reason } => reason.len(),
            FeedEvent::Deleted => 0,
        };
        Self {
            event,
            bytes: OVERHEAD + text,
            made: OnceLock::new(),
        }
    }

    /// What is told.
    #[must_use]
    pub const fn event(&self) -> &FeedEvent {
        &self.event
    }

    /// What `make` makes of the event, such as the frame that clients get: it is called for the first subscriber, and
    /// all others get a clone.
    ///
    /// Only what the first one makes is kept: one that asks for another type makes its own.
    pub fn made<T: Clone + Send + Sync + 'static>(&self, make: impl Fn(&FeedEvent) -> T) -> T {
        let made = self.made.get_or_init(|| Box::new(make(&self.event)));
        match made.downcast_ref::<T>() {
            Some(made) => made.clone(),
            None => make(&self.event),
        }
    }

    /// About how much memory it takes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The item of which a snapshot has the text, too: nothing is lost if this is left out.
    pub(super) fn restorable(&self) -> Option<ItemId> {
        match &self.event {
            FeedEvent::Live(live) => match &**live {
                Live::Started(partial) => Some(partial.item_id),
                Live::Delta(delta) => Some(delta.item_id),
                _ => None,
            },
            _ => None,
        }
    }

    /// The item of which no live text comes after this.
    pub(super) fn ends(&self) -> Option<ItemId> {
        match &self.event {
            FeedEvent::Entry { entry, .. } => match &**entry {
                Entry::Item { item, .. } => Some(item.head().id),
                _ => None,
            },
            FeedEvent::Live(live) => match &**live {
                Live::Dropped { item_id, .. } => Some(*item_id),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How long an entry is as JSON, without a copy of it.
fn json_bytes(entry: &Entry) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // What cannot be written counts as far as it could.
    let _ = serde_json::to_writer(&mut count, entry);
    count.0
}

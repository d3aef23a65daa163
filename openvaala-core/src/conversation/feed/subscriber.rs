//! The two ends of a subscription, and what waits between them: bounded in bytes, whatever the subscriber does.
//!
//! Live text is left out first, since it can be had again: once there is room the subscriber gets all of it so far. Only
//! when what is in the log does not fit either has the subscriber missed something, and is told so.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use openvaala_protocol::event::{Entry, Live, PartialItem, ResumeCursor, Snapshot};
use openvaala_protocol::id::ItemId;
use tokio::sync::mpsc;

use super::Message;
use super::told::{FeedEvent, Told};
use crate::mailbox;

/// With so many bytes waiting for a subscriber nothing more is added; what is shared with others counts for each.
///
/// What makes it more, such as one large entry, is told: a subscriber that reads is not to miss it.
const MOST: usize = 4 << 20;
/// With so many live text is left out.
const MOST_LIVE: usize = 1 << 20;
/// What one event counts at most: beside a large one there is room for small ones.
const LARGE: usize = MOST - MOST_LIVE;
/// With no more than this live text that was left out is made up for.
const ROOM: usize = MOST_LIVE / 4;

/// What there is, and all that comes after it.
#[derive(Debug)]
pub struct Subscription {
    /// What there is, unless exactly the missing entries could be given.
    pub snapshot: Option<Snapshot>,
    /// Exactly the entries after the given cursor.
    pub entries: Vec<Entry>,
    /// What is still growing, by `pos`: the texts so far.
    pub partials: Vec<PartialItem>,
    /// Up to where `snapshot` or `entries` go.
    pub cursor: ResumeCursor,
    pub(super) events: Events,
}

impl Subscription {
    /// Waits for what happens next; `None` once the conversation is closed.
    ///
    /// Live text of a subscriber that is slow is left out, and comes as [`Live::Started`] with all of it so far as soon as
    /// there is room again. Dropping the future loses nothing. After a [`FeedEvent::Gap`] comes `None`.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        let told = self.next_told().await?;
        Some(told.event().clone())
    }

    /// As [`Self::next`], for who makes something of each event that all subscribers can share.
    pub async fn next_told(&mut self) -> Option<Arc<Told>> {
        self.events.next().await
    }
}

/// The subscriber's end.
#[derive(Debug)]
pub(super) struct Events {
    receiver: mpsc::UnboundedReceiver<Arc<Told>>,
    backlog: Arc<Backlog>,
    feed: mailbox::WeakSender<Message>,
    gap_told: bool,
}

/// What both ends know; in one order for both, so that room is never overlooked by the two of them.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// Something was left out for good.
    has_lagged: AtomicBool,
    /// Live text was left out.
    misses_live: AtomicBool,
}

/// The feed's end.
#[derive(Debug)]
pub(super) struct Subscriber {
    /// Bounded in bytes by the backlog.
    sender: mpsc::UnboundedSender<Arc<Told>>,
    backlog: Arc<Backlog>,
    /// Items of which live text was left out.
    missed: BTreeSet<ItemId>,
}

/// Makes both ends; `feed` is told when live text that was left out has room.
pub(super) fn subscriber(feed: mailbox::WeakSender<Message>) -> (Subscriber, Events) {
    // Each event counts at least a little, so that there cannot be many.
    let (sender, receiver) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let subscriber = Subscriber {
        sender,
        backlog: Arc::clone(&backlog),
        missed: BTreeSet::new(),
    };
    let events = Events {
        receiver,
        backlog,
        feed,
        gap_told: false,
    };
    (subscriber, events)
}

fn weight(told: &Told) -> usize {
    told.bytes().min(LARGE)
}

impl Events {
    async fn next(&mut self) -> Option<Arc<Told>> {
        if let Some(told) = self.receiver.recv().await {
            let bytes = weight(&told);
            let before = self.backlog.bytes.fetch_sub(bytes, Ordering::SeqCst);
            let has_room = before.saturating_sub(bytes) <= ROOM;
            if has_room
                && self.backlog.misses_live.swap(false, Ordering::SeqCst)
                && let Some(feed) = self.feed.upgrade()
            {
                // With a full inbox the feed looks anyway, after what it is told next.
                let _ = feed.try_send(Message::HasRoom);
            }
            return Some(told);
        }
        if self.backlog.has_lagged.load(Ordering::SeqCst) && !self.gap_told {
            self.gap_told = true;
            let reason = format!(
                "{} MiB and more were waiting for this subscriber",
                MOST >> 20
            );
            return Some(Arc::new(Told::new(FeedEvent::Gap { reason })));
        }
        None
    }
}

impl Subscriber {
    /// Tells something, or leaves it out; `false` if nothing more is to be told.
    pub(super) fn tell(&mut self, told: &Arc<Told>) -> bool {
        let waiting = self.backlog.bytes.load(Ordering::SeqCst);
        if let Some(item) = told.restorable() {
            if self.missed.contains(&item) {
                return !self.has_left();
            }
            if waiting >= MOST_LIVE {
                self.missed.insert(item);
                self.backlog.misses_live.store(true, Ordering::SeqCst);
                return !self.has_left();
            }
        } else if waiting >= MOST {
            self.backlog.has_lagged.store(true, Ordering::SeqCst);
            return false;
        }
        if let Some(item) = told.ends() {
            self.missed.remove(&item);
        }
        self.send(Arc::clone(told))
    }

    /// Makes up for live text that was left out, as far as there is room; all of `partials` must have been told.
    pub(super) fn restore(&mut self, partials: &BTreeMap<ItemId, Box<PartialItem>>) {
        if self.missed.is_empty() || self.backlog.bytes.load(Ordering::SeqCst) > ROOM {
            return;
        }
        for item in mem::take(&mut self.missed) {
            let Some(partial) = partials.get(&item) else {
                continue;
            };
            let live = Arc::new(Live::Started((**partial).clone()));
            // What does not fit is missed again.
            self.tell(&Arc::new(Told::new(FeedEvent::Live(live))));
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.sender.is_closed()
    }

    fn send(&self, told: Arc<Told>) -> bool {
        self.backlog
            .bytes
            .fetch_add(weight(&told), Ordering::SeqCst);
        self.sender.send(told).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use openvaala_protocol::event::Delta;
    use openvaala_protocol::id::{SessionId, TurnId};
    use openvaala_protocol::item::ItemKind;
    use openvaala_protocol::time::Timestamp;
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;

    fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(n: u128) -> T {
        let id = Uuid::from_u128(0x0192_d3f5_0000_7000_8000_0000_0000_0000 + n);
        id.to_string().parse().unwrap()
    }

    fn told(live: Live) -> Arc<Told> {
        Arc::new(Told::new(FeedEvent::Live(Arc::new(live))))
    }

    fn delta(offset: u64, text: String) -> Arc<Told> {
        told(Live::Delta(Delta {
            session_id: id::<SessionId>(1),
            item_id: id(2),
            offset,
            text,
        }))
    }

    fn partial(text: String) -> PartialItem {
        PartialItem {
            session_id: id(1),
            turn_id: id::<TurnId>(3),
            item_id: id(2),
            kind: ItemKind::AssistantMessage,
            pos: 1,
            started_at: Timestamp::EPOCH,
            label: None,
            offset: 0,
            text,
        }
    }

    fn degraded(bytes: usize) -> Arc<Told> {
        told(Live::Degraded {
            session_id: id(1),
            message: "x".repeat(bytes),
        })
    }

    #[tokio::test]
    async fn s_137_live_text_is_left_out_first_and_made_up_for_once_there_is_room() {
        const PIECE: usize = 100 << 10;
        let (feed, mut inbox) = mailbox::mailbox(1);
        let (mut subscriber, mut events) = subscriber(feed.downgrade());
        for n in 0..100 {
            assert!(subscriber.tell(&delta(n * PIECE as u64, "t".repeat(PIECE))));
        }
        let queued = events.backlog.bytes.load(Ordering::SeqCst);
        assert!(queued < MOST_LIVE + PIECE + 256, "{queued}");
        // What is no live text has its place all the same.
        assert!(subscriber.tell(&degraded(1)));
        let partials = BTreeMap::from([(id(2), Box::new(partial("all of it".to_owned())))]);
        subscriber.restore(&partials);
        assert!(inbox.try_recv().is_none(), "there is no room yet");
        let mut seen = 0;
        while events.backlog.bytes.load(Ordering::SeqCst) > 0 {
            let told = events.next().await.unwrap();
            if let FeedEvent::Live(live) = told.event()
                && let Live::Delta(delta) = &**live
            {
                assert_eq!(delta.offset, seen);
                seen += delta.text.len() as u64;
            }
        }
        assert!(matches!(inbox.try_recv(), Some(Message::HasRoom)));
        subscriber.restore(&partials);
        let told = events.next().await.unwrap();
        let FeedEvent::Live(live) = told.event() else {
            panic!("{told:?}");
        };
        assert_eq!(**live, Live::Started((*partials[&id(2)]).clone()));
        // From here on it goes on as for everybody else.
        subscriber.restore(&partials);
        assert!(subscriber.tell(&delta(9, "!".to_owned())));
        let told = events.next().await.unwrap();
        assert_eq!(told.bytes(), 256 + 1);
    }

    #[tokio::test]
    async fn live_text_of_an_item_that_has_ended_does_not_come_back() {
        let (feed, _inbox) = mailbox::mailbox(1);
        let (mut subscriber, mut events) = subscriber(feed.downgrade());
        assert!(subscriber.tell(&degraded(MOST_LIVE)));
        assert!(subscriber.tell(&delta(0, "left out".to_owned())));
        let (session_id, item_id) = (id(1), id(2));
        assert!(subscriber.tell(&told(Live::Dropped {
            session_id,
            item_id
        })));
        for _ in 0..2 {
            events.next().await.unwrap();
        }
        subscriber.restore(&BTreeMap::from([(
            item_id,
            Box::new(partial(String::new())),
        )]));
        assert_eq!(events.backlog.bytes.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn s_137_what_waits_for_a_subscriber_is_bounded_in_bytes_and_then_there_is_a_gap() {
        let (feed, _inbox) = mailbox::mailbox(1);
        let (mut subscriber, mut events) = subscriber(feed.downgrade());
        // A large one comes to whoever reads what was before it.
        assert!(subscriber.tell(&degraded(1)));
        assert!(subscriber.tell(&degraded(2 * MOST)));
        assert!(subscriber.tell(&degraded(MOST_LIVE)));
        assert!(!subscriber.tell(&degraded(1)));
        drop(subscriber);
        assert_eq!(events.next().await.unwrap().bytes(), 256 + 1);
        assert_eq!(events.next().await.unwrap().bytes(), 256 + 2 * MOST);
        assert_eq!(events.next().await.unwrap().bytes(), 256 + MOST_LIVE);
        assert_eq!(events.backlog.bytes.load(Ordering::SeqCst), 0);
        let told = events.next().await.unwrap();
        assert!(matches!(told.event(), FeedEvent::Gap { .. }), "{told:?}");
        assert!(events.next().await.is_none());
    }

    #[test]
    fn what_is_made_of_an_event_is_made_once() {
        let told = degraded(1);
        let first: Arc<str> = told.made(|_| Arc::from("made"));
        let second: Arc<str> = told.made(|_| Arc::from("made anew"));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(told.made(|_| 7), 7);
    }
}

//! The feed: one task a conversation that knows what there is and tells everybody who watches.
//!
//! It takes every flushed entry and every live text in order, keeps the live view, and answers a subscription with
//! what there is up to a point together with all that comes after it, so there is no gap and no double.

mod past;
mod subscriber;
mod together;
mod told;

use std::collections::BTreeMap;
use std::future::pending;
use std::mem;
use std::sync::Arc;

use openvaala_protocol::conversation::{Conversation, Session, Turn};
use openvaala_protocol::event::{Delta, Entry, Live, PartialItem, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_protocol::questions::OpenQuestions;
use openvaala_storage::LogStorage;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::past::{read_up_to, up_to};
pub use self::subscriber::Subscription;
use self::subscriber::{Subscriber, subscriber};
use self::together::Together;
pub use self::told::{FeedEvent, Told};
use super::cursor::Position;
use crate::dao::query::{self, States};
use crate::dao::record::ConversationState;
use crate::error::RuntimeError;
use crate::mailbox::{self, mailbox};

/// What waits for the feed at most; who writes waits, since nothing in the feed waits for anybody.
const INBOX: usize = 1_024;
/// How much text of an unfinished item is kept for snapshots: its end.
const PARTIAL_BYTES: usize = 256 << 10;

type SubscribeReply = oneshot::Sender<Result<Subscription, RuntimeError>>;

#[derive(Debug)]
enum Message {
    Entries(Vec<Entry>),
    Live(Live),
    /// Numbers of the metadata stream, up to this one, that nobody will tell.
    Passed(u64),
    Deleted {
        told: oneshot::Sender<()>,
    },
    Subscribe {
        cursor: Option<ResumeCursor>,
        reply: SubscribeReply,
    },
    IsWatched {
        reply: oneshot::Sender<bool>,
    },
    /// A subscriber for whom live text was left out has read most of what waited.
    HasRoom,
}

/// The way into a feed.
#[derive(Clone, Debug)]
pub(crate) struct FeedSender(mailbox::Sender<Message>);

impl FeedSender {
    /// Tells what was flushed.
    pub(crate) async fn entries(&self, entries: Vec<Entry>) {
        // The feed is gone only when the conversation is.
        let _ = self.0.send(Message::Entries(entries)).await;
    }

    /// Shows something volatile.
    pub(crate) async fn live(&self, live: Live) {
        let _ = self.0.send(Message::Live(live)).await;
    }

    /// Waits no more for entries of the metadata stream up to a number: they were written, but not acknowledged.
    pub(crate) async fn passed(&self, metadata: u64) {
        let _ = self.0.send(Message::Passed(metadata)).await;
    }

    /// Tells everybody who watches that the conversation is deleted; returns when they were told.
    pub(crate) async fn deleted(&self) {
        let (told, wait) = oneshot::channel();
        if self.0.send(Message::Deleted { told }).await.is_ok() {
            let _ = wait.await;
        }
    }

    /// Whether anybody watches.
    pub(crate) async fn is_watched(&self) -> bool {
        let (reply, wait) = oneshot::channel();
        let asked = self.0.send(Message::IsWatched { reply }).await;
        asked.is_ok() && wait.await.unwrap_or(false)
    }

    pub(crate) async fn subscribe(
        &self,
        cursor: Option<ResumeCursor>,
    ) -> Result<Subscription, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let message = Message::Subscribe { cursor, reply };
        self.0
            .send(message)
            .await
            .map_err(|_| RuntimeError::Stopped)?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }
}

/// Makes a feed and the task that runs it; the task ends with the last sender.
pub(crate) fn feed(
    id: ConversationId,
    log: Arc<dyn LogStorage>,
    state: ConversationState,
    states: &States,
    position: Position,
    questions: OpenQuestions,
) -> (FeedSender, impl Future<Output = ()> + use<>) {
    let (sender, receiver) = mailbox(INBOX);
    let mut last_turns = BTreeMap::new();
    for turn in states.wire_turns() {
        last_turns.insert(turn.session_id, Box::new(turn));
    }
    let feed = Feed {
        id,
        log,
        sender: sender.downgrade(),
        receiver,
        view: View {
            state,
            sessions: states.wire_sessions(),
            last_turns,
            partials: BTreeMap::new(),
            questions,
            position,
        },
        early: BTreeMap::new(),
        together: Together::default(),
        subscribers: Vec::new(),
        reading: JoinSet::new(),
    };
    (FeedSender(sender), feed.run())
}

struct Feed {
    id: ConversationId,
    log: Arc<dyn LogStorage>,
    /// Its own inbox, for subscribers; it does not keep the feed going.
    sender: mailbox::WeakSender<Message>,
    receiver: mailbox::Receiver<Message>,
    view: View,
    /// Metadata entries whose predecessors have not come yet: sessions write it side by side.
    early: BTreeMap<u64, Box<Entry>>,
    /// Deltas that the view has and nobody was told yet.
    together: Together,
    subscribers: Vec<Subscriber>,
    reading: JoinSet<()>,
}

/// What there is right now.
#[derive(Clone)]
struct View {
    state: ConversationState,
    sessions: Vec<Session>,
    last_turns: BTreeMap<SessionId, Box<Turn>>,
    partials: BTreeMap<ItemId, Box<PartialItem>>,
    questions: OpenQuestions,
    position: Position,
}

impl Feed {
    async fn run(mut self) {
        loop {
            tokio::select! {
                message = self.receiver.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => break,
                },
                () = at(self.together.due()) => self.tell_what_waits(),
                Some(_) = self.reading.join_next(), if !self.reading.is_empty() => {}
            }
            // Only what everybody else was told makes up for what somebody missed: all is told once.
            if self.together.is_empty() {
                let partials = &self.view.partials;
                self.subscribers
                    .iter_mut()
                    .for_each(|subscriber| subscriber.restore(partials));
            }
        }
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Entries(entries) => self.take_entries(entries).await,
            Message::Live(live) => self.take_live(live),
            Message::Passed(metadata) => self.pass(metadata),
            Message::Deleted { told } => {
                self.tell(FeedEvent::Deleted);
                let _ = told.send(());
            }
            Message::Subscribe { cursor, reply } => self.subscribe(cursor, reply),
            Message::IsWatched { reply } => {
                self.forget_who_left();
                let _ = reply.send(!self.subscribers.is_empty());
            }
            Message::HasRoom => self.tell_what_waits(),
        }
    }

    async fn take_entries(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            match metadata_seq(&entry) {
                None => {
                    self.tell_what_is_before(&entry).await;
                    self.tell_entry(entry);
                }
                Some(seq) => {
                    self.early.insert(seq, Box::new(entry));
                }
            }
        }
        self.tell_in_order();
    }

    /// Tells what the log has before an item and nobody has told: its commit failed after the items were written.
    async fn tell_what_is_before(&mut self, entry: &Entry) {
        let Entry::Item {
            seq, session_id, ..
        } = entry
        else {
            return;
        };
        let mut told = self.view.position.session(*session_id);
        while told + 1 < *seq {
            let missing = up_to(told, *seq - 1);
            match query::page(&self.log, self.id, *session_id, missing).await {
                Ok((entries, next)) => {
                    entries.into_iter().for_each(|entry| self.tell_entry(entry));
                    told = next.unwrap_or(*seq - 1);
                }
                Err(error) => {
                    let reason =
                        format!("entries before {seq} of a session cannot be read: {error}");
                    self.tell(FeedEvent::Gap { reason });
                    self.subscribers.clear();
                    return;
                }
            }
        }
    }

    /// Tells what has come up to a number, and does not wait for the rest of it.
    fn pass(&mut self, metadata: u64) {
        let later = self.early.split_off(&(metadata + 1));
        for entry in mem::replace(&mut self.early, later).into_values() {
            self.tell_entry(*entry);
        }
        let position = &mut self.view.position.metadata;
        *position = metadata.max(*position);
        self.tell_in_order();
    }

    fn tell_in_order(&mut self) {
        while let Some(entry) = self.early.remove(&(self.view.position.metadata + 1)) {
            self.tell_entry(*entry);
        }
    }

    fn tell_entry(&mut self, entry: Entry) {
        let entry = self.view.take(entry);
        let entry = Arc::new(entry);
        if self.subscribers.is_empty() {
            return;
        }
        let cursor = self.view.position.encode();
        self.tell(FeedEvent::Entry { entry, cursor });
    }

    fn take_live(&mut self, live: Live) {
        self.view.take_live(&live);
        if self.subscribers.is_empty() {
            return;
        }
        match live {
            Live::Delta(delta) => {
                let told = self.together.push(delta, Instant::now());
                self.tell_deltas(told);
            }
            live => self.tell(FeedEvent::Live(Arc::new(live))),
        }
    }

    /// Tells the deltas that wait.
    fn tell_what_waits(&mut self) {
        if !self.together.is_empty() {
            let deltas = self.together.take(Instant::now());
            self.tell_deltas(deltas);
        }
    }

    fn tell_deltas(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            self.tell_now(FeedEvent::Live(Arc::new(Live::Delta(delta))));
        }
    }

    /// Tells something after what waits: the text of an item never comes after the item.
    fn tell(&mut self, event: FeedEvent) {
        self.tell_what_waits();
        self.tell_now(event);
    }

    fn tell_now(&mut self, event: FeedEvent) {
        if self.subscribers.is_empty() {
            return;
        }
        let told = Arc::new(Told::new(event));
        self.subscribers
            .retain_mut(|subscriber| subscriber.tell(&told));
    }

    fn forget_who_left(&mut self) {
        self.subscribers.retain(|subscriber| !subscriber.has_left());
    }

    /// Registers a subscriber at this very point; what lies before it is read beside the feed.
    fn subscribe(&mut self, cursor: Option<ResumeCursor>, reply: SubscribeReply) {
        let from = match cursor.as_ref().map(Position::decode) {
            None => None,
            Some(Some(position)) => Some(position),
            Some(None) => {
                let _ = reply.send(Err(RuntimeError::InvalidCursor));
                return;
            }
        };
        // Where nothing happens nothing is told, and nobody would notice.
        self.forget_who_left();
        // The answer has it already.
        self.tell_what_waits();
        let (subscriber, events) = subscriber(self.sender.clone());
        self.subscribers.push(subscriber);
        let (id, log, view) = (self.id, Arc::clone(&self.log), self.view.clone());
        self.reading.spawn(async move {
            let cursor = view.position.encode();
            let partials = view.partials.values();
            let mut partials: Vec<PartialItem> =
                partials.map(|partial| (**partial).clone()).collect();
            partials.sort_by_key(|partial| (partial.session_id, partial.pos));
            let answer = read_up_to(id, &log, view, from).await;
            let _ = reply.send(answer.map(|(snapshot, entries)| Subscription {
                snapshot,
                entries,
                partials,
                cursor,
                events,
            }));
        });
    }
}

impl View {
    /// Takes in an entry; a conversation's entry is completed with what only the feed knows.
    fn take(&mut self, entry: Entry) -> Entry {
        self.questions.take(&entry);
        match entry {
            Entry::Conversation { seq, conversation } => {
                self.position.metadata = seq;
                self.state.title.clone_from(&conversation.title);
                self.state.executors.clone_from(&conversation.executors);
                self.state.archived = conversation.archived;
                self.state.updated_at = conversation.updated_at;
                Entry::Conversation {
                    seq,
                    conversation: self.conversation(),
                }
            }
            Entry::Session { seq, session } => {
                self.position.metadata = seq;
                match self
                    .sessions
                    .iter_mut()
                    .find(|known| known.id == session.id)
                {
                    Some(known) => *known = session.clone(),
                    None => self.sessions.push(session.clone()),
                }
                Entry::Session { seq, session }
            }
            Entry::Turn { seq, turn } => {
                self.position.metadata = seq;
                if turn.ended_at.is_some() {
                    self.partials
                        .retain(|_, partial| partial.turn_id != turn.id);
                }
                self.last_turns
                    .insert(turn.session_id, Box::new(turn.clone()));
                Entry::Turn { seq, turn }
            }
            Entry::Item {
                seq,
                session_id,
                item,
            } => {
                self.position.sessions.insert(session_id, seq);
                self.partials.remove(&item.head().id);
                Entry::Item {
                    seq,
                    session_id,
                    item,
                }
            }
            other => other,
        }
    }

    fn take_live(&mut self, live: &Live) {
        match live {
            Live::Started(partial) => {
                self.partials
                    .insert(partial.item_id, Box::new(partial.clone()));
            }
            Live::Delta(delta) => {
                let Some(partial) = self.partials.get_mut(&delta.item_id) else {
                    return;
                };
                // Some of a fast output is left out: what came before it is no use to anybody then.
                if delta.offset > partial.offset + partial.text.len() as u64 {
                    partial.offset = delta.offset;
                    partial.text.clear();
                }
                partial.text.push_str(&delta.text);
                if partial.text.len() > 2 * PARTIAL_BYTES {
                    let cut = partial
                        .text
                        .ceil_char_boundary(partial.text.len() - PARTIAL_BYTES);
                    partial.text.drain(..cut);
                    partial.offset += cut as u64;
                }
            }
            Live::Dropped { item_id, .. } => {
                self.partials.remove(item_id);
            }
            _ => {}
        }
    }

    fn conversation(&self) -> Conversation {
        self.state.to_wire(&self.sessions)
    }
}

/// Waits until then, or for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

fn metadata_seq(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Conversation { seq, .. } | Entry::Session { seq, .. } | Entry::Turn { seq, .. } => {
            Some(*seq)
        }
        _ => None,
    }
}

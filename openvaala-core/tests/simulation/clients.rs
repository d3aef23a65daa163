//! Clients that say, repeat, interrupt, watch and leave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use openvaala_core::protocol::event::{Entry, ResumeCursor};
use openvaala_core::protocol::id::{ConversationId, SessionId};
use openvaala_core::protocol::rpc::params::session::SendMode;
use openvaala_core::{ConversationHandle, FeedEvent, Input, Runtime, RuntimeError, Subscription};
use tokio::time::sleep;

use super::world::Shared;

/// An item that a client was told, and where in which log it lies.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) session: SessionId,
    pub(crate) seq: u64,
    pub(crate) json: String,
}

/// Does some things with some conversations, and notes what it is promised.
pub(crate) async fn client(runtime: Runtime, shared: Arc<Shared>, ids: Vec<ConversationId>) {
    let mut watches: BTreeMap<ConversationId, Watch> = BTreeMap::new();
    for _ in 0..5 + shared.below(20) {
        sleep(Duration::from_millis(shared.below(700))).await;
        let Some(id) = ids.get(usize::try_from(shared.below(8)).unwrap() % ids.len().max(1)) else {
            return;
        };
        // A disk that fails, or a conversation that never got a message.
        let Ok(conversation) = runtime.open(*id).await else {
            continue;
        };
        let watch = watches.entry(*id).or_default();
        match shared.below(12) {
            0..5 => say(&conversation, &shared).await,
            5 => repeat(&conversation, &shared).await,
            6 => drop(conversation.interrupt(None).await),
            7 | 8 => drop(watch.subscribe(&conversation).await),
            9 => watch.leave(),
            _ => {}
        }
        watch.drain();
        watch.keep(*id, &shared);
    }
}

async fn say(conversation: &ConversationHandle, shared: &Arc<Shared>) {
    let mode = match shared.below(4) {
        0 => SendMode::Steer,
        1 => SendMode::IdleOnly,
        _ => SendMode::Queue,
    };
    let input = Input::text("go on").with_mode(mode);
    let item = input.item_id;
    if let Ok(sent) = conversation.send(input).await {
        assert!(!sent.duplicate, "it was never sent before");
        let mut known = shared.known();
        known.conversations.insert(conversation.id());
        known.acknowledged.insert((conversation.id(), item));
    }
}

/// Sends again what was taken, as a client does that lost its connection.
async fn repeat(conversation: &ConversationHandle, shared: &Arc<Shared>) {
    let nth = usize::try_from(shared.below(1_000)).unwrap();
    let taken = {
        let known = shared.known();
        let of_this = known
            .acknowledged
            .iter()
            .filter(|(id, _)| *id == conversation.id());
        let items: Vec<_> = of_this.map(|(_, item)| *item).collect();
        items.get(nth % items.len().max(1)).copied()
    };
    let Some(item_id) = taken else { return };
    let mut input = Input::text("go on");
    input.item_id = item_id;
    if let Ok(sent) = conversation.send(input).await {
        assert!(sent.duplicate, "I-1: {item_id} was forgotten");
    }
}

/// What a client watches, over as many subscriptions as it takes.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    subscription: Option<Subscription>,
    cursor: Option<ResumeCursor>,
    /// The number that the next item of a session has.
    next: BTreeMap<SessionId, u64>,
    seen: Vec<Seen>,
}

impl Watch {
    /// Begins to watch, from where it was left.
    pub(crate) async fn subscribe(
        &mut self,
        conversation: &ConversationHandle,
    ) -> Result<(), RuntimeError> {
        self.drain();
        let mut subscription = conversation.subscribe(self.cursor.clone()).await?;
        if let Some(snapshot) = &subscription.snapshot {
            self.next.clear();
            for session in &snapshot.sessions {
                if let Some(Entry::Item { seq, .. } | Entry::Damaged { seq, .. }) =
                    session.items.first()
                {
                    self.next.insert(session.session.id, *seq);
                }
                session.items.iter().for_each(|entry| self.take(entry));
            }
        }
        for entry in std::mem::take(&mut subscription.entries) {
            self.take(&entry);
        }
        self.cursor = Some(subscription.cursor.clone());
        self.subscription = Some(subscription);
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.drain();
        self.subscription = None;
    }

    /// Takes what has come.
    pub(crate) fn drain(&mut self) {
        while let Some(event) = self.next_event() {
            match event {
                Some(FeedEvent::Entry { entry, cursor }) => {
                    self.take(&entry);
                    self.cursor = Some(cursor);
                }
                Some(_) => {}
                None => self.subscription = None,
            }
        }
    }

    fn next_event(&mut self) -> Option<Option<FeedEvent>> {
        self.subscription.as_mut()?.next().now_or_never()
    }

    fn take(&mut self, entry: &Entry) {
        let (seq, session_id, item) = match entry {
            Entry::Item {
                seq,
                session_id,
                item,
            } => (seq, session_id, Some(item)),
            Entry::Damaged {
                seq, session_id, ..
            } => (seq, session_id, None),
            _ => return,
        };
        let next = self.next.entry(*session_id).or_insert(1);
        assert_eq!(
            seq, next,
            "I-3: a client is told everything, once and in order"
        );
        *next = seq + 1;
        self.seen.extend(item.map(|item| Seen {
            session: *session_id,
            seq: *seq,
            json: item.raw().get().to_owned(),
        }));
    }

    /// Notes what was seen where it outlives this life.
    pub(crate) fn keep(&mut self, id: ConversationId, shared: &Arc<Shared>) {
        shared
            .known()
            .seen
            .entry(id)
            .or_default()
            .append(&mut self.seen);
    }
}

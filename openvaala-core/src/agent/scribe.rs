//! Writes items: gives them ids, places and times, and keeps the history that requests are built from.

use std::collections::{BTreeMap, HashMap, HashSet};

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Item, ItemBody, ItemHead, ToolCall};
use openvaala_protocol::time::Timestamp;
use uuid::Uuid;

use crate::context::{History, last_summary};
use crate::journal::Journal;
use crate::model::Messages;
use crate::session::Effect;

/// The time of an event, and ids for what it brings about.
pub(crate) struct Tick<'a> {
    pub(crate) now: Timestamp,
    pub(crate) ids: &'a mut dyn FnMut() -> Uuid,
}

impl Tick<'_> {
    pub(crate) fn id(&mut self) -> Uuid {
        (self.ids)()
    }
}

/// Where an item stands that is still growing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) id: ItemId,
    pub(crate) pos: u64,
    pub(crate) started_at: Timestamp,
}

impl Place {
    /// Where an item stands that is to be written once more.
    pub(crate) const fn of(head: &ItemHead) -> Self {
        Self {
            id: head.id,
            pos: head.pos,
            started_at: head.started_at,
        }
    }
}

/// The history of one session, and the way into its log.
#[derive(Debug)]
pub(crate) struct Scribe {
    pub(crate) session: SessionId,
    pub(crate) journal: Journal<Effect>,
    history: History,
    /// Whether the history has all that a request is made from.
    has_context: bool,
    last_pos: u64,
    call_ids: HashSet<String>,
}

impl Scribe {
    /// Goes on after the newest items and the last place that was taken.
    ///
    /// With `has_context` these items are all that a request is made from.
    pub(crate) fn new(
        session: SessionId,
        items: Vec<Item>,
        last_pos: u64,
        has_context: bool,
    ) -> Self {
        let history = History::new(items);
        let last = history.items().last().map_or(0, |item| item.head().pos);
        let call_ids = call_ids(history.items());
        Self {
            session,
            journal: Journal::new(),
            history,
            has_context,
            last_pos: last_pos.max(last),
            call_ids,
        }
    }

    /// Whether the history has all that a request is made from.
    pub(crate) const fn has_context(&self) -> bool {
        self.has_context
    }

    /// The last place that was taken.
    pub(crate) const fn last_pos(&self) -> u64 {
        self.last_pos
    }

    /// Takes in what requests are made from as the log has it; what was written since stays.
    pub(crate) fn load(&mut self, context: Vec<Item>) {
        let here = self.history.items().iter().cloned();
        let all: BTreeMap<u64, Item> = context
            .into_iter()
            .chain(here)
            .map(|item| (item.head().pos, item))
            .collect();
        let items: Vec<Item> = all.into_values().collect();
        self.call_ids.extend(call_ids(&items));
        self.history = History::new(items);
        if let Some((_, summary)) = last_summary(self.history.items().iter()) {
            self.history.forget(summary.up_to);
        }
        self.has_context = true;
    }

    /// All items so far, by `pos`.
    pub(crate) fn history(&self) -> &[Item] {
        self.history.items()
    }

    /// Lets go of what a summary stands for; it stays in the log.
    pub(crate) fn forget(&mut self, up_to: u64) {
        self.history.forget(up_to);
    }

    /// Requests are made from more than is known here: it has to be read from the log again.
    pub(crate) const fn lose_context(&mut self) {
        self.has_context = false;
    }

    /// The messages of a request to that model of that account; `blobs` has the large images in base64.
    pub(crate) fn messages(
        &mut self,
        target: &ModelRef,
        account: Option<&str>,
        blobs: &HashMap<BlobId, String>,
    ) -> Messages {
        self.history.messages(target, account, blobs)
    }

    /// Takes the next place for an item that begins to appear.
    pub(crate) fn place(&mut self, tick: &mut Tick<'_>) -> Place {
        let id = ItemId::from_uuid(tick.id());
        self.place_of(id, tick)
    }

    fn place_of(&mut self, id: ItemId, tick: &Tick<'_>) -> Place {
        self.last_pos += 1;
        Place {
            id,
            pos: self.last_pos,
            started_at: tick.now,
        }
    }

    /// Makes a call id that no call of this session has had: the provider's own, if it is one.
    pub(crate) fn call_id(&mut self, given: &str, item: ItemId) -> String {
        let unique = !given.is_empty() && !self.call_ids.contains(given);
        let id = if unique {
            given.to_owned()
        } else {
            format!("call_{}", item.as_uuid().simple())
        };
        self.call_ids.insert(id.clone());
        id
    }

    /// Writes an item at a place that was taken before.
    pub(crate) fn write<B: ItemBody>(
        &mut self,
        place: Place,
        turn: Option<TurnId>,
        body: &B,
        now: Timestamp,
    ) {
        let head = ItemHead::new(place.id, B::KIND, turn, place.pos, place.started_at, now);
        match Item::new(head, body) {
            Ok(item) => {
                self.journal.item(item.clone());
                self.history.add(item);
            }
            // No body of the protocol crate fails to be written; a lost item must be heard of all the same.
            Err(error) => tracing::error!(%error, kind = %B::KIND, "an item could not be encoded"),
        }
    }

    /// Writes an item at the next place.
    pub(crate) fn append<B: ItemBody>(
        &mut self,
        tick: &mut Tick<'_>,
        turn: Option<TurnId>,
        body: &B,
    ) -> ItemId {
        let place = self.place(tick);
        self.write(place, turn, body, tick.now);
        place.id
    }

    /// Writes what was said to the session, under the id that its sender chose.
    pub(crate) fn message<B: ItemBody>(
        &mut self,
        tick: &Tick<'_>,
        id: ItemId,
        turn: TurnId,
        message: &B,
    ) {
        let place = self.place_of(id, tick);
        self.write(place, Some(turn), message, tick.now);
    }
}

/// The call ids of all calls.
fn call_ids(items: &[Item]) -> HashSet<String> {
    let calls = items
        .iter()
        .filter_map(|item| item.body::<ToolCall>()?.ok());
    calls.map(|call| call.call_id).collect()
}

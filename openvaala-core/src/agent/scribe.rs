//! Writes items: gives them ids, places and times, and keeps the history that requests are built from.

use std::collections::{HashMap, HashSet};

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Item, ItemBody, ItemHead, ItemKind, ToolCall, UserMessage};
use openvaala_protocol::time::Timestamp;
use uuid::Uuid;

use crate::context::History;
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

/// The history of one session, and the way into its log.
#[derive(Debug)]
pub(crate) struct Scribe {
    pub(crate) session: SessionId,
    pub(crate) journal: Journal<Effect>,
    history: History,
    last_pos: u64,
    call_ids: HashSet<String>,
    user_messages: HashSet<ItemId>,
}

impl Scribe {
    /// Goes on after a history, oldest item first.
    pub(crate) fn new(session: SessionId, history: Vec<Item>) -> Self {
        let history = History::new(history);
        let items = history.items();
        let last_pos = items.last().map_or(0, |item| item.head().pos);
        let calls = items
            .iter()
            .filter_map(|item| item.body::<ToolCall>()?.ok());
        let call_ids = calls.map(|call| call.call_id).collect();
        let said = items
            .iter()
            .filter(|item| item.head().kind == ItemKind::UserMessage);
        let user_messages = said.map(|item| item.head().id).collect();
        Self {
            session,
            journal: Journal::new(),
            history,
            last_pos,
            call_ids,
            user_messages,
        }
    }

    /// All items so far, by `pos`.
    pub(crate) fn history(&self) -> &[Item] {
        self.history.items()
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

    /// Whether an input of that id was taken before.
    pub(crate) fn has_input(&self, id: ItemId) -> bool {
        self.user_messages.contains(&id)
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

    /// Writes what the user said, under the id that the client chose.
    pub(crate) fn user_message(
        &mut self,
        tick: &Tick<'_>,
        id: ItemId,
        turn: TurnId,
        message: &UserMessage,
    ) {
        let place = self.place_of(id, tick);
        self.user_messages.insert(id);
        self.write(place, Some(turn), message, tick.now);
    }
}

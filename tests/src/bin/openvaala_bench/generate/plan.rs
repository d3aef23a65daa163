//! What a data directory is to hold; every id, time and size follows from it.

use openvaala_core::protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_core::protocol::time::Timestamp;
use openvaala_tests::dice::Dice;
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use crate::Failure;
use crate::arguments::Arguments;

/// When the first conversation was made.
const BEGINNING: i64 = 1_750_000_000_000;
/// Between the making of two conversations, at least.
const MINUTE: u64 = 60_000;
/// How conversations are shuffled by time of use: a prime, so that it shares no divisor with most counts.
const SHUFFLE: u64 = 7_919;
const ITEMS_A_TURN: u64 = 100;

/// Which data directory to make.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Plan {
    pub(crate) conversations: u64,
    /// Of all of them together.
    pub(crate) items: u64,
    /// Sessions of a conversation.
    pub(crate) sessions: u64,
    /// Turns of a session; `None` is one for every hundred items.
    pub(crate) turns: Option<u64>,
    /// The average length of a line of an item.
    pub(crate) item_bytes: u64,
    pub(crate) titles: bool,
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) const fn new(conversations: u64, items: u64, item_bytes: u64) -> Self {
        Self {
            conversations,
            items,
            sessions: 1,
            turns: None,
            item_bytes,
            titles: true,
            seed: 1,
        }
    }

    pub(crate) fn from_arguments(arguments: &mut Arguments) -> Result<Self, Failure> {
        let needed = |name: &str| format!("--{name} is missing; see openvaala-bench help");
        let conversations = arguments.option("conversations")?;
        let items = arguments.option("items")?;
        let mut plan = Self::new(
            conversations.ok_or_else(|| needed("conversations"))?,
            items.ok_or_else(|| needed("items"))?,
            arguments.option("item-bytes")?.unwrap_or(1_024),
        );
        plan.sessions = arguments.option("sessions")?.unwrap_or(plan.sessions);
        plan.turns = arguments.option("turns")?;
        plan.seed = arguments.option("seed")?.unwrap_or(plan.seed);
        plan.titles = match arguments.option::<String>("titles")?.as_deref() {
            None | Some("realistic") => true,
            Some("none") => false,
            Some(other) => {
                return Err(format!("--titles {other}: expected none or realistic").into());
            }
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Failure> {
        let sessions = self.conversations.saturating_mul(self.sessions);
        if sessions == 0 || self.items < sessions {
            return Err(
                "there must be at least one conversation, one session, and one item a session"
                    .into(),
            );
        }
        if self.turns == Some(0) {
            return Err("--turns must be at least 1".into());
        }
        Ok(())
    }

    /// How many items a session has.
    pub(crate) const fn items_of(&self, at: At) -> u64 {
        let sessions = self.conversations * self.sessions;
        let place = at.conversation * self.sessions + at.session;
        let one_more = place < self.items % sessions;
        self.items / sessions + one_more as u64
    }

    pub(crate) fn turns_of(&self, at: At) -> u64 {
        let items = self.items_of(at);
        let turns = self.turns.unwrap_or(items / ITEMS_A_TURN);
        turns.clamp(1, items)
    }

    /// The first and the last item of a turn; turns count from 0, items from 1.
    pub(crate) fn bounds(&self, at: At, turn: u64) -> (u64, u64) {
        let (items, turns) = (self.items_of(at), self.turns_of(at));
        (turn * items / turns + 1, (turn + 1) * items / turns)
    }

    pub(crate) fn turn_of(&self, at: At, item: u64) -> u64 {
        let mut turn = (item - 1) * self.turns_of(at) / self.items_of(at);
        while self.bounds(at, turn).1 < item {
            turn += 1;
        }
        turn
    }

    /// The conversations, the last used first.
    pub(crate) fn by_use(&self) -> Vec<u64> {
        let mut all: Vec<u64> = (0..self.conversations).collect();
        all.sort_by_key(|conversation| std::cmp::Reverse(self.rank(*conversation)));
        all
    }

    const fn rank(&self, conversation: u64) -> u64 {
        if self.conversations.is_multiple_of(SHUFFLE) {
            conversation
        } else {
            conversation * SHUFFLE % self.conversations
        }
    }

    pub(crate) fn created_at(&self, conversation: u64) -> Timestamp {
        self.time(conversation, 0)
    }

    pub(crate) fn updated_at(&self, conversation: u64) -> Timestamp {
        self.time(self.conversations + self.rank(conversation) + 1, 0)
    }

    /// A millisecond an item, so that the last one is of the time of the last use.
    pub(crate) fn item_at(&self, at: At, item: u64) -> Timestamp {
        let left = self.items_of(at) - item;
        self.time(self.conversations + self.rank(at.conversation) + 1, left)
    }

    fn time(&self, spans: u64, less: u64) -> Timestamp {
        let longest = self.items / (self.conversations * self.sessions) + 1;
        let since = spans * longest.max(MINUTE) - less;
        Timestamp::from_millis(BEGINNING + since as i64)
    }

    pub(crate) fn conversation_id(&self, conversation: u64) -> ConversationId {
        let mut dice = self.dice("conversation", [conversation, 0, 0]);
        ConversationId::from_uuid(uuid(self.created_at(conversation), &mut dice))
    }

    pub(crate) fn session_id(&self, at: At) -> SessionId {
        let mut dice = self.dice("session", [at.conversation, at.session, 0]);
        SessionId::from_uuid(uuid(self.created_at(at.conversation), &mut dice))
    }

    pub(crate) fn turn_id(&self, at: At, turn: u64) -> TurnId {
        let mut dice = self.dice("turn", [at.conversation, at.session, turn]);
        let time = self.item_at(at, self.bounds(at, turn).0);
        TurnId::from_uuid(uuid(time, &mut dice))
    }

    pub(crate) fn item_id(&self, at: At, item: u64) -> ItemId {
        let mut dice = self.dice("item", [at.conversation, at.session, item]);
        ItemId::from_uuid(uuid(self.item_at(at, item), &mut dice))
    }

    /// What is drawn for one thing, whatever was drawn for others.
    pub(crate) fn dice(&self, what: &str, place: [u64; 3]) -> Dice {
        let bytes = what.bytes().map(u64::from);
        let parts = bytes.chain(place).chain([self.seed]);
        let state = parts.fold(0, |state: u64, part| {
            Dice::new(state.rotate_left(23) ^ part).below(u64::MAX)
        });
        Dice::new(state)
    }
}

/// One session of one conversation, both counted from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct At {
    pub(crate) conversation: u64,
    pub(crate) session: u64,
}

impl At {
    pub(crate) const fn root(conversation: u64) -> Self {
        Self {
            conversation,
            session: 0,
        }
    }
}

fn uuid(time: Timestamp, dice: &mut Dice) -> Uuid {
    let mut random = [0; 10];
    for byte in &mut random {
        *byte = dice.below(256) as u8;
    }
    let millis = time.as_millis().unsigned_abs();
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

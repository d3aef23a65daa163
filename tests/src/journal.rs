//! What a client was told to be on disk.

use std::collections::{BTreeMap, BTreeSet};

use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use serde_json::{Value, json};

/// All that was acknowledged, by conversation.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// The conversations that something is known of.
    pub conversations: BTreeMap<ConversationId, Acknowledged>,
    /// Of what was never acknowledged, later lines may have survived that and earlier ones not.
    pub power_was_cut: bool,
}

/// What was acknowledged of one conversation.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// Every input that was ever sent, acknowledged or not.
    pub submitted: BTreeSet<ItemId>,
    /// Inputs whose `session/send` was answered.
    pub inputs: BTreeSet<ItemId>,
    /// Inputs whose withdrawal was answered.
    pub withdrawn: BTreeSet<ItemId>,
    /// Items that were notified, by session and number: their JSON text.
    pub items: BTreeMap<(SessionId, u64), String>,
    /// States that were notified, by number in the metadata stream: kind and JSON.
    pub states: BTreeMap<u64, (&'static str, Value)>,
}

impl Journal {
    /// Notes that an input is about to be sent.
    pub fn submit(&mut self, conversation: ConversationId, input: ItemId) {
        self.of(conversation).submitted.insert(input);
    }

    /// Notes that an input was acknowledged.
    pub fn accept(&mut self, conversation: ConversationId, input: ItemId) {
        self.of(conversation).inputs.insert(input);
    }

    /// Notes that an input's withdrawal is about to be asked for: until that is answered it may be there or not.
    pub fn withdraw(&mut self, conversation: ConversationId, input: ItemId) {
        self.of(conversation).inputs.remove(&input);
    }

    /// Notes that an input's withdrawal was acknowledged.
    pub fn withdrawn(&mut self, conversation: ConversationId, input: ItemId) {
        self.of(conversation).withdrawn.insert(input);
    }

    /// Notes an entry that was notified.
    ///
    /// # Panics
    /// If an entry of the same number was another one before: numbers are never used again.
    pub fn note(&mut self, conversation: ConversationId, entry: &Entry) {
        let known = self.of(conversation);
        match entry {
            Entry::Conversation { seq, conversation } => {
                known.state(*seq, "conversation", json!(conversation));
            }
            Entry::Session { seq, session } => known.state(*seq, "session", json!(session)),
            Entry::Turn { seq, turn } => known.state(*seq, "turn", json!(turn)),
            Entry::Item {
                seq,
                session_id,
                item,
            } => {
                let text = item.raw().get().to_owned();
                let before = known.items.insert((*session_id, *seq), text.clone());
                let same = before.as_ref().is_none_or(|before| *before == text);
                assert!(
                    same,
                    "I-1: item {seq} was {before:?} and is told again as {text}"
                );
            }
            other => panic!("an entry that should not be: {other:?}"),
        }
    }

    /// How many entries and inputs are known.
    #[must_use]
    pub fn len(&self) -> usize {
        let sizes = self.conversations.values();
        sizes
            .map(|known| known.inputs.len() + known.items.len() + known.states.len())
            .sum()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn of(&mut self, conversation: ConversationId) -> &mut Acknowledged {
        self.conversations.entry(conversation).or_default()
    }
}

impl Acknowledged {
    /// Whether somebody was told that something of it is on disk.
    #[must_use]
    pub fn is_promised(&self) -> bool {
        !self.inputs.is_empty() || !self.items.is_empty()
    }

    fn state(&mut self, seq: u64, kind: &'static str, state: Value) {
        let before = self.states.insert(seq, (kind, state.clone()));
        let same = before
            .as_ref()
            .is_none_or(|before| *before == (kind, state.clone()));
        assert!(
            same,
            "I-1: state {seq} was {before:?} and is told again as {kind} {state}"
        );
    }
}

//! The open questions of a conversation, kept from the entries of its logs.

use std::collections::BTreeMap;

use crate::event::Entry;
use crate::id::{SessionId, TurnId};
use crate::item::{Approval, ApprovalState, Item};

/// The questions whether a tool call may run that nobody has answered yet.
///
/// Pure state, the same for the server and its clients: it takes every entry in the order in which it is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenQuestions(BTreeMap<(SessionId, u64), Item>);

impl OpenQuestions {
    /// Takes an entry of a log.
    pub fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Item {
                session_id, item, ..
            } => self.item(*session_id, item),
            Entry::Turn { turn, .. } if turn.ended_at.is_some() => self.turn_ended(turn.id),
            _ => {}
        }
    }

    /// Takes an item of a session's log: a question, or one with its answer.
    pub fn item(&mut self, session: SessionId, item: &Item) {
        let Some(Ok(approval)) = item.body::<Approval>() else {
            return;
        };
        let place = (session, item.head().pos);
        if approval.state == ApprovalState::Pending {
            self.0.insert(place, item.clone());
        } else {
            self.0.remove(&place);
        }
    }

    /// What a turn has asked needs no answer any more once it has ended.
    fn turn_ended(&mut self, turn: TurnId) {
        self.0.retain(|_, item| item.head().turn != Some(turn));
    }

    /// The open questions of a session as items of its log, the oldest first.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Vec<Item> {
        let asked = self.0.range((session, 0)..=(session, u64::MAX));
        asked.map(|(_, item)| item.clone()).collect()
    }
}

//! Which of the things that happen in a conversation belong to the input that is followed.

use openvaala_protocol::conversation::{Session, Turn};
use openvaala_protocol::event::{Entry, Live};
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::AssistantMessage;

/// The input that is followed, and the turn that has taken it.
#[derive(Debug)]
pub(super) struct Own {
    /// The input's id as an item.
    pub(super) input: ItemId,
    /// The turn that has taken it; `None` as long as it waits.
    pub(super) turn: Option<TurnId>,
    /// The last thing that the model said in that turn.
    pub(super) answer: Option<String>,
}

impl Own {
    pub(super) const fn new(input: ItemId) -> Self {
        Self {
            input,
            turn: None,
            answer: None,
        }
    }

    /// Whether a turn is the one that has taken the input; it is known from then on.
    pub(super) fn is_turn(&mut self, turn: &Turn) -> bool {
        let own = turn.inputs.contains(&self.input);
        if own {
            self.turn = Some(turn.id);
        }
        own
    }

    /// Whether an entry is about that turn, or about none.
    pub(super) fn has(&mut self, entry: &Entry) -> bool {
        match entry {
            Entry::Turn { turn, .. } => self.is_turn(turn),
            Entry::Item { item, .. } => {
                let turn = item.head().turn;
                let own = turn.is_none() || turn == self.turn;
                if own && let Some(Ok(message)) = item.body::<AssistantMessage>() {
                    self.answer = Some(message.text);
                }
                own
            }
            _ => true,
        }
    }

    /// Whether live text belongs to that turn; what goes on with something that was not shown shows itself.
    pub(super) fn has_live(&self, live: &Live) -> bool {
        match live {
            Live::Started(partial) => Some(partial.turn_id) == self.turn,
            _ => true,
        }
    }

    /// Whether the input waits for somebody to send once more, because the turn before it ended badly.
    pub(super) fn is_held(&self, session: &Session) -> bool {
        let mut waiting = session.pending.iter();
        session.held && waiting.any(|input| input.item_id == self.input)
    }
}

#[cfg(test)]
mod tests;

//! Turns of a conversation, one or a page of them.

use openvaala_protocol::conversation::Turn;
use openvaala_protocol::id::{SessionId, TurnId};
use openvaala_protocol::rpc::params::session::ItemsOrder;

use super::ConversationHandle;
use crate::error::RuntimeError;

/// Which turns to give.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnsQuery {
    /// Only those of this session; default `None`, of all.
    pub session_id: Option<SessionId>,
    /// In which order, by when they have started; the newest first by default.
    pub order: ItemsOrder,
    /// The turn behind which the page begins, in that order; default `None`, at that end.
    pub cursor: Option<TurnId>,
    /// How many; default 100.
    pub limit: usize,
}

impl Default for TurnsQuery {
    fn default() -> Self {
        Self {
            session_id: None,
            order: ItemsOrder::Descending,
            cursor: None,
            limit: 100,
        }
    }
}

/// A page of turns.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TurnsPage {
    /// The turns in the order that was asked for.
    pub turns: Vec<Turn>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<TurnId>,
}

impl ConversationHandle {
    /// Gives a turn of whatever session as it is on disk.
    ///
    /// # Errors
    /// [`RuntimeError::TurnNotFound`], or the storage's error if the log cannot be read.
    pub async fn turn(&self, id: TurnId) -> Result<Turn, RuntimeError> {
        let turns = self.details().await?.turns.into_iter();
        turns
            .into_iter()
            .find(|turn| turn.id == id)
            .ok_or_else(|| self.no_turn(id))
    }

    /// Gives a page of turns as they are on disk.
    ///
    /// # Errors
    /// [`RuntimeError::TurnNotFound`] for a cursor that is none of them, [`RuntimeError::SessionNotFound`], or the
    /// storage's error if the log cannot be read.
    pub async fn turns(&self, query: TurnsQuery) -> Result<TurnsPage, RuntimeError> {
        let details = self.details().await?;
        let mut turns = details.turns;
        if let Some(session) = query.session_id {
            if !details.sessions.iter().any(|known| known.id == session) {
                return Err(RuntimeError::SessionNotFound {
                    conversation: self.id,
                    session,
                });
            }
            turns.retain(|turn| turn.session_id == session);
        }
        if query.order == ItemsOrder::Descending {
            turns.reverse();
        }
        if let Some(cursor) = query.cursor {
            let at = turns.iter().position(|turn| turn.id == cursor);
            let at = at.ok_or_else(|| self.no_turn(cursor))?;
            turns.drain(..=at);
        }
        let goes_on = turns.len() > query.limit;
        turns.truncate(query.limit);
        let next = turns.last().map(|turn| turn.id).filter(|_| goes_on);
        Ok(TurnsPage { turns, next })
    }

    fn no_turn(&self, turn: TurnId) -> RuntimeError {
        RuntimeError::TurnNotFound {
            conversation: self.id,
            turn,
        }
    }
}

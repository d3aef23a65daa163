//! The items out of a session's stream that is read backwards.

use std::collections::{BTreeMap, BTreeSet};

use openvaala_protocol::id::{SessionId, TurnId};
use openvaala_protocol::item::{ContextSummary, Item, ItemKind};

use crate::dao::record::{SessionState, TurnState};

/// Collects the newest items of a session: the last one, and those of turns that were left open.
///
/// Items of different turns do not mix, so the first item of another turn is where they end.
#[derive(Debug)]
pub(crate) struct RecentItems {
    session: SessionId,
    /// The turns whose items are wanted.
    open: BTreeSet<TurnId>,
    known: BTreeSet<TurnId>,
    /// Whether the state says which place was taken last; else all of the last turn is wanted.
    has_last_pos: bool,
    items: Vec<Item>,
    cursor: u64,
    is_complete: bool,
}

impl RecentItems {
    /// Begins for a session and its latest turns. With `damaged`, a newer state may be lost.
    pub(crate) fn new(session: &SessionState, turns: &[TurnState], damaged: bool) -> Self {
        let open = turns.iter().filter(|turn| turn.ended_at.is_none());
        Self {
            session: session.id,
            open: open.map(|turn| turn.id).collect(),
            known: turns.iter().map(|turn| turn.id).collect(),
            has_last_pos: session.last_pos > 0 && !damaged,
            items: Vec::new(),
            cursor: 0,
            is_complete: false,
        }
    }

    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Where to go on.
    pub(crate) const fn cursor(&self) -> u64 {
        self.cursor
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes the entry before the last one, `None` if it cannot be read; says whether more are needed.
    pub(crate) fn take(&mut self, seq: u64, item: Option<Item>) -> bool {
        self.cursor = seq;
        let Some(item) = item else { return true };
        let is_last = self.items.is_empty();
        let turn = item.head().turn;
        if is_last && let Some(turn) = turn {
            // Items are written before states: after a crash a turn may be there without its state.
            let has_no_state =
                item.head().kind == ItemKind::UserMessage && !self.known.contains(&turn);
            if has_no_state || !self.has_last_pos {
                self.open.insert(turn);
            }
        }
        let is_wanted = turn.is_none_or(|turn| self.open.contains(&turn));
        if is_wanted || is_last || !self.has_last_pos {
            self.items.push(item);
        }
        self.is_complete = !is_wanted || (self.open.is_empty() && self.has_last_pos);
        !self.is_complete
    }

    /// The items, oldest entry first.
    pub(crate) fn finish(mut self) -> Vec<Item> {
        self.items.reverse();
        self.items
    }
}

/// Collects the items that come after the last summary, and that summary.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// By `pos`; of an item that was written more than once the last writing counts.
    items: BTreeMap<u64, Item>,
    /// The place up to which the summary stands for everything.
    up_to: Option<u64>,
    /// The turn that the summary ends in.
    border: Option<TurnId>,
}

impl Context {
    /// Takes the entry before the last one; says whether more are needed.
    pub(crate) fn take(&mut self, item: Item) -> bool {
        let (pos, turn) = (item.head().pos, item.head().turn);
        if let Some(up_to) = self.up_to {
            if pos <= up_to {
                // Items lie in order of their places but for those of one turn: past it there is nothing left.
                return match (self.border, turn) {
                    (Some(border), Some(turn)) => border == turn,
                    _ => {
                        self.border = turn;
                        true
                    }
                };
            }
        } else if let Some(Ok(summary)) = item.body::<ContextSummary>() {
            self.up_to = Some(summary.up_to.min(pos));
        }
        self.items.entry(pos).or_insert(item);
        true
    }

    /// The items by `pos`.
    pub(crate) fn finish(self) -> Vec<Item> {
        let up_to = self.up_to.unwrap_or(0);
        let is_live =
            |item: &Item| item.head().pos > up_to || item.head().kind == ItemKind::ContextSummary;
        self.items.into_values().filter(is_live).collect()
    }
}

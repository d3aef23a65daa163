//! The items out of a session's stream that is read backwards.

use std::collections::{BTreeMap, BTreeSet};

use openvaala_protocol::id::{ItemId, SessionId, TurnId};
use openvaala_protocol::item::{AgentMessage, ContextSummary, Item, ItemKind, UserMessage};

use crate::context::undone_by;
use crate::dao::record::{SessionState, TurnState};

/// Collects the newest items of a session: the last one, and all since the beginning of turns that were left open.
#[derive(Debug)]
pub(crate) struct RecentItems {
    session: SessionId,
    /// The turns whose items are wanted.
    open: BTreeSet<TurnId>,
    known: BTreeSet<TurnId>,
    /// Whether an item of one of these was met.
    met_known: bool,
    /// Those of them whose first message was not met yet.
    unbegun: BTreeSet<TurnId>,
    /// Whether an item of any turn was met: what was changed between turns belongs to none.
    met_turn: bool,
    /// Whether the state says which place was taken last; else all of the last turn is wanted.
    has_last_pos: bool,
    items: Vec<Item>,
    cursor: u64,
    is_complete: bool,
}

impl RecentItems {
    /// Begins for a session and its latest turns. With `damaged`, a newer state may be lost.
    pub(crate) fn new(session: &SessionState, turns: &[TurnState], damaged: bool) -> Self {
        let open = || turns.iter().filter(|turn| turn.ended_at.is_none());
        // A crash between the end of a turn and the session's state leaves a state from before the turn's last items.
        let is_stale =
            |turn: &TurnState| turn.ended_at.is_some() && session.active_turn == Some(turn.id);
        let is_stale = turns.iter().any(is_stale);
        Self {
            session: session.id,
            open: open().map(|turn| turn.id).collect(),
            unbegun: open().map(|turn| turn.id).collect(),
            known: turns.iter().map(|turn| turn.id).collect(),
            met_known: false,
            met_turn: false,
            has_last_pos: session.last_pos > 0 && !damaged && !is_stale,
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
        let turn = item.head().turn;
        let is_last = !self.met_turn;
        self.met_turn |= turn.is_some();
        if let Some(turn) = turn {
            let is_known = self.known.contains(&turn);
            self.met_known |= is_known;
            // Items are written before states: after a crash the last turns may be there without their states.
            let may_lack_state = !is_known && (!self.met_known || !self.unbegun.is_empty());
            if may_lack_state || (is_last && !(is_known && self.has_last_pos)) {
                self.want(turn);
            }
        }
        let is_other = turn.is_some_and(|turn| !self.open.contains(&turn));
        let is_over = is_other && self.unbegun.is_empty();
        if !is_over || is_last || !self.has_last_pos {
            self.begun_by(&item);
            self.items.push(item);
        }
        let is_settled = self.open.is_empty() && self.has_last_pos && self.met_turn;
        self.is_complete = is_over || is_settled;
        !self.is_complete
    }

    fn want(&mut self, turn: TurnId) {
        if self.open.insert(turn) {
            self.unbegun.insert(turn);
        }
    }

    fn begun_by(&mut self, item: &Item) {
        let begins = match item.head().kind {
            ItemKind::UserMessage => is_no_steer(item.body::<UserMessage>(), |body| body.steer),
            ItemKind::AgentMessage => is_no_steer(item.body::<AgentMessage>(), |body| body.steer),
            _ => false,
        };
        if let (Some(turn), true) = (item.head().turn, begins) {
            self.unbegun.remove(&turn);
        }
    }

    /// The items, oldest entry first.
    pub(crate) fn finish(mut self) -> Vec<Item> {
        self.items.reverse();
        self.items
    }
}

/// Whether a message has begun a turn; one that was read in the middle of it has not.
fn is_no_steer<B, E>(body: Option<Result<B, E>>, is_steer: impl Fn(&B) -> bool) -> bool {
    matches!(body, Some(Ok(body)) if !is_steer(&body))
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
    /// Summaries that count no longer.
    undone: BTreeSet<ItemId>,
}

impl Context {
    /// Takes the entry before the last one; says whether more are needed.
    pub(crate) fn take(&mut self, item: Item) -> bool {
        let (pos, turn) = (item.head().pos, item.head().turn);
        self.undone.extend(undone_by(&item));
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
        } else if let Some(Ok(summary)) = item.body::<ContextSummary>()
            && !self.undone.contains(&item.head().id)
        {
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

//! Where a session can be cut: behind any item, but not between a call and its result nor in a turn that runs.

use std::collections::{BTreeMap, HashMap};

use openvaala_protocol::id::{ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Item, ToolCall, ToolResult};

use crate::error::RuntimeError;

/// A place that a session can be cut at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Cut {
    /// The last item before it.
    pub(crate) item: ItemId,
    pub(crate) pos: u64,
    /// The turn that it divides.
    pub(crate) within: Option<TurnId>,
}

/// All places of a session, and which of them it can be cut at.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    /// The items by `pos`, with their turns.
    items: BTreeMap<u64, (ItemId, Option<TurnId>)>,
    calls: HashMap<ItemId, u64>,
    /// The places of calls and of their results.
    pairs: BTreeMap<u64, u64>,
    /// The last place of each turn.
    ends: HashMap<TurnId, u64>,
    /// The first place of each turn.
    begins: HashMap<TurnId, u64>,
    /// Where the turn begins that runs, or may.
    running: Option<u64>,
}

impl Cuts {
    /// Takes the next item of the log.
    pub(super) fn take(&mut self, item: &Item) {
        let head = item.head();
        let pos = head.pos;
        self.items.entry(pos).or_insert((head.id, head.turn));
        if let Some(turn) = head.turn {
            let end = self.ends.entry(turn).or_insert(pos);
            *end = pos.max(*end);
            let begin = self.begins.entry(turn).or_insert(pos);
            *begin = pos.min(*begin);
        }
        if item.body::<ToolCall>().is_some() {
            self.calls.insert(head.id, pos);
        }
        if let Some(Ok(result)) = item.body::<ToolResult>()
            && let Some(call) = self.calls.get(&result.call)
        {
            let end = self.pairs.entry(*call).or_insert(pos);
            *end = pos.max(*end);
        }
    }

    /// All items are taken; `has_ended` tells of a turn whether its end is known.
    ///
    /// The states are older than the items, so several turns at the end may have begun since. One whose state was lost
    /// stands in no way once a turn has ended after it.
    pub(super) fn finish(&mut self, has_ended: impl Fn(TurnId) -> bool) {
        let turns = self.items.values().rev().filter_map(|(_, turn)| *turn);
        let running = turns.take_while(|turn| !has_ended(*turn)).last();
        self.running = running.and_then(|turn| self.begins.get(&turn).copied());
    }

    /// The place behind an item, or the last one that there is.
    pub(super) fn at(&self, item: Option<ItemId>, session: SessionId) -> Result<Cut, RuntimeError> {
        let places = self.places();
        let Some(item) = item else {
            let last = places.iter().rev().find(|(_, why)| why.is_none());
            return last.map(|(cut, _)| *cut).ok_or_else(|| {
                let message =
                    "there is nothing to fork: no turn has ended in this session".to_owned();
                RuntimeError::InvalidInput { message }
            });
        };
        let Some(at) = places.iter().position(|(cut, _)| cut.item == item) else {
            let message = format!("session {session} has no item {item}");
            return Err(RuntimeError::InvalidInput { message });
        };
        let (cut, Some(why)) = places[at] else {
            return Ok(places[at].0);
        };
        let valid = |(_, why): &&(Cut, Option<&str>)| why.is_none();
        let before = places[..at].iter().rev().find(valid);
        let after = places[at..].iter().find(valid);
        Err(RuntimeError::InvalidCut {
            item: cut.item,
            why: why.to_owned(),
            before: before.map(|(cut, _)| cut.item),
            after: after.map(|(cut, _)| cut.item),
        })
    }

    /// All places in order, and why a session cannot be cut there.
    fn places(&self) -> Vec<(Cut, Option<&'static str>)> {
        let mut pairs = self.pairs.iter().peekable();
        let mut open_until = 0;
        // What was changed while a turn ran belongs to none, but has one around it.
        let mut around = None;
        let mut places = Vec::with_capacity(self.items.len());
        for (pos, (item, turn)) in &self.items {
            while let Some((_, result)) = pairs.next_if(|(call, _)| *call <= pos) {
                open_until = open_until.max(*result);
            }
            around = turn.or(around);
            let why = if self.running.is_some_and(|begin| begin <= *pos) {
                Some("it lies in a turn that runs")
            } else if open_until > *pos {
                Some("it would separate a tool call from its result")
            } else {
                None
            };
            let is_divided = |turn: &TurnId| self.ends.get(turn).is_some_and(|end| end > pos);
            let cut = Cut {
                item: *item,
                pos: *pos,
                within: around.filter(is_divided),
            };
            places.push((cut, why));
        }
        places
    }
}

#[cfg(test)]
mod tests;

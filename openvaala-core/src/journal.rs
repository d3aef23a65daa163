//! What a machine wants written down, and what may only happen once it is.
//!
//! One commit is in flight at a time; what comes meanwhile merges into the next. Effects that rest on something
//! written wait here until the commit with it has come back.

use openvaala_protocol::item::Item;

use crate::dao::record::State;

/// Items and states that are flushed together: items first, then states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    pub(crate) states: Vec<State>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.states.is_empty()
    }
}

/// A numbered batch on its way to the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Commit {
    pub(crate) n: u64,
    pub(crate) batch: Batch,
}

/// The order book of one machine.
#[derive(Debug)]
pub(crate) struct Journal<E> {
    last: u64,
    in_flight: Option<(u64, Vec<E>)>,
    batch: Batch,
    waiting: Vec<E>,
    ready: Vec<E>,
}

impl<E> Journal<E> {
    pub(crate) const fn new() -> Self {
        let batch = Batch {
            items: Vec::new(),
            states: Vec::new(),
        };
        Self {
            last: 0,
            in_flight: None,
            batch,
            waiting: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Adds an item to the next commit.
    pub(crate) fn item(&mut self, item: Item) {
        self.batch.items.push(item);
    }

    /// Adds a state to the next commit; it takes the place of an older state of the same thing.
    pub(crate) fn state(&mut self, state: State) {
        self.batch.states.retain(|old| !same_thing(old, &state));
        self.batch.states.push(state);
    }

    /// Does something once all that was added so far is written.
    pub(crate) fn then(&mut self, effect: E) {
        if !self.batch.is_empty() {
            self.waiting.push(effect);
        } else if let Some((_, waiting)) = &mut self.in_flight {
            waiting.push(effect);
        } else {
            self.ready.push(effect);
        }
    }

    /// Does something at once.
    pub(crate) fn now(&mut self, effect: E) {
        self.ready.push(effect);
    }

    /// Takes what is to be done now: effects that wait for nothing, and at most one commit.
    pub(crate) fn flush(&mut self, commit: impl FnOnce(Commit) -> E) -> Vec<E> {
        let mut effects = std::mem::take(&mut self.ready);
        if self.in_flight.is_none() && !self.batch.is_empty() {
            self.last += 1;
            self.in_flight = Some((self.last, std::mem::take(&mut self.waiting)));
            effects.push(commit(Commit {
                n: self.last,
                batch: std::mem::take(&mut self.batch),
            }));
        }
        effects
    }

    /// Takes only the effects that wait for nothing.
    pub(crate) fn flush_ready(&mut self) -> Vec<E> {
        std::mem::take(&mut self.ready)
    }

    /// Takes note that a commit is on disk: what waited for it is done now.
    pub(crate) fn committed(&mut self, n: u64) {
        if let Some((_, waiting)) = self.in_flight.take_if(|(number, _)| *number == n) {
            self.ready.extend(waiting);
        }
    }

    /// Takes note that a commit failed: forgets it, all that came after it, and what waited for them.
    ///
    /// Gives what will now not happen, so that whoever waits for a reply can be told.
    pub(crate) fn failed(&mut self, n: u64) -> Vec<E> {
        let Some((_, mut dropped)) = self.in_flight.take_if(|(number, _)| *number == n) else {
            return Vec::new();
        };
        self.batch = Batch::default();
        dropped.append(&mut self.waiting);
        dropped
    }
}

fn same_thing(a: &State, b: &State) -> bool {
    match (a, b) {
        (State::Conversation(a), State::Conversation(b)) => a.id == b.id,
        (State::Session(a), State::Session(b)) => a.id == b.id,
        (State::Turn(a), State::Turn(b)) => a.id == b.id,
        _ => false,
    }
}

//! The latest states out of a metadata stream that is read backwards.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use openvaala_protocol::id::{ItemId, SessionId, TurnId};
use openvaala_storage::{Entry as LogEntry, EntryData};

use crate::dao::query::States;
use crate::dao::record::{ReadState, SessionState, State, TurnState};

/// The latest states, and how far back they lie.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LatestStates {
    /// Of the turns at least those that may still run, and the last one of each session.
    pub(crate) states: States,
    /// The number of the entry with the conversation's state.
    pub(crate) conversation_seq: u64,
    /// The inputs of all turns that were met, by session.
    pub(crate) inputs: BTreeMap<SessionId, HashSet<ItemId>>,
}

impl LatestStates {
    /// Where all states were read.
    pub(crate) fn of_all(states: States) -> Self {
        let mut inputs: BTreeMap<SessionId, HashSet<ItemId>> = BTreeMap::new();
        for turn in states.turns.values() {
            let taken = inputs.entry(turn.session_id).or_default();
            taken.extend(turn.inputs.iter().copied());
        }
        Self {
            // It is written again soon.
            conversation_seq: 0,
            inputs,
            states,
        }
    }
}

/// Takes in a metadata stream from its end.
#[derive(Debug)]
pub(super) struct Backwards {
    latest: LatestStates,
    /// Whether it is known that the conversation was not deleted after its last state, or that it was.
    decided: bool,
    with_items: BTreeSet<SessionId>,
    /// The last turn of each session.
    last_turns: BTreeMap<SessionId, TurnId>,
    /// What was met that is gone: sessions and turns, by their text.
    gone: HashSet<(String, String)>,
}

impl Backwards {
    pub(super) fn new(with_items: BTreeSet<SessionId>) -> Self {
        Self {
            latest: LatestStates::default(),
            decided: false,
            with_items,
            last_turns: BTreeMap::new(),
            gone: HashSet::new(),
        }
    }

    /// Takes the entry before the last one; says whether more are needed.
    pub(super) fn take(&mut self, entry: &LogEntry) -> bool {
        let states = &mut self.latest.states;
        states.last = states.last.max(entry.seq);
        let data = match &entry.data {
            EntryData::Json(data) => data,
            EntryData::Damaged(damage) => {
                states.damaged.push(format!(
                    "metadata entry {} ({} bytes at {}): {}",
                    entry.seq, damage.length, damage.offset, damage.reason
                ));
                return true;
            }
            // A later kind of entry is left alone.
            _ => return true,
        };
        match ReadState::parse(data) {
            Ok(ReadState::State(state)) => self.state(entry.seq, *state),
            Ok(ReadState::Deleted { kind, id, .. }) => self.deleted(kind, id),
            Ok(ReadState::Restored) => self.decided = true,
            Ok(ReadState::Newer { format }) => {
                states.newer = states.newer.max(Some(format));
            }
            Ok(ReadState::Foreign) => {}
            Err(error) => states
                .damaged
                .push(format!("metadata entry {}: {error}", entry.seq)),
        }
        !self.is_complete()
    }

    fn state(&mut self, seq: u64, state: State) {
        match state {
            State::Conversation(state) => {
                self.decided = true;
                if self.latest.states.conversation.is_none() {
                    self.latest.conversation_seq = seq;
                    self.latest.states.conversation = Some(state);
                }
            }
            State::Session(state) => self.session(state),
            State::Turn(state) => self.turn(state),
        }
    }

    fn session(&mut self, state: SessionState) {
        let known = &mut self.latest.states.sessions;
        if known.contains_key(&state.id) || self.is_gone("session", &state.id.to_string()) {
            return;
        }
        self.latest.states.sessions.insert(state.id, state);
    }

    fn turn(&mut self, state: TurnState) {
        let inputs = self.latest.inputs.entry(state.session_id).or_default();
        inputs.extend(state.inputs.iter().copied());
        let known = self.latest.states.turns.contains_key(&state.id);
        if known || self.is_gone("turn", &state.id.to_string()) {
            return;
        }
        self.last_turns.entry(state.session_id).or_insert(state.id);
        self.latest.states.turns.insert(state.id, state);
    }

    fn deleted(&mut self, kind: String, id: String) {
        if kind != "conversation" {
            self.gone.insert((kind, id));
        } else if !self.decided {
            (self.decided, self.latest.states.deleted) = (true, true);
        }
    }

    fn is_gone(&self, kind: &str, id: &str) -> bool {
        self.gone.contains(&(kind.to_owned(), id.to_owned()))
    }

    fn is_complete(&self) -> bool {
        let states = &self.latest.states;
        if states.deleted {
            return true;
        }
        let Some(conversation) = &states.conversation else {
            return false;
        };
        let has_state = |id: &SessionId| {
            states.sessions.contains_key(id) || self.is_gone("session", &id.to_string())
        };
        let has_turn = |id: &SessionId| {
            self.last_turns.contains_key(id) || self.is_gone("session", &id.to_string())
        };
        let has_active = |session: &SessionState| {
            session.active_turn.is_none_or(|id| {
                states.turns.contains_key(&id) || self.is_gone("turn", &id.to_string())
            })
        };
        has_state(&conversation.root_session)
            && conversation.children.iter().all(has_state)
            && self
                .with_items
                .iter()
                .all(|id| has_state(id) && has_turn(id))
            && states.sessions.values().all(has_active)
    }

    pub(super) fn finish(mut self) -> LatestStates {
        self.latest.states.damaged.reverse();
        let sessions = &self.latest.states.sessions;
        let active = sessions.values().filter_map(|session| session.active_turn);
        // A turn that another one of its session has followed has ended, whatever its last readable state says.
        let wanted: BTreeSet<TurnId> = active.chain(self.last_turns.into_values()).collect();
        self.latest.states.turns.retain(|id, turn| {
            let is_told = wanted.contains(id) || turn.ended_at.is_some();
            is_told && sessions.contains_key(&turn.session_id)
        });
        self.latest.inputs.retain(|id, _| sessions.contains_key(id));
        self.latest
    }
}

/// The inputs that a session has ever accepted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Accepted {
    /// Those that its turns have taken.
    pub(crate) taken: HashSet<ItemId>,
    /// Those that have waited in its queue or were withdrawn from it; some of them were taken later.
    pub(crate) queued: HashSet<ItemId>,
}

impl Accepted {
    /// Takes in an entry of the metadata stream.
    pub(crate) fn take(&mut self, entry: &LogEntry, session: SessionId) {
        let EntryData::Json(data) = &entry.data else {
            return;
        };
        let Ok(ReadState::State(state)) = ReadState::parse(data) else {
            return;
        };
        match *state {
            State::Turn(turn) if turn.session_id == session => self.taken.extend(turn.inputs),
            State::Session(state) if state.id == session => {
                let waiting = state.queue.into_iter().map(|input| input.item_id);
                self.queued.extend(waiting.chain(state.withdrawn));
            }
            _ => {}
        }
    }
}

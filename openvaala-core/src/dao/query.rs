//! The read side: what the log says of a conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use openvaala_protocol::conversation::{Conversation, ModelRef, Session, Turn};
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, SessionId, TurnId};
use openvaala_protocol::item::Item;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{Entry as LogEntry, EntryData, Error, LogStorage, ReadOptions, StreamKey};

use super::record::{ConversationState, FORMAT, ReadState, SessionState, State, TurnState};
use super::{conversation_path, items_key, metadata_key, salvage};
use crate::error::RuntimeError;

/// How many entries are read at a time.
const PAGE: usize = 1_000;

/// The latest states of a conversation and all that is in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct States {
    pub(crate) conversation: Option<ConversationState>,
    pub(crate) sessions: BTreeMap<SessionId, SessionState>,
    pub(crate) turns: BTreeMap<TurnId, TurnState>,
    /// The number of the last entry that was read.
    pub(crate) last: u64,
    /// What could not be read, a line each.
    pub(crate) damaged: Vec<String>,
    pub(crate) deleted: bool,
    /// The newest format of its entries, if this version does not know it.
    pub(crate) newer: Option<u32>,
    /// The conversation whose states these are, if it is not the one that the directory is named after.
    pub(crate) foreign: Option<ConversationId>,
    /// When the first and the last entry that can be read were written.
    pub(crate) times: Option<(Timestamp, Timestamp)>,
}

impl States {
    pub(crate) fn wire_sessions(&self) -> Vec<Session> {
        let root = self
            .conversation
            .as_ref()
            .map(|conversation| conversation.root_session);
        let mut sessions: Vec<Session> =
            self.sessions.values().map(SessionState::to_wire).collect();
        sessions.sort_by_key(|session| (Some(session.id) != root, session.created_at, session.id));
        sessions
    }

    pub(crate) fn wire_turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = self.turns.values().map(TurnState::to_wire).collect();
        turns.sort_by_key(|turn| (turn.started_at, turn.id));
        turns
    }

    pub(crate) fn wire_conversation(&self) -> Option<Conversation> {
        if self.deleted {
            return None;
        }
        let mut conversation = self.conversation.as_ref()?.to_wire(&self.wire_sessions());
        conversation.damaged = self.damage();
        Some(conversation)
    }

    /// What of the conversation cannot be read, in one line; `None` if all can.
    pub(crate) fn damage(&self) -> Option<String> {
        if let Some(other) = self.foreign {
            return Some(format!(
                "its directory holds conversation {other}: give the directory that name to have it back"
            ));
        }
        if let Some(format) = self.newer {
            return Some(format!(
                "it was written by a newer version (format {format}, this one knows up to {FORMAT}): \
                 open it with that version"
            ));
        }
        let first = self.damaged.last()?;
        Some(match self.damaged.len() {
            1 => first.clone(),
            more => format!("{first}, and {} more", more - 1),
        })
    }

    /// Refuses what a newer version has written, or what belongs to another conversation.
    pub(crate) fn check_own(&self, id: ConversationId) -> Result<(), RuntimeError> {
        let is_own = self.newer.is_none() && self.foreign.is_none();
        match self.damage() {
            Some(message) if !is_own => Err(RuntimeError::Unreadable {
                what: format!("conversation {id}"),
                message,
            }),
            _ => Ok(()),
        }
    }

    /// Looks whether these are states of that conversation.
    pub(super) fn check_id(&mut self, id: ConversationId) {
        let own = self.conversation.as_ref().map(|state| state.id);
        let of_sessions = self.sessions.values().map(|state| state.conversation_id);
        self.foreign = own
            .into_iter()
            .chain(of_sessions)
            .find(|found| *found != id);
        if let (Some(_), Some(conversation)) = (self.foreign, &mut self.conversation) {
            conversation.id = id;
        }
    }

    /// Takes in one entry of the metadata stream; the last state of a thing wins.
    pub(super) fn take(&mut self, entry: &LogEntry) {
        self.last = self.last.max(entry.seq);
        let data = match &entry.data {
            EntryData::Json(data) => data,
            EntryData::Damaged(damage) => {
                self.damaged.push(format!(
                    "metadata entry {} ({} bytes at {}): {}",
                    entry.seq, damage.length, damage.offset, damage.reason
                ));
                return;
            }
            // A later kind of entry is left alone.
            _ => return,
        };
        let time = Timestamp::from_millis(entry.time);
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        match ReadState::parse(data) {
            Ok(ReadState::State(state)) => match *state {
                State::Conversation(state) => {
                    self.conversation = Some(state);
                    self.deleted = false;
                }
                State::Session(state) => {
                    self.sessions.insert(state.id, state);
                }
                State::Turn(state) => {
                    self.turns.insert(state.id, state);
                }
            },
            Ok(ReadState::Deleted { kind, id, .. }) => self.delete(&kind, &id),
            Ok(ReadState::Restored) => self.deleted = false,
            Ok(ReadState::Newer { format }) => self.newer = self.newer.max(Some(format)),
            Ok(ReadState::Foreign) => {}
            Err(error) => self
                .damaged
                .push(format!("metadata entry {}: {error}", entry.seq)),
        }
    }

    fn delete(&mut self, kind: &str, id: &str) {
        match kind {
            "conversation" => self.deleted = true,
            "session" => self.sessions.retain(|known, _| known.to_string() != id),
            "turn" => self.turns.retain(|known, _| known.to_string() != id),
            _ => {}
        }
    }
}

/// Reads every state of a conversation; `None` if there is no such conversation.
pub(crate) async fn states(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
) -> Result<Option<States>, Error> {
    let mut states = States::default();
    let found = each(log, &metadata_key(id)?, |entry| states.take(&entry)).await?;
    states.check_id(id);
    Ok(found.then_some(states))
}

/// A page of a session's log as clients see it.
pub(crate) async fn page(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
    options: ReadOptions,
) -> Result<(Vec<Entry>, Option<u64>), Error> {
    match log.read(&items_key(id, session)?, options).await {
        Ok(page) => {
            let entries = page
                .entries
                .into_iter()
                .map(|entry| wire_entry(session, entry));
            Ok((entries.collect(), page.next))
        }
        Err(Error::NotFound { .. }) => Ok((Vec::new(), None)),
        Err(error) => Err(error),
    }
}

/// A page of the metadata stream as clients see it.
pub(crate) async fn metadata_page(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    options: ReadOptions,
) -> Result<(Vec<Entry>, Option<u64>), Error> {
    let page = log.read(&metadata_key(id)?, options).await?;
    let entries = page.entries.into_iter().filter_map(|entry| {
        let EntryData::Json(data) = &entry.data else {
            return None;
        };
        let Ok(ReadState::State(state)) = ReadState::parse(data) else {
            return None;
        };
        Some(state.to_entry(entry.seq))
    });
    Ok((entries.collect(), page.next))
}

/// A line of a session's log as clients see it; one that cannot be read says so.
pub(super) fn wire_entry(session_id: SessionId, entry: LogEntry) -> Entry {
    let seq = entry.seq;
    let damaged = |message: String| Entry::Damaged {
        seq,
        session_id,
        message,
    };
    match entry.data {
        EntryData::Json(data) => match Item::from_raw(data) {
            Ok(item) => Entry::Item {
                seq,
                session_id,
                item,
            },
            Err(error) => damaged(format!("no item: {error}")),
        },
        EntryData::Damaged(damage) => damaged(format!(
            "{} bytes at {}: {}",
            damage.length, damage.offset, damage.reason
        )),
        _ => damaged("a kind of entry that this version does not know".to_owned()),
    }
}

/// Calls `visit` for every entry of a stream in order; says whether there is such a stream.
pub(super) async fn each(
    log: &Arc<dyn LogStorage>,
    key: &StreamKey,
    mut visit: impl FnMut(LogEntry),
) -> Result<bool, Error> {
    let mut cursor = 0;
    loop {
        let options = ReadOptions::default().cursor(cursor).limit(PAGE);
        let page = match log.read(key, options).await {
            Ok(page) => page,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        page.entries.into_iter().for_each(&mut visit);
        let Some(next) = page.next else {
            return Ok(true);
        };
        cursor = next;
    }
}

/// The states of a conversation; what of its own cannot be read is made up for. `None` if it is deleted or there is none.
///
/// A first message that a crash kept from reaching the disk whole leaves a directory with that message and no metadata:
/// that is no conversation. One in which more was said has lost its metadata.
pub(crate) async fn salvaged(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
) -> Result<Option<States>, Error> {
    let mut states = states(log, id).await?.unwrap_or_default();
    if states.deleted {
        return Ok(None);
    }
    if states.conversation.is_some() {
        return Ok(Some(states));
    }
    let path = conversation_path(id)?;
    let listing = log.list(Some(&path)).await?;
    if states.last == 0 {
        let mut is_left = false;
        for stream in salvage::sessions(&listing) {
            let info = log.info(&items_key(id, stream)?).await?;
            is_left |= info.is_some_and(|info| info.last > 1);
        }
        if !is_left {
            return Ok(None);
        }
    }
    salvage::conversation(&mut states, id, &listing);
    Ok(Some(states))
}

/// The states of a conversation that has to exist; what of it cannot be read is made up for as far as that goes.
///
/// A root session whose state is lost asks `model`. What a newer version has written, or belongs to another conversation,
/// is refused: it must not be written to.
pub(crate) async fn existing(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    model: ModelRef,
) -> Result<(ConversationState, States), RuntimeError> {
    let Some(mut states) = salvaged(log, id).await? else {
        return Err(RuntimeError::ConversationNotFound { id });
    };
    states.check_own(id)?;
    let damaged = states.damage();
    let Some(conversation) = &mut states.conversation else {
        return Err(RuntimeError::ConversationNotFound { id });
    };
    conversation.damaged = damaged;
    let conversation = conversation.clone();
    salvage::root_session(&mut states, &conversation, model);
    Ok((conversation, states))
}

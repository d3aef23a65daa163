//! Copies the beginning of a conversation into a new one.
//!
//! Items keep their ids, and their lines their bytes: they refer to each other by id, and ids need to be unique within a
//! session only. The new session has an id of its own. Chunks of blobs keep their numbers, which items name, so the blob stream is
//! copied from its beginning. All of it is written aside and moved to its place as a whole, so that a crash leaves a whole
//! conversation or none.

mod cut;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use openvaala_protocol::conversation::{ForkOrigin, ModelRef, TurnStatus};
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Item, ItemKind};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;
use openvaala_storage::{
    EntryData, Error, LogPath, LogStorage, NewEntry, ReadOptions, StreamId, StreamKey,
};
use serde_json::Value;

pub(crate) use self::cut::Cut;
use self::cut::Cuts;
use super::query::{self, States};
use super::record::{ConversationState, SessionState, State, TurnState};
use super::{blobs_key, conversation_path, items_key, metadata_stream};
use crate::error::RuntimeError;
use crate::session::Inputs;

/// The directory in which forks are written.
const FORKS: &str = "forks";
/// How many items are read, and appended, at a time.
const ITEMS: usize = 64;
/// How many chunks of blobs are.
const CHUNKS: usize = 16;
/// How many states are appended at a time.
const STATES: usize = 256;

/// What is to be forked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) conversation: ConversationId,
    /// `None` is the root.
    pub(crate) session: Option<SessionId>,
    /// The last item to take; `None` is the last one that can be.
    pub(crate) at: Option<ItemId>,
}

/// What the new conversation is given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) id: ConversationId,
    pub(crate) session: SessionId,
    pub(crate) now: Timestamp,
    /// What a session asks whose state is lost.
    pub(crate) model: ModelRef,
}

/// Writes the new conversation.
pub(crate) async fn fork(
    log: &Arc<dyn LogStorage>,
    source: Source,
    given: Given,
) -> Result<(), RuntimeError> {
    let (conversation, states) =
        query::existing(log, source.conversation, given.model.clone()).await?;
    let session = source.session.unwrap_or(conversation.root_session);
    let Some(state) = states.sessions.get(&session) else {
        return Err(RuntimeError::SessionNotFound {
            conversation: source.conversation,
            session,
        });
    };
    let cut = cuts(log, source.conversation, session, &states)
        .await?
        .at(source.at, session)?;
    let aside: LogPath = format!("{FORKS}/{}", given.id).parse()?;
    let fork = Fork {
        log,
        from: (source.conversation, session),
        cut,
        aside: aside.clone(),
        given,
    };
    let written = fork.write(conversation, state, &states).await;
    if written.is_err()
        && let Err(error) = log.delete_path(&aside).await
    {
        tracing::warn!(%aside, %error, "a part of a fork is left; the next start removes it");
    }
    Ok(written?)
}

/// Removes what a crash has left of forks that were being written.
pub(crate) async fn remove_left(log: &Arc<dyn LogStorage>) -> Result<bool, Error> {
    log.delete_path(&FORKS.parse()?).await
}

/// Finds out where a session can be cut.
async fn cuts(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
    states: &States,
) -> Result<Cuts, Error> {
    let mut cuts = Cuts::default();
    query::each(log, &items_key(id, session)?, |entry| {
        if let Entry::Item { item, .. } = query::wire_entry(session, entry) {
            cuts.take(&item);
        }
    })
    .await?;
    // A turn without a state has begun since the states were read.
    let has_ended = |turn: TurnId| {
        let state = states.turns.get(&turn);
        state.is_some_and(|state| state.status != TurnStatus::Running)
    };
    cuts.finish(has_ended);
    Ok(cuts)
}

struct Fork<'a> {
    log: &'a Arc<dyn LogStorage>,
    from: (ConversationId, SessionId),
    cut: Cut,
    aside: LogPath,
    given: Given,
}

/// What was copied of a session.
#[derive(Default)]
struct Copied {
    last_seq: u64,
    last_pos: u64,
    inputs: HashSet<ItemId>,
    turns: BTreeMap<TurnId, Stretch>,
    /// The number of the last chunk that an item refers to.
    last_chunk: u64,
}

/// What was copied of a turn.
struct Stretch {
    last_seq: u64,
    ended_at: Timestamp,
}

impl Copied {
    fn take(&mut self, seq: u64, item: &Item) {
        let head = item.head();
        self.last_seq = seq;
        self.last_pos = self.last_pos.max(head.pos);
        if head.kind == ItemKind::UserMessage {
            self.inputs.insert(head.id);
        }
        if let Some(turn) = head.turn {
            let ended_at = head.ended_at;
            let known = self.turns.get(&turn).map(|known| known.ended_at);
            let ended_at = known.map_or(ended_at, |known| known.max(ended_at));
            let last_seq = seq;
            self.turns.insert(turn, Stretch { last_seq, ended_at });
        }
        // Few items refer to blobs: the others need not be taken apart.
        if item.raw().get().contains("\"bytes\"")
            && let Ok(value) = serde_json::from_str(item.raw().get())
        {
            self.last_chunk = self.last_chunk.max(last_chunk(&value));
        }
    }
}

/// The last chunk of all references to blobs in a value; `u64::MAX` if one of them has an open end.
fn last_chunk(value: &Value) -> u64 {
    match value {
        Value::Array(values) => values.iter().map(last_chunk).max().unwrap_or(0),
        Value::Object(fields) => {
            let number = |name: &str| fields.get(name).and_then(Value::as_u64);
            let own = match (number("first"), number("last"), number("bytes")) {
                (Some(_), Some(0), Some(_)) => u64::MAX,
                (Some(_), Some(last), Some(_)) => last,
                _ => 0,
            };
            fields.values().map(last_chunk).max().unwrap_or(0).max(own)
        }
        _ => 0,
    }
}

impl Fork<'_> {
    async fn write(
        &self,
        conversation: ConversationState,
        session: &SessionState,
        states: &States,
    ) -> Result<(), Error> {
        let copied = self.copy_items().await?;
        if copied.last_chunk > 0 {
            self.copy_chunks(copied.last_chunk).await?;
        }
        let states = self.states(&copied, conversation, session, states);
        let key = self.key(metadata_stream()?);
        for states in states.chunks(STATES) {
            let time = self.given.now.as_millis();
            let lines = states.iter().map(|state| {
                let data = state.to_raw().map_err(|source| Error::Encode { source })?;
                Ok(NewEntry::new(time, data))
            });
            let lines = lines.collect::<Result<Vec<_>, Error>>()?;
            self.log.append(&key, lines).await?;
        }
        let place = conversation_path(self.given.id)?;
        self.log.rename_path(&self.aside, &place).await?;
        Ok(())
    }

    fn key(&self, stream: StreamId) -> StreamKey {
        StreamKey::new(self.aside.clone(), stream)
    }

    /// Copies the items up to the cut, each line as it is; damaged ones are left out.
    async fn copy_items(&self) -> Result<Copied, Error> {
        let (conversation, session) = self.from;
        let from = items_key(conversation, session)?;
        let to = self.key(self.given.session.to_string().parse()?);
        let mut copied = Copied::default();
        let mut cursor = 0;
        loop {
            let options = ReadOptions::default().cursor(cursor).limit(ITEMS);
            let page = self.log.read(&from, options).await?;
            let mut lines = Vec::with_capacity(page.entries.len());
            for entry in page.entries {
                let EntryData::Json(data) = entry.data else {
                    continue;
                };
                let Ok(item) = Item::from_raw(data) else {
                    continue;
                };
                if item.head().pos <= self.cut.pos {
                    copied.take(copied.last_seq + 1, &item);
                    lines.push(NewEntry::new(entry.time, item.into_raw()));
                }
            }
            if !lines.is_empty() {
                self.log.append(&to, lines).await?;
            }
            match page.next {
                Some(next) => cursor = next,
                None => return Ok(copied),
            }
        }
    }

    /// Copies the blob stream up to a chunk, so that all keep their numbers; a damaged one leaves an empty entry.
    async fn copy_chunks(&self, last: u64) -> Result<(), Error> {
        let (conversation, session) = self.from;
        let from = blobs_key(conversation, session)?;
        let to = self.key(format!("{}.blobs", self.given.session).parse()?);
        let mut cursor = 0;
        while cursor < last {
            let options = ReadOptions::default().cursor(cursor).limit(CHUNKS);
            let page = match self.log.read(&from, options).await {
                Err(Error::NotFound { .. }) => return Ok(()),
                page => page?,
            };
            let wanted = page.entries.into_iter().filter(|entry| entry.seq <= last);
            let lines = wanted.map(|entry| match entry.data {
                EntryData::Json(data) => Ok(NewEntry::new(entry.time, data)),
                _ => {
                    let nothing =
                        serde_json::value::to_raw_value(&Value::Object(serde_json::Map::default()));
                    let data = nothing.map_err(|source| Error::Encode { source })?;
                    Ok(NewEntry::new(entry.time, data))
                }
            });
            let lines = lines.collect::<Result<Vec<_>, Error>>()?;
            if !lines.is_empty() {
                self.log.append(&to, lines).await?;
            }
            let Some(next) = page.next else {
                return Ok(());
            };
            cursor = next;
        }
        Ok(())
    }

    fn states(
        &self,
        copied: &Copied,
        conversation: ConversationState,
        session: &SessionState,
        states: &States,
    ) -> Vec<State> {
        let Given {
            id,
            session: new,
            now,
            ..
        } = self.given;
        let (source, old) = self.from;
        let known = copied.turns.iter().filter_map(|(turn, stretch)| {
            let state = states.turns.get(turn)?;
            Some(self.turn(state.clone(), stretch, copied))
        });
        let mut turns: Vec<TurnState> = known.collect();
        turns.sort_by_key(|turn| turn.last_seq);
        let usage = turns
            .iter()
            .fold(Usage::default(), |sum, turn| sum.plus(turn.usage));
        let session = SessionState {
            id: new,
            conversation_id: id,
            parent: None,
            agent: session.agent.clone(),
            model: session.model.clone(),
            approval_mode: session.approval_mode,
            // What was approved for a session counts in that one.
            approval_rules: Vec::new(),
            active_turn: None,
            queue: Vec::new(),
            held: false,
            last_pos: copied.last_pos,
            newest_input: Inputs::whole(copied.inputs.clone()).newest(),
            withdrawn: Vec::new(),
            usage,
            created_at: now,
            updated_at: now,
            context_tokens: None,
            child: None,
        };
        let conversation = ConversationState {
            id,
            root_session: new,
            created_at: now,
            updated_at: now,
            damaged: None,
            archived: false,
            children: Vec::new(),
            forked_from: Some(ForkOrigin {
                conversation_id: source,
                session_id: old,
                item_id: self.cut.item,
            }),
            ..conversation
        };
        let turns = turns.into_iter().map(State::Turn);
        let others = [State::Session(session), State::Conversation(conversation)];
        turns.chain(others).collect()
    }

    /// A turn as the new conversation has it; one that is not there as a whole ends where it was cut.
    fn turn(&self, turn: TurnState, stretch: &Stretch, copied: &Copied) -> TurnState {
        let mut turn = TurnState {
            session_id: self.given.session,
            last_seq: stretch.last_seq,
            ..turn
        };
        if self.cut.within == Some(turn.id) {
            turn.status = TurnStatus::Interrupted;
            turn.failure = None;
            turn.ended_at = Some(stretch.ended_at);
            turn.inputs.retain(|input| copied.inputs.contains(input));
            // What the part of it has used nobody knows.
            (turn.steps, turn.usage) = (0, Usage::default());
        }
        turn
    }
}

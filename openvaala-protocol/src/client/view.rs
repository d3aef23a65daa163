//! What a client knows of one conversation, kept from what the server tells.
//!
//! Pure state, the same for every client: it begins with the result of `conversation/subscribe`, takes every notice
//! in the order in which it came, and is then what a new subscription at the same cursor would give.

use std::collections::{BTreeMap, VecDeque};

use crate::conversation::{Conversation, ConversationStatus, Session, SessionStatus, Turn};
use crate::event::{Delta, Entry, Live, PartialItem, ResumeCursor, SessionSnapshot, Snapshot};
use crate::id::{ItemId, SessionId};
use crate::item::Item;
use crate::questions::OpenQuestions;
use crate::rpc::params::conversation::SubscribeResult;

/// How many entries of a session a view keeps unless somebody says otherwise; a snapshot has as many.
pub const VIEW_ITEMS: usize = 100;

/// How much text of an item that grows is kept, in bytes: its end. The server keeps at least as much.
const PARTIAL_BYTES: usize = 512 << 10;

/// What a client knows of one conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    conversation: Conversation,
    sessions: Vec<Session>,
    turns: BTreeMap<SessionId, Turn>,
    logs: BTreeMap<SessionId, Log>,
    partials: BTreeMap<ItemId, PartialItem>,
    questions: OpenQuestions,
    cursor: ResumeCursor,
    keep: usize,
}

/// The last entries of one session.
#[derive(Clone, Debug, Default, PartialEq)]
struct Log {
    entries: VecDeque<Entry>,
    before: Option<u64>,
    last: u64,
}

/// Why something that was told has no place in a view: subscribe again, without a cursor.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewFault {
    /// Entries of a session are missing.
    #[error("session {session_id}: entry {got} was told after entry {last}")]
    Missed {
        /// Whose log it is.
        session_id: SessionId,
        /// The last number that is known.
        last: u64,
        /// The number that came.
        got: u64,
    },
    /// The server gave only what was missed to a client that has seen nothing.
    #[error("a subscription that begins was answered without a snapshot")]
    NoSnapshot,
}

impl View {
    /// Begins with the answer to a subscription without a cursor; keeps the last `keep` entries of each session.
    ///
    /// # Errors
    /// [`ViewFault::NoSnapshot`] for the answer to one with a cursor.
    pub fn begin(subscribed: SubscribeResult, keep: usize) -> Result<Self, ViewFault> {
        let SubscribeResult {
            snapshot,
            partials,
            cursor,
            ..
        } = subscribed;
        let Snapshot {
            conversation,
            sessions,
        } = snapshot.ok_or(ViewFault::NoSnapshot)?;
        let mut view = Self {
            conversation,
            sessions: Vec::new(),
            turns: BTreeMap::new(),
            logs: BTreeMap::new(),
            partials: by_id(partials),
            questions: OpenQuestions::default(),
            cursor,
            keep,
        };
        for session in sessions {
            view.add(session);
        }
        Ok(view)
    }

    fn add(&mut self, snapshot: SessionSnapshot) {
        let SessionSnapshot {
            session,
            turn,
            items,
            before,
            questions,
        } = snapshot;
        for question in &questions {
            self.questions.item(session.id, question);
        }
        let last = items.last().and_then(item_seq).unwrap_or(0);
        let mut log = Log {
            entries: items.into(),
            before,
            last,
        };
        log.cut(self.keep);
        self.logs.insert(session.id, log);
        self.turns.extend(turn.map(|turn| (session.id, turn)));
        self.sessions.push(session);
    }

    /// Takes the answer to a subscription with [`cursor`](Self::cursor): what was missed, or all anew.
    ///
    /// # Errors
    /// [`ViewFault::Missed`] if the answer does not begin where this ends; the view is no use any more then.
    pub fn resume(&mut self, subscribed: SubscribeResult) -> Result<(), ViewFault> {
        if subscribed.snapshot.is_some() {
            *self = Self::begin(subscribed, self.keep)?;
            return Ok(());
        }
        self.partials = by_id(subscribed.partials);
        for entry in subscribed.entries {
            self.take(entry)?;
        }
        self.cursor = subscribed.cursor;
        Ok(())
    }

    /// Takes an entry that was told, with the cursor that came with it.
    ///
    /// # Errors
    /// [`ViewFault::Missed`] if entries between it and the one before were not told.
    pub fn entry(&mut self, entry: Entry, cursor: ResumeCursor) -> Result<(), ViewFault> {
        self.take(entry)?;
        self.cursor = cursor;
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<(), ViewFault> {
        self.questions.take(&entry);
        match entry {
            Entry::Conversation { conversation, .. } => self.conversation = conversation,
            Entry::Session { session, .. } => self.session(session),
            Entry::Turn { turn, .. } => {
                if turn.ended_at.is_some() {
                    self.partials
                        .retain(|_, partial| partial.turn_id != turn.id);
                }
                self.turns.insert(turn.session_id, turn);
            }
            Entry::Item {
                seq,
                session_id,
                ref item,
            } => {
                self.partials.remove(&item.head().id);
                return self.log(session_id, seq, entry);
            }
            Entry::Damaged {
                seq, session_id, ..
            } => return self.log(session_id, seq, entry),
        }
        Ok(())
    }

    /// Whether a conversation runs, and when it was last used, follows from its sessions.
    fn session(&mut self, session: Session) {
        let Conversation {
            status, updated_at, ..
        } = &mut self.conversation;
        *updated_at = session.updated_at.max(*updated_at);
        match self
            .sessions
            .iter_mut()
            .find(|known| known.id == session.id)
        {
            Some(known) => *known = session,
            None => self.sessions.push(session),
        }
        let running = |session: &Session| session.status == SessionStatus::Running;
        *status = if self.sessions.iter().any(running) {
            ConversationStatus::Running
        } else {
            ConversationStatus::Idle
        };
    }

    /// A session's first entries may be told before the session itself.
    fn log(&mut self, session_id: SessionId, seq: u64, entry: Entry) -> Result<(), ViewFault> {
        let log = self.logs.entry(session_id).or_default();
        let last = log.last;
        if seq <= last {
            return Ok(());
        }
        if seq > last + 1 {
            return Err(ViewFault::Missed {
                session_id,
                last,
                got: seq,
            });
        }
        log.last = seq;
        log.entries.push_back(entry);
        log.cut(self.keep);
        Ok(())
    }

    /// Takes something volatile that was told.
    pub fn live(&mut self, live: Live) {
        match live {
            Live::Started(partial) => {
                self.partials.insert(partial.item_id, partial);
            }
            Live::Delta(delta) => {
                if let Some(partial) = self.partials.get_mut(&delta.item_id) {
                    grow(partial, &delta);
                }
            }
            Live::Dropped { item_id, .. } => {
                self.partials.remove(&item_id);
            }
            Live::Degraded { .. } => {}
        }
    }

    /// The conversation.
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Its sessions, the root first.
    #[must_use]
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// The running turn of a session or, if none runs, its last one.
    #[must_use]
    pub fn turn(&self, session: SessionId) -> Option<&Turn> {
        self.turns.get(&session)
    }

    /// The last entries of a session's log that are kept, oldest first.
    pub fn entries(&self, session: SessionId) -> impl DoubleEndedIterator<Item = &Entry> {
        self.logs
            .get(&session)
            .into_iter()
            .flat_map(|log| &log.entries)
    }

    /// The questions of a session whether a tool call may run that nobody has answered, the oldest first.
    #[must_use]
    pub fn questions(&self, session: SessionId) -> Vec<Item> {
        self.questions.of(session)
    }

    /// What is still growing, by session and place.
    #[must_use]
    pub fn partials(&self) -> Vec<&PartialItem> {
        let mut partials: Vec<&PartialItem> = self.partials.values().collect();
        partials.sort_by_key(|partial| (partial.session_id, partial.pos));
        partials
    }

    /// Up to where this goes: what a client that comes back subscribes with.
    #[must_use]
    pub const fn cursor(&self) -> &ResumeCursor {
        &self.cursor
    }

    /// The view as a snapshot with at most that many entries a session: what a new subscription at the same cursor gives.
    #[must_use]
    pub fn snapshot(&self, most: usize) -> Snapshot {
        let sessions = self.sessions.iter().map(|session| {
            let mut log = self.logs.get(&session.id).cloned().unwrap_or_default();
            log.cut(most);
            SessionSnapshot {
                session: session.clone(),
                turn: self.turns.get(&session.id).cloned(),
                items: log.entries.into(),
                before: log.before,
                questions: self.questions.of(session.id),
            }
        });
        Snapshot {
            conversation: self.conversation.clone(),
            sessions: sessions.collect(),
        }
    }
}

impl Log {
    fn cut(&mut self, most: usize) {
        let over = self.entries.len().saturating_sub(most);
        if over > 0 {
            self.entries.drain(..over);
            // Reading backwards goes on before the first one that is left.
            self.before = self.entries.front().and_then(item_seq).or(self.before);
        }
    }
}

/// Adds text where it belongs; text that was left out takes what came before it along.
fn grow(partial: &mut PartialItem, delta: &Delta) {
    let end = partial.offset + partial.text.len() as u64;
    if delta.offset > end {
        partial.offset = delta.offset;
        partial.text.clear();
    }
    // What the answer to the subscription had already.
    let known = usize::try_from(end.saturating_sub(delta.offset)).unwrap_or(usize::MAX);
    let Some(text) = delta.text.get(known.min(delta.text.len())..) else {
        return;
    };
    partial.text.push_str(text);
    if partial.text.len() > 2 * PARTIAL_BYTES {
        let cut = partial
            .text
            .ceil_char_boundary(partial.text.len() - PARTIAL_BYTES);
        partial.text.drain(..cut);
        partial.offset += cut as u64;
    }
}

fn by_id(partials: Vec<PartialItem>) -> BTreeMap<ItemId, PartialItem> {
    partials
        .into_iter()
        .map(|partial| (partial.item_id, partial))
        .collect()
}

const fn item_seq(entry: &Entry) -> Option<u64> {
    match entry {
        Entry::Item { seq, .. } | Entry::Damaged { seq, .. } => Some(*seq),
        Entry::Conversation { .. } | Entry::Session { .. } | Entry::Turn { .. } => None,
    }
}

//! The conversation as a pure machine: its title, its place on disk, and what the index shall say of it.

use std::collections::BTreeMap;

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{Conversation, Session, SessionStatus};
use openvaala_protocol::id::SessionId;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::Fingerprint;

use super::ConversationChange;
use crate::dao::mutation::Stretch;
use crate::dao::record::{ConversationState, SessionState, State};
use crate::dao::tail::REFRESH_AFTER;
use crate::journal::{Commit, Journal};

/// How long a title is that is made from a message.
const TITLE_CHARS: usize = 80;

/// Names a request that waits; made by the shell.
pub(crate) type WaitId = u64;

/// What a conversation is asked or told.
#[derive(Debug)]
pub(crate) enum Event {
    /// An input is on its way to a session: forward it when the conversation is ready for it.
    Send { wait: WaitId, content: Vec<Content> },
    /// A session has written something.
    SessionChanged {
        session: Box<Session>,
        metadata: Option<Stretch>,
    },
    /// The shell's commit is on disk.
    Committed { n: u64, metadata: Stretch },
    /// The shell's commit failed.
    CommitFailed { n: u64, message: String },
    /// A session waits for the move to the real storage.
    Promote { wait: WaitId },
    /// An agent is to be started: write down its session.
    Spawn {
        wait: WaitId,
        child: Box<SessionState>,
    },
    /// The move has been tried.
    Promoted {
        fingerprint: Option<(u64, Fingerprint)>,
    },
    /// Something shall be different, and can be.
    Change {
        wait: WaitId,
        change: Box<ConversationChange>,
    },
}

/// What a conversation wants done.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Commit(Commit),
    /// Give the input to its session.
    Forward {
        wait: WaitId,
    },
    /// Tell whoever waits that it did not work.
    Refuse {
        wait: WaitId,
        message: String,
    },
    /// Move all that lies in memory to the real storage; no commit runs meanwhile.
    Promote {
        wait: WaitId,
    },
    /// Put a row into the index.
    Index {
        conversation: Box<Conversation>,
        waiting: bool,
        seq: u64,
        fingerprint: Fingerprint,
    },
    /// What was to be different is on disk.
    Changed {
        wait: WaitId,
    },
    /// The session of an agent is on disk.
    Spawned {
        wait: WaitId,
    },
}

/// One conversation.
#[derive(Debug)]
pub(crate) struct ConversationMachine {
    pub(super) state: ConversationState,
    sessions: BTreeMap<SessionId, Session>,
    pub(super) journal: Journal<Effect>,
    /// The number of the metadata entry with its state, and what is there.
    state_seq: u64,
    written: ConversationState,
    /// What the commit in flight writes.
    writing: ConversationState,
    /// The newest known end of the metadata stream.
    metadata: Option<(u64, Fingerprint)>,
    /// Up to where it is known what the metadata stream says.
    known: u64,
    /// What is known beyond that: the last number by the first.
    ahead: BTreeMap<u64, u64>,
    /// Whether it lies in memory only: then it is not in the index.
    staged: bool,
    /// Moves that wait until no commit is in flight.
    promotions: Vec<WaitId>,
    promoting: bool,
    committing: bool,
}

impl ConversationMachine {
    pub(crate) fn new(
        state: ConversationState,
        state_seq: u64,
        sessions: Vec<Session>,
        metadata: Option<(u64, Fingerprint)>,
        staged: bool,
    ) -> Self {
        Self {
            written: state.clone(),
            writing: state.clone(),
            state,
            state_seq,
            sessions: sessions
                .into_iter()
                .map(|session| (session.id, session))
                .collect(),
            journal: Journal::new(),
            known: metadata.as_ref().map_or(0, |(seq, _)| *seq),
            ahead: BTreeMap::new(),
            metadata,
            staged,
            promotions: Vec::new(),
            promoting: false,
            committing: false,
        }
    }

    pub(crate) const fn state(&self) -> &ConversationState {
        &self.state
    }

    /// The conversation as it is on disk.
    pub(crate) fn conversation(&self) -> Conversation {
        let sessions: Vec<Session> = self.sessions.values().cloned().collect();
        self.written.to_wire(&sessions)
    }

    /// The sessions as they are on disk.
    pub(crate) const fn sessions(&self) -> &BTreeMap<SessionId, Session> {
        &self.sessions
    }

    /// How many turns run.
    pub(crate) fn running(&self) -> usize {
        let running = |session: &&Session| session.status == SessionStatus::Running;
        self.sessions.values().filter(running).count()
    }

    /// Takes in one event and says what is to be done.
    pub(crate) fn on_event(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Send { wait, content } => self.send(now, wait, &content),
            Event::SessionChanged { session, metadata } => {
                self.sessions.insert(session.id, *session);
                self.saw(metadata);
                self.refresh();
                self.index();
            }
            Event::Committed { n, metadata } => {
                self.committing = false;
                self.state_seq = metadata.last;
                self.written.clone_from(&self.writing);
                self.saw(Some(metadata));
                self.journal.committed(n);
                self.index();
            }
            Event::CommitFailed { n, message } => self.commit_failed(n, &message),
            Event::Promote { wait } => self.promotions.push(wait),
            Event::Change { wait, change } => self.change(wait, *change),
            Event::Spawn { wait, child } => {
                self.state.children.push(child.id);
                self.journal.state(State::Session(*child));
                self.journal.state(State::Conversation(self.state.clone()));
                self.journal.then(Effect::Spawned { wait });
            }
            Event::Promoted { fingerprint } => {
                self.promoting = false;
                if let Some(fingerprint) = fingerprint {
                    self.staged = false;
                    self.metadata = Some(fingerprint);
                    self.index();
                }
            }
        }
        self.flush()
    }

    /// The first message names the conversation before its session sees it.
    fn send(&mut self, now: Timestamp, wait: WaitId, content: &[Content]) {
        if self.state.title.is_none()
            && let Some(title) = title(content)
        {
            self.state.title = Some(title);
            self.state.updated_at = self.state.updated_at.max(now);
            self.journal.state(State::Conversation(self.state.clone()));
        }
        self.journal.then(Effect::Forward { wait });
    }

    /// Writes the state again before it lies so far back in the log that an opening had to search for it.
    fn refresh(&mut self) {
        let last = self.metadata.as_ref().map_or(0, |(seq, _)| *seq);
        if !self.committing && last > self.state_seq + REFRESH_AFTER {
            self.journal.state(State::Conversation(self.state.clone()));
        }
    }

    /// What could not be written is not so; a title is tried again with the next message.
    fn commit_failed(&mut self, n: u64, message: &str) {
        self.committing = false;
        self.state.clone_from(&self.written);
        for effect in self.journal.failed(n) {
            if let Effect::Forward { wait } | Effect::Changed { wait } | Effect::Spawned { wait } =
                effect
            {
                self.journal.now(Effect::Refuse {
                    wait,
                    message: message.to_owned(),
                });
            }
        }
    }

    fn saw(&mut self, metadata: Option<Stretch>) {
        let Some(Stretch {
            first,
            last,
            fingerprint,
        }) = metadata
        else {
            return;
        };
        self.ahead.insert(first, last);
        while let Some(last) = self.ahead.remove(&(self.known + 1)) {
            self.known = last;
        }
        // After a move the fingerprint of the same entries is another one.
        let newest = self.metadata.as_ref().map_or(0, |(seq, _)| *seq);
        if newest < last {
            self.metadata = Some((last, fingerprint));
        }
    }

    fn index(&mut self) {
        let (false, Some((seq, fingerprint))) = (self.staged, &self.metadata) else {
            return;
        };
        let sessions: Vec<Session> = self.sessions.values().cloned().collect();
        let conversation = Box::new(self.written.to_wire(&sessions));
        let waiting = sessions.iter().any(|session| !session.pending.is_empty());
        // Between what two writers wrote something may be missing here yet: such a row is not to be taken for the newest.
        let fingerprint = if self.known < *seq {
            Fingerprint::new("")
        } else {
            fingerprint.clone()
        };
        let seq = *seq;
        self.journal.now(Effect::Index {
            conversation,
            waiting,
            seq,
            fingerprint,
        });
    }

    /// A move and a commit never run at the same time.
    fn flush(&mut self) -> Vec<Effect> {
        if self.promoting {
            return self.journal.flush_ready();
        }
        let mut effects = self.journal.flush(Effect::Commit);
        if effects
            .iter()
            .any(|effect| matches!(effect, Effect::Commit(_)))
        {
            self.committing = true;
            self.writing.clone_from(&self.state);
        }
        if !self.committing && !self.promotions.is_empty() {
            let wait = self.promotions.remove(0);
            self.promoting = true;
            effects.push(Effect::Promote { wait });
        }
        effects
    }
}

/// The first line with something on it, cut to a title's length.
fn title(content: &[Content]) -> Option<String> {
    let texts = content.iter().filter_map(Content::as_text);
    let line = texts
        .flat_map(str::lines)
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARS).collect();
    if line.chars().nth(TITLE_CHARS).is_some() {
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use openvaala_protocol::conversation::ModelRef;
    use openvaala_protocol::id::ConversationId;
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;
    use crate::dao::record::SessionState;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_000)
    }

    fn session() -> Session {
        let state = SessionState {
            id: SessionId::from_uuid(Uuid::from_u128(2)),
            conversation_id: ConversationId::from_uuid(Uuid::from_u128(1)),
            parent: None,
            agent: None,
            model: ModelRef {
                provider: "p".to_owned(),
                model: "m".to_owned(),
                effort: None,
            },
            approval_mode: None,
            approval_rules: Vec::new(),
            active_turn: None,
            queue: Vec::new(),
            held: false,
            last_pos: 0,
            newest_input: None,
            withdrawn: Vec::new(),
            usage: Default::default(),
            created_at: now(),
            updated_at: now(),
            context_tokens: None,
            child: None,
        };
        state.to_wire()
    }

    fn machine(known: u64) -> ConversationMachine {
        let state = ConversationState {
            id: ConversationId::from_uuid(Uuid::from_u128(1)),
            title: None,
            root_session: SessionId::from_uuid(Uuid::from_u128(2)),
            executors: Vec::new(),
            created_at: now(),
            updated_at: now(),
            damaged: None,
            archived: false,
            forked_from: None,
            children: Vec::new(),
        };
        let metadata = Some((known, Fingerprint::new(format!("at {known}"))));
        ConversationMachine::new(state, 1, vec![session()], metadata, false)
    }

    fn stretch(first: u64, last: u64) -> Stretch {
        let fingerprint = Fingerprint::new(format!("at {last}"));
        Stretch {
            first,
            last,
            fingerprint,
        }
    }

    fn changed(metadata: Stretch) -> Event {
        Event::SessionChanged {
            session: Box::new(session()),
            metadata: Some(metadata),
        }
    }

    /// The rows that an event leads to: the number and the fingerprint that each is made from.
    fn rows(machine: &mut ConversationMachine, event: Event) -> Vec<(u64, String)> {
        let effects = machine.on_event(now(), event).into_iter();
        let rows = effects.filter_map(|effect| match effect {
            Effect::Index {
                seq, fingerprint, ..
            } => Some((seq, fingerprint.as_str().to_owned())),
            _ => None,
        });
        rows.collect()
    }

    #[test]
    fn a_row_that_lacks_what_another_writer_wrote_before_is_looked_at_again() {
        let mut machine = machine(2);
        let written = Event::Committed {
            n: 1,
            metadata: stretch(5, 5),
        };
        assert_eq!(rows(&mut machine, written), [(5, String::new())]);
        let told = rows(&mut machine, changed(stretch(3, 4)));
        assert_eq!(told, [(5, "at 5".to_owned())]);
    }

    #[test]
    fn a_row_that_is_made_at_a_move_lacks_the_message_that_led_to_it() {
        let mut machine = machine(2);
        machine.staged = true;
        let moved = Event::Promoted {
            fingerprint: Some((4, Fingerprint::new("on disk"))),
        };
        assert_eq!(rows(&mut machine, moved), [(4, String::new())]);
        let told = rows(&mut machine, changed(stretch(3, 4)));
        assert_eq!(told, [(4, "on disk".to_owned())]);
    }
}

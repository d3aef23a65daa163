//! The states that lie in `metadata.jsonl`: the on-disk twins of conversation, session and turn.
//!
//! Each entry is `{"format":1,"kind":"session","id":"…","state":{…}}` with the full latest state; the last one of
//! an id wins. `{"format":1,"kind":"…","id":"…","deleted":true,"deleted_at":…}` deletes, the time being younger than the
//! format and perhaps absent; `{…,"deleted":false,"restored_at":…}` takes that back. What a reader does not know it leaves.

use openvaala_protocol::approval::{ApprovalMode, ApprovalRule};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{
    Conversation, ConversationStatus, ForkOrigin, ModelRef, PendingInput, Session, SessionStatus,
    Turn, TurnFailure, TurnStatus, WorkLocation,
};
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::model::OutputSchema;

/// The number of the format that this version writes.
pub(crate) const FORMAT: u32 = 1;

/// The path of the agent of the root session.
pub(crate) const MAIN: &str = "main";

/// The kind of entries about a conversation itself.
pub(crate) const CONVERSATION: &str = "conversation";

/// The newest state of something, as it goes to the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    Conversation(ConversationState),
    Session(SessionState),
    Turn(TurnState),
}

/// A conversation as it lies on disk; whether it runs and when it changed follows from its sessions.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct ConversationState {
    pub(crate) id: ConversationId,
    pub(crate) title: Option<String>,
    pub(crate) root_session: SessionId,
    pub(crate) executors: Vec<WorkLocation>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// What of it could not be read; not on disk.
    #[serde(skip)]
    pub(crate) damaged: Option<String>,
    /// Whether lists leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) archived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<ForkOrigin>,
    /// The sessions that agents have started, in the order of their start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<SessionId>,
}

/// A session as it lies on disk, its waiting inputs with it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct SessionState {
    pub(crate) id: SessionId,
    pub(crate) conversation_id: ConversationId,
    pub(crate) parent: Option<SessionId>,
    /// The agent that works in it; `None` is the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) model: ModelRef,
    /// Which calls of its next turn run without a question; `None` is what the runtime is configured to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval_mode: Option<ApprovalMode>,
    /// What its users have approved for good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approval_rules: Vec<ApprovalRule>,
    pub(crate) active_turn: Option<TurnId>,
    pub(crate) queue: Vec<QueuedInput>,
    pub(crate) held: bool,
    /// The last place that an item has taken; 0 if that is not known.
    #[serde(default)]
    pub(crate) last_pos: u64,
    /// The latest time in an id of all inputs that it ever took; an id of a later time is a new input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) newest_input: Option<Timestamp>,
    /// Inputs that were withdrawn since the state before this one: they are never taken again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) withdrawn: Vec<ItemId>,
    pub(crate) usage: Usage,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// The tokens of the last response with its request; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u64>,
    /// What it has as a session that an agent has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) child: Option<ChildState>,
}

/// What a session has that an agent has started.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct ChildState {
    /// Such as `main/review`.
    pub(crate) path: String,
    /// Whether it takes no more input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) closed: bool,
    /// The only tools that it may have; `None` for no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// Where it works; `None` where the conversation does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locations: Option<Vec<WorkLocation>>,
    /// How many tokens all its turns may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_budget: Option<u64>,
    /// How its last turns have ended, as far as whoever has started it may not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reports: Vec<Report>,
    /// Whether what it was given to begin with is summarised before anything else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) summarise: bool,
}

/// How a turn has ended, for whoever has started the session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The id that it has as a message.
    pub(crate) item_id: ItemId,
    pub(crate) ended: TurnStatus,
    pub(crate) text: String,
}

/// The agent that a message comes from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Sender {
    pub(crate) session: SessionId,
    pub(crate) path: String,
    /// How its turn has ended, if that is what the message says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<TurnStatus>,
}

/// An input that waits.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct QueuedInput {
    pub(crate) item_id: ItemId,
    pub(crate) content: Vec<Content>,
    pub(crate) steer: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<OutputSchema>,
    pub(crate) queued_at: Timestamp,
    /// The agent that has sent it; `None` if a client has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Sender>,
}

/// A turn as it lies on disk.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct TurnState {
    pub(crate) id: TurnId,
    pub(crate) session_id: SessionId,
    pub(crate) status: TurnStatus,
    pub(crate) failure: Option<TurnFailure>,
    pub(crate) inputs: Vec<ItemId>,
    /// What its last answer shall follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<OutputSchema>,
    pub(crate) model: ModelRef,
    pub(crate) executors: Vec<WorkLocation>,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    /// Filled in when the items before it are written.
    pub(crate) last_seq: u64,
}

/// The frame around a state, written.
#[derive(Serialize)]
struct Frame<'a, T> {
    format: u32,
    kind: &'static str,
    id: String,
    state: &'a T,
}

/// The frame of a deletion or of a restoration.
#[derive(Serialize)]
struct Mark {
    format: u32,
    kind: &'static str,
    id: String,
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_at: Option<Timestamp>,
}

/// The entry that deletes a conversation.
pub(crate) fn deleted(
    id: ConversationId,
    now: Timestamp,
) -> Result<Box<RawValue>, serde_json::Error> {
    to_raw_value(&Mark {
        format: FORMAT,
        kind: CONVERSATION,
        id: id.to_string(),
        deleted: true,
        deleted_at: Some(now),
        restored_at: None,
    })
}

/// The entry that takes the deletion of a conversation back.
pub(crate) fn restored(
    id: ConversationId,
    now: Timestamp,
) -> Result<Box<RawValue>, serde_json::Error> {
    to_raw_value(&Mark {
        format: FORMAT,
        kind: CONVERSATION,
        id: id.to_string(),
        deleted: false,
        deleted_at: None,
        restored_at: Some(now),
    })
}

impl State {
    pub(crate) fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let format = FORMAT;
        match self {
            Self::Conversation(state) => {
                let (kind, id) = ("conversation", state.id.to_string());
                to_raw_value(&Frame {
                    format,
                    kind,
                    id,
                    state,
                })
            }
            Self::Session(state) => {
                let (kind, id) = ("session", state.id.to_string());
                to_raw_value(&Frame {
                    format,
                    kind,
                    id,
                    state,
                })
            }
            Self::Turn(state) => {
                let (kind, id) = ("turn", state.id.to_string());
                to_raw_value(&Frame {
                    format,
                    kind,
                    id,
                    state,
                })
            }
        }
    }
}

impl State {
    /// The state as clients see it; whether a conversation runs is known only to who knows its sessions.
    pub(crate) fn to_entry(&self, seq: u64) -> Entry {
        match self {
            Self::Conversation(state) => Entry::Conversation {
                seq,
                conversation: state.to_wire(&[]),
            },
            Self::Session(state) => Entry::Session {
                seq,
                session: state.to_wire(),
            },
            Self::Turn(state) => Entry::Turn {
                seq,
                turn: state.to_wire(),
            },
        }
    }
}

/// An entry of the metadata stream as it was read.
#[derive(Debug)]
pub(crate) enum ReadState {
    State(Box<State>),
    /// Something was deleted.
    Deleted {
        kind: String,
        id: String,
        at: Option<Timestamp>,
    },
    /// The deletion of the conversation was taken back.
    Restored,
    /// A format that is newer than those of this version.
    Newer {
        format: u32,
    },
    /// A kind that this version does not know.
    Foreign,
}

impl ReadState {
    /// Reads one entry; a newer format is left alone, not guessed at.
    pub(crate) fn parse(data: &RawValue) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            format: u32,
            kind: String,
            #[serde(default)]
            id: String,
            #[serde(default)]
            deleted: Option<bool>,
            #[serde(default)]
            deleted_at: Option<Timestamp>,
            #[serde(borrow, default)]
            state: Option<&'a RawValue>,
        }
        let parts: Parts<'_> = serde_json::from_str(data.get())?;
        if parts.format > FORMAT {
            return Ok(Self::Newer {
                format: parts.format,
            });
        }
        if parts.deleted == Some(true) {
            return Ok(Self::Deleted {
                kind: parts.kind,
                id: parts.id,
                at: parts.deleted_at,
            });
        }
        if parts.deleted == Some(false) && parts.state.is_none() {
            return Ok(match parts.kind.as_str() {
                CONVERSATION => Self::Restored,
                _ => Self::Foreign,
            });
        }
        let state = parts.state.map_or("null", RawValue::get);
        let state = match parts.kind.as_str() {
            "conversation" => State::Conversation(serde_json::from_str(state)?),
            "session" => State::Session(serde_json::from_str(state)?),
            "turn" => State::Turn(serde_json::from_str(state)?),
            _ => return Ok(Self::Foreign),
        };
        Ok(Self::State(Box::new(state)))
    }
}

impl ConversationState {
    pub(crate) fn to_wire(&self, sessions: &[Session]) -> Conversation {
        let running = sessions
            .iter()
            .any(|session| session.status == SessionStatus::Running);
        let latest = sessions.iter().map(|session| session.updated_at).max();
        Conversation {
            id: self.id,
            title: self.title.clone(),
            status: if running {
                ConversationStatus::Running
            } else {
                ConversationStatus::Idle
            },
            root_session: self.root_session,
            executors: self.executors.clone(),
            created_at: self.created_at,
            updated_at: latest.map_or(self.updated_at, |latest| latest.max(self.updated_at)),
            damaged: self.damaged.clone(),
            archived: self.archived,
            forked_from: self.forked_from,
        }
    }
}

impl SessionState {
    /// Where its agent stands among those of the conversation.
    pub(crate) fn path(&self) -> &str {
        self.child.as_ref().map_or(MAIN, |child| &child.path)
    }

    pub(crate) fn to_wire(&self) -> Session {
        let running = self.active_turn.is_some();
        Session {
            id: self.id,
            conversation_id: self.conversation_id,
            parent: self.parent,
            path: self.path().to_owned(),
            closed: self.child.as_ref().is_some_and(|child| child.closed),
            agent: self.agent.clone(),
            model: self.model.clone(),
            approval_mode: self.approval_mode,
            status: if running {
                SessionStatus::Running
            } else {
                SessionStatus::Idle
            },
            active_turn: self.active_turn,
            pending: self.queue.iter().map(QueuedInput::to_wire).collect(),
            held: self.held,
            usage: self.usage,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// How much of an input a client sees while it waits.
const PREVIEW_CHARS: usize = 200;

impl QueuedInput {
    pub(crate) fn to_wire(&self) -> PendingInput {
        let texts = self.content.iter().filter_map(Content::as_text);
        let preview = texts.flat_map(str::chars).take(PREVIEW_CHARS).collect();
        let images = self
            .content
            .iter()
            .filter(|piece| piece.as_text().is_none())
            .count();
        PendingInput {
            item_id: self.item_id,
            preview,
            image_count: u32::try_from(images).unwrap_or(u32::MAX),
            is_steer: self.steer,
            from: self.from.as_ref().map(|from| from.session),
        }
    }
}

impl TurnState {
    pub(crate) fn to_wire(&self) -> Turn {
        Turn {
            id: self.id,
            session_id: self.session_id,
            status: self.status,
            failure: self.failure.clone(),
            inputs: self.inputs.clone(),
            model: self.model.clone(),
            executors: self.executors.clone(),
            steps: self.steps,
            usage: self.usage,
            started_at: self.started_at,
            ended_at: self.ended_at,
            last_seq: self.last_seq,
        }
    }
}

//! Conversations, their sessions and their turns, as clients see them.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalMode;
use crate::id::{ConversationId, ExecutorId, ItemId, SessionId, TurnId};
use crate::time::Timestamp;
use crate::usage::Usage;

/// One task that somebody works on with agents.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Conversation {
    /// Its id; also the name of its directory.
    pub id: ConversationId,
    /// A line that tells it from others: at first the beginning of its first message.
    pub title: Option<String>,
    /// Whether any of its sessions runs a turn.
    pub status: ConversationStatus,
    /// The session that its user talks to.
    pub root_session: SessionId,
    /// Where its tools run.
    pub executors: Vec<WorkLocation>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When something was last said or done in it.
    pub updated_at: Timestamp,
    /// What of it cannot be read and why, if its log is damaged; the rest is shown as it was last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// Whether lists leave it out, unless they are asked for those that are archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub archived: bool,
    /// Where it was forked from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
}

/// The place in another conversation that one was forked from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct ForkOrigin {
    /// The other conversation; it may be gone by now.
    pub conversation_id: ConversationId,
    /// The session there.
    pub session_id: SessionId,
    /// The last item that both have.
    pub item_id: ItemId,
}

/// Whether a conversation is at work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConversationStatus {
    /// No turn runs.
    Idle,
    /// At least one turn runs.
    Running,
}

/// An executor and the folder on it that a conversation works in.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct WorkLocation {
    /// Which executor.
    pub executor: ExecutorId,
    /// The working directory there, absolute.
    pub root: String,
}

/// A model as a session names it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name at that provider.
    pub model: String,
    /// How hard it shall think, in the provider's words; `None` leaves it to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// One agent's line of work in a conversation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Session {
    /// Its id; also the name of its log.
    pub id: SessionId,
    /// The conversation that it belongs to.
    pub conversation_id: ConversationId,
    /// The session that started it; `None` for the root.
    pub parent: Option<SessionId>,
    /// Where its agent stands among those of the conversation: `main`, `main/review`, `main/review/tests`.
    #[serde(default = "main_path")]
    #[cfg_attr(feature = "schema", ts(as = "Option<String>", optional))]
    pub path: String,
    /// Whether its agent was closed: it takes no more input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub closed: bool,
    /// The agent that works in it; `None` for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that its next turn asks.
    pub model: ModelRef,
    /// Which tool calls of its next turn run without a question; `None` means as the runtime is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// Whether it runs a turn.
    pub status: SessionStatus,
    /// The turn that runs now.
    pub active_turn: Option<TurnId>,
    /// Inputs that wait, in the order in which they will be taken.
    pub pending: Vec<PendingInput>,
    /// Whether waiting inputs stay until the next send, because the last turn was interrupted or failed.
    pub held: bool,
    /// Tokens used by all its turns.
    pub usage: Usage,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// The path of the agent of the root session.
fn main_path() -> String {
    "main".to_owned()
}

/// Whether a session is at work.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SessionStatus {
    /// No turn runs.
    Idle,
    /// A turn runs.
    Running,
    /// Its log cannot be written: what was said is kept, nothing new is accepted.
    Degraded,
}

/// An input that waits for its turn.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct PendingInput {
    /// The id that it will have as an item.
    pub item_id: ItemId,
    /// The beginning of its text, at most 200 characters.
    pub preview: String,
    /// How many images it carries.
    pub image_count: u32,
    /// Whether it waits for the running turn, not for the next.
    pub is_steer: bool,
    /// The session whose agent has sent it; `None` if a client has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub from: Option<SessionId>,
}

/// One run of an agent, started by one input.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Whether it runs, or how it ended.
    pub status: TurnStatus,
    /// Why it failed, if it did.
    pub failure: Option<TurnFailure>,
    /// The inputs that it has taken, the one that started it first.
    pub inputs: Vec<ItemId>,
    /// The model that it asked.
    pub model: ModelRef,
    /// Where its tools ran.
    pub executors: Vec<WorkLocation>,
    /// How many model responses it has taken.
    pub steps: u32,
    /// Tokens used so far.
    pub usage: Usage,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The number of the last entry in its session's log when this state was written.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub last_seq: u64,
}

/// Whether a turn runs, or how it ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnStatus {
    /// It runs.
    Running,
    /// The model said all it wanted to say.
    Completed,
    /// It could not go on.
    Failed,
    /// It was ended before its time.
    Interrupted,
}

/// Why a turn failed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct TurnFailure {
    /// What kind of trouble it was.
    pub kind: TurnFailureKind,
    /// What happened and what to do about it.
    pub message: String,
}

/// What kind of trouble ended a turn.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnFailureKind {
    /// The model could not be asked, or its answer could not be used.
    Model,
    /// The model or its provider refused to answer.
    Refused,
    /// The turn took more steps than a turn may.
    StepLimit,
    /// The same tool call had the same result too often in a row.
    RepeatLimit,
    /// What happened could not be written down.
    Storage,
    /// A fault in the runtime.
    Internal,
    /// The conversation does not fit into the model's window, and could not be made shorter.
    Context,
    /// The agent has used all tokens that it was given.
    Budget,
}

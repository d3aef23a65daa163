//! `conversation/update`, `session/update` and `conversation/fork`: changes of a conversation that there is.

use serde::{Deserialize, Serialize};

use crate::conversation::{Conversation, ModelRef, Session, WorkLocation};
use crate::id::{ConversationId, ItemId, SessionId};

/// Parameters of `conversation/update`; what is left out stays.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
#[serde(deny_unknown_fields)]
pub struct ConversationUpdateParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Its title from now on: one line of at most 200 characters.
    #[serde(default)]
    pub title: Option<String>,
    /// Whether `conversation/list` leaves it out, unless it is asked for those that are archived.
    #[serde(default)]
    pub archived: Option<bool>,
    /// Where its tools run from the next turn on; an empty list means nowhere.
    #[serde(default)]
    pub executors: Option<Vec<WorkLocation>>,
}

/// Result of `conversation/update`: the change is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct ConversationUpdateResult {
    /// The conversation as it is now.
    pub conversation: Conversation,
}

/// Parameters of `session/update`; what is left out stays.
///
/// It counts from the next turn on: one that runs ends with what it began with.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
#[serde(deny_unknown_fields)]
pub struct SessionUpdateParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The model that it asks; without an `effort` that is left to the provider.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// How hard the model shall think, in the provider's words; the empty text leaves it to the provider.
    #[serde(default)]
    pub effort: Option<String>,
    /// The name of the agent that works in it; the empty text means the default one. It keeps the session's model.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Result of `session/update`: the change is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct SessionUpdateResult {
    /// The session as it is now.
    pub session: Session,
}

/// Parameters of `conversation/fork`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationForkParams"),
    ts(rename = "ConversationForkParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ForkParams {
    /// The conversation to begin from; nothing of it changes.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The last item that the new conversation has; `None` means all that was said and done, but for a turn that runs.
    ///
    /// It must not lie between a tool call and its result, nor in a turn that runs.
    #[serde(default)]
    pub item_id: Option<ItemId>,
    /// The id of the new conversation, chosen by the client, a UUID best of version 7; `None` means one that nobody has.
    ///
    /// With it a request whose answer was lost can be sent again: if there is a conversation of that id, the answer is that one
    /// as it is now, whatever else is asked for.
    #[serde(default)]
    pub new_id: Option<ConversationId>,
}

/// Result of `conversation/fork`: the new conversation is on disk as a whole.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationForkResult"),
    ts(rename = "ConversationForkResult")
)]
pub struct ForkResult {
    /// The new conversation.
    pub conversation: Conversation,
    /// Its root session.
    pub session: Session,
}

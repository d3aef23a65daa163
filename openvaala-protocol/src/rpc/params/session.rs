//! `session/…`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::approval::ApprovalMode;
use crate::content::{BlobRef, Content};
use crate::conversation::Session;
use crate::event::Entry;
use crate::id::{ConversationId, ItemId, SessionId, TurnId};

/// Parameters of `session/send`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionSendParams"),
    ts(rename = "SessionSendParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The id that the input will have as an item, made by the client.
    pub item_id: ItemId,
    /// Text and images; at least one piece.
    pub content: Vec<Content>,
    /// What to do if a turn runs.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub mode: SendMode,
    /// A JSON Schema that the final answer of the turn shall follow; a JSON object.
    ///
    /// It counts for the turn that this input starts; an input that a running turn reads does not change that turn's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<serde_json::Map<String, serde_json::Value>>"),
        ts(type = "Record<string, unknown> | null", optional)
    )]
    pub output_schema: Option<Box<RawValue>>,
    /// Which tool calls of this session run without a question from its next turn on; `None` leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
}

/// What to do with an input if a turn runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SendMode {
    /// It waits and starts a later turn.
    #[default]
    Queue,
    /// The running turn reads it before its next model request; it waits if that turn ends first.
    Steer,
    /// It is refused with `session_busy`.
    IdleOnly,
}

/// Result of `session/send`: the input is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionSendResult"),
    ts(rename = "SessionSendResult")
)]
pub struct SendResult {
    /// The session that took it.
    pub session_id: SessionId,
    /// Whether it had been taken before, so that this request changed nothing.
    pub duplicate: bool,
}

/// Parameters of `session/interrupt`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionInterruptParams"),
    ts(rename = "SessionInterruptParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct InterruptParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// How far the interrupt reaches.
    #[serde(default, skip_serializing_if = "InterruptScope::is_turn")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub scope: InterruptScope,
}

/// How far an interrupt reaches.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptScope {
    /// The session's turn, and the agents that it waits for; those in the background go on.
    #[default]
    Turn,
    /// The session's turn, and those of all agents below it.
    Tree,
}

impl InterruptScope {
    const fn is_turn(&self) -> bool {
        matches!(self, Self::Turn)
    }
}

/// Result of `session/interrupt`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionInterruptResult"),
    ts(rename = "SessionInterruptResult")
)]
pub struct InterruptResult {
    /// The turn that was interrupted; `None` if none ran.
    pub turn_id: Option<TurnId>,
}

/// Parameters of `session/items`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionItemsParams"),
    ts(rename = "SessionItemsParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ItemsParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// In which direction to read.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub order: ItemsOrder,
    /// Read strictly after this number in that direction; 0 begins at that end.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>", optional))]
    pub cursor: u64,
    /// How many to give: 1 to 1,000, default 100.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// In which direction to read a session's log.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ItemsOrder {
    /// From the newest to the oldest.
    #[default]
    Descending,
    /// From the oldest to the newest.
    Ascending,
}

/// Result of `session/items`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionItemsResult"),
    ts(rename = "SessionItemsResult")
)]
pub struct ItemsResult {
    /// Items (and damaged lines) in the order that was asked for; show them by `pos`.
    pub items: Vec<Entry>,
    /// The cursor of the next page; `None` at the end.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub next: Option<u64>,
}

/// Parameters of `session/blob`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionBlobParams"),
    ts(rename = "SessionBlobParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct BlobParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The reference as the item has it.
    pub blob: BlobRef,
    /// The first byte to give; rounded down to the chunk that has it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>", optional))]
    pub offset: u64,
}

/// Result of `session/blob`: at most 1 MiB of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionBlobResult"),
    ts(rename = "SessionBlobResult")
)]
pub struct BlobResult {
    /// The first byte that `data` has.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub offset: u64,
    /// The bytes, in standard base64 with padding.
    pub data: String,
    /// Where to go on; `None` at the end.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub next: Option<u64>,
}

/// Parameters of `session/tree`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionTreeParams"),
    ts(rename = "SessionTreeParams")
)]
#[serde(deny_unknown_fields)]
pub struct TreeParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `session/tree`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionTreeResult"),
    ts(rename = "SessionTreeResult")
)]
pub struct TreeResult {
    /// The sessions: the root first, and each before those that its agent has started, in the order of their start.
    pub sessions: Vec<Session>,
}

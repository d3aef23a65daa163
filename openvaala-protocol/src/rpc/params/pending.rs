//! `session/pending/…` and `session/resume`: the inputs that wait.

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::conversation::PendingInput;
use crate::id::{ConversationId, ItemId, SessionId};
use crate::time::Timestamp;

/// Parameters of `session/pending/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingListParams"),
    ts(rename = "SessionPendingListParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// Result of `session/pending/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingListResult"),
    ts(rename = "SessionPendingListResult")
)]
pub struct ListResult {
    /// The inputs that wait, in the order in which they will be taken.
    pub inputs: Vec<WholeInput>,
    /// Whether they stay until the next `session/send` or `session/resume`.
    pub held: bool,
}

/// An input that waits, with all that was said.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "WholePendingInput"),
    ts(rename = "WholePendingInput")
)]
pub struct WholeInput {
    /// The id that it will have as an item.
    pub item_id: ItemId,
    /// The beginning of its text, at most 200 characters.
    pub preview: String,
    /// How many images it carries.
    pub image_count: u32,
    /// Whether it waits for the running turn, not for the next.
    pub is_steer: bool,
    /// When it was sent.
    pub queued_at: Timestamp,
    /// All of it; a large image as a reference that `session/blob` reads.
    pub content: Vec<Content>,
}

/// Parameters of `session/pending/update`; what is left out stays.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingUpdateParams"),
    ts(rename = "SessionPendingUpdateParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct UpdateParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Which input.
    pub item_id: ItemId,
    /// What it says instead; at least one piece. An image carries its bytes as base64.
    #[serde(default)]
    pub content: Option<Vec<Content>>,
    /// `true`: the running turn reads it before its next model request; `false`: it waits for that turn's end.
    ///
    /// With no turn running there is nothing to steer: it goes on waiting, and the result says so.
    #[serde(default)]
    pub steer: Option<bool>,
}

/// Result of `session/pending/update`, `withdraw` and `reorder`: the change is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingChangeResult"),
    ts(rename = "SessionPendingChangeResult")
)]
pub struct ChangeResult {
    /// The inputs that waited once it was made, in the order in which they will be taken.
    pub pending: Vec<PendingInput>,
}

/// Parameters of `session/pending/withdraw`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingWithdrawParams"),
    ts(rename = "SessionPendingWithdrawParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct WithdrawParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Which inputs; if one of them does not wait, none is withdrawn.
    pub item_ids: Vec<ItemId>,
}

/// Parameters of `session/pending/reorder`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionPendingReorderParams"),
    ts(rename = "SessionPendingReorderParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ReorderParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// All inputs that wait, in the order in which they shall be taken.
    pub item_ids: Vec<ItemId>,
}

/// Parameters of `session/resume`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionResumeParams"),
    ts(rename = "SessionResumeParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ResumeParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// Result of `session/resume`: that the inputs go on is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionResumeResult"),
    ts(rename = "SessionResumeResult")
)]
pub struct ResumeResult {
    /// Whether inputs were held that are not any more.
    pub resumed: bool,
}

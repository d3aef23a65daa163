//! `session/compact` and `session/uncompact`.

use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, ItemId, SessionId};
use crate::item::ContextSummary;

/// Parameters of `session/compact`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionCompactParams"),
    ts(rename = "SessionCompactParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct CompactParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// What the summary should look at above all; at most 16,000 bytes.
    #[serde(default)]
    pub guidance: Option<String>,
    /// Only show what the summary would be.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub preview: bool,
}

/// Result of `session/compact`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionCompactResult"),
    ts(rename = "SessionCompactResult")
)]
pub struct CompactResult {
    /// The item of the summary; `None` for a preview.
    pub item_id: Option<ItemId>,
    /// The summary.
    pub summary: ContextSummary,
}

/// Parameters of `session/uncompact`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionUncompactParams"),
    ts(rename = "SessionUncompactParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct UncompactParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// Result of `session/uncompact`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "SessionUncompactResult"),
    ts(rename = "SessionUncompactResult")
)]
pub struct UncompactResult {
    /// The item of the summary that counts no longer.
    pub summary: ItemId,
}

//! `usage/…`.

use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, SessionId};
use crate::usage::Usage;

/// Parameters of `usage/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "UsageGetParams"),
    ts(rename = "UsageGetParams")
)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `usage/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "UsageGetResult"),
    ts(rename = "UsageGetResult")
)]
pub struct GetResult {
    /// The tokens of all its sessions; what no provider has said stays unknown.
    pub total: Usage,
    /// Those of each session, the root first; those of a turn stand in the turn.
    pub sessions: Vec<SessionUsage>,
}

/// The tokens of a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct SessionUsage {
    /// Which session.
    pub session_id: SessionId,
    /// The tokens that its turns have used.
    pub usage: Usage,
}

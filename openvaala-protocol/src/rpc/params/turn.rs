//! `turn/…`.

use serde::{Deserialize, Serialize};

use super::session::ItemsOrder;
use crate::conversation::Turn;
use crate::id::{ConversationId, SessionId, TurnId};

/// Parameters of `turn/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TurnGetParams"),
    ts(rename = "TurnGetParams")
)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which turn of it, of whatever session.
    pub turn_id: TurnId,
}

/// Result of `turn/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TurnGetResult"),
    ts(rename = "TurnGetResult")
)]
pub struct GetResult {
    /// The turn as it is on disk.
    pub turn: Turn,
}

/// Parameters of `turn/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TurnListParams"),
    ts(rename = "TurnListParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Only turns of this session; `None` means of all.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// By when they have started: the newest first if nobody says otherwise.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub order: ItemsOrder,
    /// The turn behind which the page begins, in that order; `None` begins at that end.
    #[serde(default)]
    pub cursor: Option<TurnId>,
    /// How many to give: 1 to 1,000, default 100.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Result of `turn/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TurnListResult"),
    ts(rename = "TurnListResult")
)]
pub struct ListResult {
    /// The turns in that order.
    pub turns: Vec<Turn>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<TurnId>,
}

//! `trash/…`.

use serde::{Deserialize, Serialize};

use crate::id::ConversationId;
use crate::time::Timestamp;

/// A deleted conversation that can still be restored.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct TrashedConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its title, if it had one that can be read.
    pub title: Option<String>,
    /// When it was deleted, as far as its log says.
    pub deleted_at: Option<Timestamp>,
}

/// Parameters of `trash/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TrashListParams"),
    ts(rename = "TrashListParams")
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `trash/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TrashListResult"),
    ts(rename = "TrashListResult")
)]
pub struct ListResult {
    /// All that is in the trash, the last deleted first.
    pub conversations: Vec<TrashedConversation>,
}

/// Parameters of `trash/empty`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TrashEmptyParams"),
    ts(rename = "TrashEmptyParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct EmptyParams {
    /// Only these; empty means all.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub conversation_ids: Vec<ConversationId>,
    /// Only those that were deleted at least so many seconds ago.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub older_than_seconds: Option<u64>,
}

/// Result of `trash/empty`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TrashEmptyResult"),
    ts(rename = "TrashEmptyResult")
)]
pub struct EmptyResult {
    /// What is gone for ever.
    pub removed: Vec<TrashedConversation>,
}

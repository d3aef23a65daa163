//! `conversation/…`.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalMode;
use crate::conversation::{
    Conversation, ConversationStatus, ModelRef, Session, Turn, WorkLocation,
};
use crate::event::{Entry, Live, PartialItem, ResumeCursor, Snapshot};
use crate::id::ConversationId;
use crate::time::Timestamp;

/// Parameters of `conversation/create`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationCreateParams"),
    ts(rename = "ConversationCreateParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct CreateParams {
    /// Where its tools run; empty means the local executor in the server's own working directory.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub executors: Vec<WorkLocation>,
    /// The model to ask; `None` means that of its agent, or else the configured default.
    pub model: Option<ModelRef>,
    /// The name of the agent that works in it; `None` means the default one.
    pub agent: Option<String>,
    /// Which tool calls run without a question; `None` means as the configuration says.
    pub approval_mode: Option<ApprovalMode>,
    /// Its id, chosen by the client, a UUID best of version 7; `None` means one that nobody has.
    ///
    /// With it a request whose answer was lost can be sent again: if there is a conversation of that id, the answer is that one
    /// as it is now, whatever else is asked for.
    pub conversation_id: Option<ConversationId>,
}

/// Result of `conversation/create`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationCreateResult"),
    ts(rename = "ConversationCreateResult")
)]
pub struct CreateResult {
    /// The new conversation.
    pub conversation: Conversation,
    /// Its root session.
    pub session: Session,
}

/// Parameters of `conversation/list`.
///
/// A conversation must pass all filters that are given; they must stay the same from page to page.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationListParams"),
    ts(rename = "ConversationListParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    /// Where the last page ended; `None` begins with the last used.
    pub cursor: Option<String>,
    /// How many to give: 1 to 1,000, default 50.
    pub limit: Option<u32>,
    /// Only conversations with this status.
    pub status: Option<ConversationStatus>,
    /// Only conversations that work in this directory itself, on any executor; written as their `executors` have it.
    pub root: Option<String>,
    /// Only conversations whose title has this text, in any mixture of upper and lower case.
    pub search: Option<String>,
    /// Only conversations in which something was said or done at this time or later.
    pub updated_since: Option<Timestamp>,
    /// Only conversations that are archived; without it, only those that are not.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub archived: bool,
}

/// Result of `conversation/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationListResult"),
    ts(rename = "ConversationListResult")
)]
pub struct ListResult {
    /// The conversations, the last used first.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
    /// Whether newer changes may be missing, because the index is still being brought up to date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub stale: bool,
}

/// Parameters of `conversation/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationGetParams"),
    ts(rename = "ConversationGetParams")
)]
#[serde(deny_unknown_fields)]
pub struct GetParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `conversation/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationGetResult"),
    ts(rename = "ConversationGetResult")
)]
pub struct GetResult {
    /// The conversation.
    pub conversation: Conversation,
    /// Its sessions, the root first.
    pub sessions: Vec<Session>,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
}

/// Parameters of `conversation/open`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationOpenParams"),
    ts(rename = "ConversationOpenParams")
)]
#[serde(deny_unknown_fields)]
pub struct OpenParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `conversation/open`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationOpenResult"),
    ts(rename = "ConversationOpenResult")
)]
pub struct OpenResult {
    /// The conversation.
    pub conversation: Conversation,
    /// Its sessions, the root first.
    pub sessions: Vec<Session>,
    /// What of its states cannot be read and why, a line each and at most 100; the rest is as it was last.
    pub damaged: Vec<String>,
}

/// Parameters of `conversation/close`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationCloseParams"),
    ts(rename = "ConversationCloseParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct CloseParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Whether turns and commands that run in it are ended first; without it they are only waited for.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub interrupt: bool,
    /// How long to wait while it is in use, in milliseconds: at most 60,000, default 1,000.
    #[serde(default)]
    pub wait_ms: Option<u32>,
}

/// Result of `conversation/close`: it is not in memory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationCloseResult"),
    ts(rename = "ConversationCloseResult")
)]
pub struct CloseResult {
    /// Whether it was in memory until now.
    pub was_open: bool,
}

/// Parameters of `conversation/delete`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationDeleteParams"),
    ts(rename = "ConversationDeleteParams")
)]
#[serde(deny_unknown_fields)]
pub struct DeleteParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `conversation/delete`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationDeleteResult"),
    ts(rename = "ConversationDeleteResult")
)]
pub struct DeleteResult {
    /// Whether it lies in the trash; one without a message is gone at once, and nothing is left of it.
    pub in_trash: bool,
}

/// Parameters of `conversation/restore`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationRestoreParams"),
    ts(rename = "ConversationRestoreParams")
)]
#[serde(deny_unknown_fields)]
pub struct RestoreParams {
    /// Which conversation of the trash.
    pub conversation_id: ConversationId,
}

/// Result of `conversation/restore`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationRestoreResult"),
    ts(rename = "ConversationRestoreResult")
)]
pub struct RestoreResult {}

/// Parameters of `conversation/deleted`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationDeletedParams"),
    ts(rename = "ConversationDeletedParams")
)]
pub struct DeletedParams {
    /// Which conversation; the subscription to it has ended.
    pub conversation_id: ConversationId,
}

/// Parameters of `conversation/subscribe`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationSubscribeParams"),
    ts(rename = "ConversationSubscribeParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct SubscribeParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The last cursor that this client has seen of it.
    #[serde(default)]
    pub cursor: Option<ResumeCursor>,
}

/// Result of `conversation/subscribe`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationSubscribeResult"),
    ts(rename = "ConversationSubscribeResult")
)]
pub struct SubscribeResult {
    /// What there is, for a client that begins or has missed too much.
    pub snapshot: Option<Snapshot>,
    /// Exactly what came after the given cursor, for one that comes back.
    pub entries: Vec<Entry>,
    /// What is still growing, by `pos`: the texts so far.
    pub partials: Vec<PartialItem>,
    /// Up to where `snapshot` or `entries` go.
    pub cursor: ResumeCursor,
}

/// Parameters of `conversation/unsubscribe`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationUnsubscribeParams"),
    ts(rename = "ConversationUnsubscribeParams")
)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
}

/// Result of `conversation/unsubscribe`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationUnsubscribeResult"),
    ts(rename = "ConversationUnsubscribeResult")
)]
pub struct UnsubscribeResult {
    /// Whether there was a subscription.
    pub was_subscribed: bool,
}

/// Parameters of `conversation/entry`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationEntryParams"),
    ts(rename = "ConversationEntryParams")
)]
pub struct EntryParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What was written.
    pub entry: Entry,
    /// Up to where this client has now seen the conversation.
    pub cursor: ResumeCursor,
}

/// Parameters of `conversation/live`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationLiveParams"),
    ts(rename = "ConversationLiveParams")
)]
pub struct LiveParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// What shows.
    pub live: Live,
}

/// Parameters of `conversation/gap`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConversationGapParams"),
    ts(rename = "ConversationGapParams")
)]
pub struct GapParams {
    /// Which conversation; the subscription to it has ended.
    pub conversation_id: ConversationId,
    /// Why.
    pub reason: String,
}

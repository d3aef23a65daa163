//! `approval/…`.

use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalAnswer, ApprovalScope};
use crate::id::{ConversationId, ItemId, SessionId};
use crate::item::Approval;
use crate::time::Timestamp;

/// Parameters of `approval/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ApprovalListParams"),
    ts(rename = "ApprovalListParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct ListParams {
    /// Only those of this conversation.
    pub conversation_id: Option<ConversationId>,
}

/// Result of `approval/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ApprovalListResult"),
    ts(rename = "ApprovalListResult")
)]
pub struct ListResult {
    /// The open questions, the oldest first.
    pub approvals: Vec<OpenApproval>,
}

/// An open question whether a tool call may run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct OpenApproval {
    /// In which conversation.
    pub conversation_id: ConversationId,
    /// In which session of it.
    pub session_id: SessionId,
    /// Its id as an item.
    pub approval_id: ItemId,
    /// Since when it waits.
    pub asked_at: Timestamp,
    /// What is asked.
    pub approval: Approval,
}

/// Parameters of `approval/answer`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ApprovalAnswerParams"),
    ts(rename = "ApprovalAnswerParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct AnswerParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The question's id as an item.
    pub approval_id: ItemId,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// For how long an approval counts.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub scope: ApprovalScope,
    /// The hash of what was shown; if it is given and is not that of the call, nothing is answered.
    #[serde(default)]
    pub hash: Option<String>,
    /// What the model is told with a denial; at most 4,000 characters.
    #[serde(default)]
    pub message: Option<String>,
}

/// Result of `approval/answer`: the answer is on disk.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ApprovalAnswerResult"),
    ts(rename = "ApprovalAnswerResult")
)]
pub struct AnswerResult {
    /// The question with its answer.
    pub approval: Approval,
}

//! Bodies of tool calls and their results.

use serde::{Deserialize, Serialize};

use crate::content::{BlobRef, Content};
use crate::id::{ExecutorId, ItemId};

/// A tool that the model asked for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the provider and the result know the call by; unique in its session.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model wrote them: JSON text, possibly broken.
    pub arguments: String,
    /// Where it runs; `None` for a tool of the runtime itself, or one that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorId>,
    /// Whether the model was cut off before it had written all arguments; such a call never runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl ToolCall {
    /// A call as the model asked for it.
    #[must_use]
    pub const fn new(call_id: String, tool: String, arguments: String) -> Self {
        Self {
            call_id,
            tool,
            arguments,
            executor: None,
            cut: false,
        }
    }
}

/// What came of a tool call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ToolResult {
    /// The item of the call.
    pub call: ItemId,
    /// The id of the call as the provider knows it.
    pub call_id: String,
    /// How it ended.
    pub status: ToolResultStatus,
    /// What the model sees of it.
    pub content: Vec<Content>,
    /// Exit code, where a command ran to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The whole output, where it is more than the model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobRef>,
    /// The messages of other agents that the model reads in it: they come in no other way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ItemId>,
}

impl ToolResult {
    /// A result without exit code or whole output.
    #[must_use]
    pub const fn new(
        call: ItemId,
        call_id: String,
        status: ToolResultStatus,
        content: Vec<Content>,
    ) -> Self {
        Self {
            call,
            call_id,
            status,
            content,
            exit_code: None,
            output: None,
            messages: Vec::new(),
        }
    }
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolResultStatus {
    /// It did what it was asked.
    Ok,
    /// It ran and says that it failed, or could not run at all.
    Failed,
    /// It was ended by an interrupt; what it had said so far is kept.
    Interrupted,
    /// The runtime ended while it ran: nobody knows what it did.
    Unknown,
}

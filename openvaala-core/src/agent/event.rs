//! What an agent is told, what it starts, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::tool::Toolbox;
use openvaala_protocol::content::{BlobRef, Content};
use openvaala_protocol::conversation::{TurnFailure, TurnFailureKind};
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{InterruptionCause, ToolResultStatus};
use openvaala_protocol::usage::Usage;

use super::retry::RetryPolicy;
use crate::model::{ModelErrorKind, ModelEvent};

/// What happens to a running agent.
#[derive(Debug)]
pub(crate) enum AgentEvent {
    /// Workspaces are open; the tools are those, until the turn ends.
    Prepared {
        toolbox: Arc<Toolbox>,
        account: Option<String>,
    },
    /// Workspaces could not be opened.
    NotPrepared { message: String },
    /// The model answers.
    Model { request: u64, event: ModelEvent },
    /// The model request failed.
    ModelFailed { request: u64, failure: Failure },
    /// A tool has ended.
    ToolEnded {
        result: ItemId,
        outcome: ToolOutcome,
    },
    /// A time has come that was asked for.
    Alarm(Alarm),
}

/// How a model request failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: ModelErrorKind,
    pub(crate) message: String,
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) const fn new(kind: ModelErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            status: None,
            retry_after: None,
        }
    }
}

/// What an agent waits for with an alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Alarm {
    /// Nobody waits for tools any longer.
    GraceOver,
    /// The request that failed is asked again.
    AskAgain { request: u64 },
    /// Nobody has answered a question in time.
    Unanswered { question: ItemId },
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolOutcome {
    pub(crate) status: ToolResultStatus,
    pub(crate) content: Vec<Content>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) output: Option<BlobRef>,
    /// Messages of other agents that the model reads in it.
    pub(crate) messages: Vec<ItemId>,
    /// Whether what was looked at goes on by itself.
    pub(crate) goes_on: bool,
}

impl ToolOutcome {
    pub(crate) fn said(status: ToolResultStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            content: vec![Content::text(text)],
            exit_code: None,
            output: None,
            messages: Vec::new(),
            goes_on: false,
        }
    }
}

/// A call that is to run now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningCall {
    pub(crate) result: ItemId,
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Completed,
    Failed(TurnFailure),
    Interrupted(InterruptionCause),
}

impl Ending {
    pub(crate) fn failed(kind: TurnFailureKind, message: impl Into<String>) -> Self {
        Self::Failed(TurnFailure {
            kind,
            message: message.into(),
        })
    }
}

/// How far an agent goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: u32,
    /// How often in a row the same calls may have the same results; 0 is without end.
    pub(crate) repeats: u32,
    pub(crate) retry: RetryPolicy,
    /// How many tokens the turn may use; `None` for any number.
    pub(crate) tokens: Option<u64>,
}

impl Limits {
    /// Whether a turn that has used that much may ask no more.
    pub(super) fn is_used_up(&self, usage: Usage) -> bool {
        self.tokens.is_some_and(|tokens| spent(usage) >= tokens)
    }
}

/// The tokens of some requests and their answers together.
pub(crate) fn spent(usage: Usage) -> u64 {
    usage.input_tokens.unwrap_or(0) + usage.output_tokens.unwrap_or(0)
}

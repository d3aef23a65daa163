//! Bodies of what happened around the conversation: errors, changes, questions.

use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalRule, ApprovalScope};
use crate::conversation::{ModelRef, WorkLocation};
use crate::id::{ExecutorId, ItemId};
use crate::time::Timestamp;

/// A model request that failed for good.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ModelError {
    /// The model that was asked.
    pub model: ModelRef,
    /// What went wrong and what to do about it.
    pub message: String,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How many times it was tried.
    pub attempts: u32,
}

impl ModelError {
    /// An error of that model.
    #[must_use]
    pub const fn new(model: ModelRef, message: String, status: Option<u16>, attempts: u32) -> Self {
        Self {
            model,
            message,
            status,
            attempts,
        }
    }
}

/// The session goes on with another model or effort.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ModelChange {
    /// The model until now.
    pub from: ModelRef,
    /// The model from now on.
    pub to: ModelRef,
}

impl ModelChange {
    /// A change from one model to another.
    #[must_use]
    pub const fn new(from: ModelRef, to: ModelRef) -> Self {
        Self { from, to }
    }
}

/// The session goes on with another agent.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct AgentChange {
    /// The agent until now; `None` is the default one.
    pub from: Option<String>,
    /// The agent from now on; `None` is the default one.
    pub to: Option<String>,
}

impl AgentChange {
    /// A change from one agent to another.
    #[must_use]
    pub const fn new(from: Option<String>, to: Option<String>) -> Self {
        Self { from, to }
    }
}

/// The conversation goes on with other executors or folders.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ExecutorChange {
    /// The work locations until now.
    pub from: Vec<WorkLocation>,
    /// The work locations from now on.
    pub to: Vec<WorkLocation>,
}

impl ExecutorChange {
    /// A change from some work locations to others.
    #[must_use]
    pub const fn new(from: Vec<WorkLocation>, to: Vec<WorkLocation>) -> Self {
        Self { from, to }
    }
}

/// A hook that ran around a tool call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct HookRun {
    /// The hook's name.
    pub hook: String,
    /// The event that it ran for.
    pub event: String,
    /// The item that it ran around.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<ItemId>,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it said.
    pub output: String,
}

/// The turn was ended before its time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Interruption {
    /// Who or what ended it.
    pub cause: InterruptionCause,
}

impl Interruption {
    /// An interruption of that cause.
    #[must_use]
    pub const fn new(cause: InterruptionCause) -> Self {
        Self { cause }
    }
}

/// Who or what ended a turn before its time.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InterruptionCause {
    /// A client asked for it.
    Requested,
    /// The runtime was stopped in good order.
    Shutdown,
    /// The runtime ended without notice while the turn ran.
    Crash,
    /// The turn took more steps than a turn may, and failed.
    StepLimit,
    /// The same tool call had the same result too often in a row, and the turn failed.
    RepeatLimit,
}

/// A question whether a tool call may run, and what was answered.
///
/// It is written when it is asked and once more, with the same `pos`, when it is answered or taken back.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Approval {
    /// The item of the call.
    pub call: ItemId,
    /// Whether and how it was answered.
    pub state: ApprovalState,
    /// The tool that is to run.
    #[serde(default)]
    pub tool: String,
    /// Its arguments as JSON text, exactly as they would be given to it.
    #[serde(default)]
    pub arguments: String,
    /// Where it would run; `None` for a tool of the runtime itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorId>,
    /// The work location there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// SHA-256 over tool, arguments, executor and folder, in hex; a runtime without that function has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Why it is asked.
    #[serde(default)]
    pub reason: String,
    /// The rule that the scopes `session` and `always` make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<ApprovalRule>,
    /// For how long it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// Who answered, in that client's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What was said with a denial, or why the question was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Approval {
    /// An open question about a call of that tool with those arguments.
    pub fn new(
        call: ItemId,
        tool: impl Into<String>,
        arguments: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            call,
            state: ApprovalState::Pending,
            tool: tool.into(),
            arguments: arguments.into(),
            executor: None,
            folder: None,
            hash: None,
            reason: reason.into(),
            rule: None,
            scope: None,
            answered_by: None,
            message: None,
        }
    }
}

/// Whether and how an approval was answered.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nobody has answered yet.
    Pending,
    /// The call may run.
    Approved,
    /// The call may not run.
    Denied,
    /// Nobody has answered in time, so the call may not run.
    Expired,
    /// Nobody needs to answer any more: the turn was interrupted or has failed, or the call would be another one after a restart.
    Cancelled,
}

/// The agent's list of steps.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct PlanStep {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: PlanStepState,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanStepState {
    /// Not begun.
    Pending,
    /// Begun.
    Running,
    /// Done.
    Done,
}

/// A model request failed and is tried again.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct RetryNotice {
    /// What went wrong.
    pub message: String,
    /// Which attempt failed, counted from 1.
    pub attempt: u32,
    /// When the next one starts.
    pub next_at: Timestamp,
}

impl RetryNotice {
    /// A notice that this attempt has failed.
    #[must_use]
    pub const fn new(message: String, attempt: u32, next_at: Timestamp) -> Self {
        Self {
            message,
            attempt,
            next_at,
        }
    }
}

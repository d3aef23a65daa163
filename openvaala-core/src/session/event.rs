//! What a session is asked or told, and what it wants done.

use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::tool::Toolbox;
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::event::Live;
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{Approval, ContextSummary, Instructions, InterruptionCause, Item};

use super::compaction::Order;
use super::inputs::Inputs;
use super::request::{Answer, Request};
use crate::agent::{AgentEvent, Alarm, Failure, Limits, RunningCall};
use crate::approval::ApprovalPolicy;
use crate::context::Survey;
use crate::conversation::{AnswerApproval, Input};
use crate::dao::record::{SessionState, TurnState};
use crate::dao::tail::Accepted;
use crate::journal::Commit;
use crate::model::ModelEvent;

/// Names a request that waits for a reply; made by the shell.
pub(crate) type ReplyId = u64;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    Busy,
    QueueFull,
    NotWritten(String),
    /// The log did not tell whether the input was taken before.
    NotRead(String),
    /// No such input waits, and none was taken.
    InputNotFound(ItemId),
    /// A turn has taken the input.
    InputTaken(ItemId),
    /// An order does not name exactly what waits: how they differ.
    QueueChanged(String),
    InvalidInput(String),
    /// Nothing could be summarised, or no summary be taken back.
    NotCompacted(String),
    NoApproval(ItemId),
    /// Somebody else has answered first.
    ApprovalAnswered(Box<Approval>),
    WrongAnswer(String),
}

/// What a session is asked or told.
#[derive(Debug)]
pub(crate) enum Event {
    Send {
        reply: ReplyId,
        input: Input,
    },
    Interrupt {
        reply: Option<ReplyId>,
        cause: InterruptionCause,
    },
    /// No further turn starts.
    Stop,
    Committed {
        n: u64,
    },
    CommitFailed {
        n: u64,
        message: String,
    },
    Prepared {
        turn: TurnId,
        executors: Vec<WorkLocation>,
        toolbox: Arc<Toolbox>,
        account: Option<String>,
        instructions: Vec<Instructions>,
        /// What requests are made from as the log has it, if that was asked for.
        context: Option<Vec<Item>>,
        /// What the runtime lets run without a question.
        approval: ApprovalPolicy,
        /// The most careful mode of those that have started the session.
        ceiling: Option<ApprovalMode>,
    },
    NotPrepared {
        turn: TurnId,
        message: String,
    },
    Agent(AgentEvent),
    Alarm {
        turn: TurnId,
        alarm: Alarm,
    },
    /// All inputs that the log has.
    InputsFound {
        accepted: Accepted,
    },
    InputsNotFound {
        message: String,
    },
    /// The state was read from disk: finish what was left unfinished, then go on.
    Recover {
        turns: Vec<TurnState>,
        failure: Option<String>,
    },
    Request {
        reply: ReplyId,
        request: Request,
    },
    /// Somebody asks for a summary, or to take the last one back.
    Compact(Order),
    /// What a summary needs was found out.
    Surveyed {
        request: u64,
        survey: Result<Survey, String>,
    },
    /// The model writes a summary.
    Summary {
        request: u64,
        event: Result<ModelEvent, Failure>,
    },
    AnswerApproval {
        reply: ReplyId,
        answer: AnswerApproval,
    },
    /// Whoever has started the session knows how a turn of it has ended.
    ReportTaken {
        report: ItemId,
    },
}

/// What a session wants done.
#[derive(Debug)]
pub(crate) enum Effect {
    Commit(Commit),
    /// The input is on disk.
    Sent {
        reply: ReplyId,
        duplicate: bool,
    },
    /// The turn that was to be interrupted has ended.
    Interrupted {
        reply: ReplyId,
        turn: Option<TurnId>,
    },
    Refuse {
        reply: ReplyId,
        refusal: Refusal,
    },
    Live(Live),
    /// Open what the turn works with; with `load`, read what requests are made from as well.
    Prepare {
        turn: TurnId,
        load: bool,
    },
    /// Read which inputs the log has.
    FindInputs,
    AskModel {
        turn: TurnId,
        request: u64,
    },
    DropModel,
    StartTool(RunningCall),
    StopTools,
    AbandonTools,
    Alarm {
        after: Duration,
        turn: TurnId,
        alarm: Alarm,
    },
    /// The log did not take a commit: read what it has and begin anew from there.
    Reload {
        message: String,
    },
    /// What was asked is on disk.
    Answer {
        reply: ReplyId,
        answer: Answer,
    },
    /// Find out what a summary needs besides the items; with `load`, read what requests are made from as well.
    Survey {
        request: u64,
        load: bool,
    },
    /// Ask the model for a summary, after that time.
    AskSummary {
        request: u64,
        wait: Duration,
    },
    /// Nothing is needed any more of the items that are not in the history.
    Forgotten,
    /// The summary is on disk, or only to be looked at.
    Compacted {
        reply: ReplyId,
        item: Option<ItemId>,
        summary: Box<ContextSummary>,
    },
    /// The summary counts no longer.
    Uncompacted {
        reply: ReplyId,
        summary: ItemId,
    },
    /// The answer to a question whether a call may run is on disk.
    ApprovalAnswered {
        reply: ReplyId,
        approval: Box<Approval>,
    },
    /// Messages of other agents were read in the result of a call, which is on disk.
    Heard {
        messages: Vec<ItemId>,
    },
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub(crate) struct SessionSetup {
    pub(crate) state: SessionState,
    /// The newest items, oldest first: at least those of the turns that were left open.
    pub(crate) items: Vec<Item>,
    /// Whether these are all that a request is made from.
    pub(crate) has_context: bool,
    pub(crate) inputs: Inputs,
    pub(crate) limits: Limits,
}

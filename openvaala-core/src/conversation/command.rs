//! What a conversation is asked from outside, and what its sessions tell it.

use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_executor::commands::Commands;
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::conversation::{Conversation, Session, WorkLocation};
use openvaala_protocol::id::{ItemId, SessionId, TurnId};
use openvaala_protocol::item::Approval;
use openvaala_protocol::rpc::params::approval::OpenApproval;
use openvaala_protocol::rpc::params::session::InterruptScope;
use openvaala_storage::Error;
use tokio::sync::oneshot;

use super::ConversationChange;
use super::approvals::AnswerApproval;
use super::handle::{Input, Sent};
use super::run::Tell;
use crate::agents::AgentRequest;
use crate::dao::mutation::Promote;
use crate::error::RuntimeError;
use crate::session::{Answer, CompactionCommand, Request, SessionReport};

/// What comes up from the sessions; sending it never waits.
#[derive(Debug)]
pub(crate) enum Upward {
    /// A session has written something.
    Report(Box<SessionReport>),
    /// A session needs to know what it works on; `locations` are its own, if it has some.
    Ground {
        session: SessionId,
        locations: Option<Vec<WorkLocation>>,
        reply: Reply<Ground>,
    },
    /// An agent asks something.
    Agents {
        from: SessionId,
        request: AgentRequest,
        reply: Tell,
    },
    /// Messages of agents are on disk as part of a result.
    Heard(Vec<ItemId>),
    /// A session has written a message into memory and waits for it to be on disk.
    Promote(Promote),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, RuntimeError>>;

/// What a session works on.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) workspaces: Vec<Arc<dyn Workspace>>,
    /// The approval modes of the sessions above it, as far as they have modes of their own.
    pub(crate) modes_above: Vec<Option<ApprovalMode>>,
}

/// What is asked of a conversation.
#[derive(Debug)]
pub(crate) enum Command {
    Send {
        session: SessionId,
        input: Input,
        reply: Reply<Sent>,
    },
    Interrupt {
        session: SessionId,
        scope: InterruptScope,
        reply: Reply<Option<TurnId>>,
    },
    /// The sessions, each before those below it.
    Tree {
        reply: oneshot::Sender<Vec<Session>>,
    },
    /// The commands of each session.
    Commands {
        reply: oneshot::Sender<Vec<(SessionId, Commands)>>,
    },
    RunningCommands {
        reply: oneshot::Sender<usize>,
    },
    Settle {
        done: oneshot::Sender<()>,
    },
    /// End if nothing runs or waits and nobody watches; nobody else may give commands any more.
    StopIfIdle {
        reply: oneshot::Sender<bool>,
    },
    Stop {
        done: oneshot::Sender<()>,
    },
    /// Stop, write down that it is deleted, and tell everybody who watches.
    Delete {
        done: oneshot::Sender<Result<(), Error>>,
    },
    Request {
        session: SessionId,
        request: Request,
        reply: Reply<Answer>,
    },
    Change {
        change: ConversationChange,
        reply: Reply<Conversation>,
    },
    Compact {
        session: SessionId,
        command: CompactionCommand,
    },
    AnswerApproval {
        session: SessionId,
        answer: AnswerApproval,
        reply: Reply<Approval>,
    },
    Approvals {
        reply: oneshot::Sender<Vec<OpenApproval>>,
    },
}

//! The way to a session's loop.

use openvaala_executor::commands::Commands;
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::Approval;
use openvaala_protocol::rpc::params::approval::OpenApproval;
use tokio::sync::oneshot;

use super::request::{Answer, Request};
use crate::conversation::{AnswerApproval, Compacted, Input, Sent};
use crate::error::RuntimeError;
use crate::mailbox::{self, NotTaken};

/// The way to a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    pub(super) requests: mailbox::Sender<Command>,
    pub(super) commands: Commands,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, RuntimeError>>;

#[derive(Debug)]
pub(super) enum Command {
    Send {
        input: Input,
        reply: Reply<Sent>,
    },
    Interrupt {
        reply: Reply<Option<TurnId>>,
    },
    /// Whether there is nothing to do and nothing to wait for.
    IsIdle {
        reply: oneshot::Sender<bool>,
    },
    Settle {
        done: oneshot::Sender<()>,
    },
    Stop {
        done: oneshot::Sender<()>,
    },
    Request {
        request: Request,
        reply: Reply<Answer>,
    },
    Compact(CompactionCommand),
    AnswerApproval {
        answer: AnswerApproval,
        reply: Reply<Approval>,
    },
    Approvals {
        reply: oneshot::Sender<Vec<OpenApproval>>,
    },
    /// Whoever has started the session has that report on disk.
    ReportTaken {
        report: ItemId,
    },
}

/// What is asked about summaries.
#[derive(Debug)]
pub(crate) enum CompactionCommand {
    Compact {
        guidance: Option<String>,
        preview: bool,
        reply: Reply<Compacted>,
    },
    Uncompact {
        reply: Reply<ItemId>,
    },
}

impl CompactionCommand {
    pub(crate) fn refuse(self, error: RuntimeError) {
        match self {
            Self::Compact { reply, .. } => drop(reply.send(Err(error))),
            Self::Uncompact { reply } => drop(reply.send(Err(error))),
        }
    }
}

impl SessionHandle {
    /// Gives input to the session without waiting; a full inbox is an error.
    pub(crate) fn send(&self, input: Input, reply: Reply<Sent>) {
        self.command(Command::Send { input, reply });
    }

    pub(crate) fn interrupt(&self, reply: Reply<Option<TurnId>>) {
        self.command(Command::Interrupt { reply });
    }

    /// Asks something without waiting; a full inbox is an error.
    pub(crate) fn request(&self, request: Request, reply: Reply<Answer>) {
        self.command(Command::Request { request, reply });
    }
    pub(crate) fn compact(&self, command: CompactionCommand) {
        self.command(Command::Compact(command));
    }

    pub(crate) fn answer(&self, answer: AnswerApproval, reply: Reply<Approval>) {
        self.command(Command::AnswerApproval { answer, reply });
    }

    /// The open questions whether a call may run; none once it has ended.
    pub(crate) async fn approvals(&self) -> Vec<OpenApproval> {
        let (reply, wait) = oneshot::channel();
        match self.requests.send(Command::Approvals { reply }).await {
            Ok(()) => wait.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    pub(crate) fn report_taken(&self, report: ItemId) {
        self.command(Command::ReportTaken { report });
    }

    /// Its commands.
    pub(crate) fn commands(&self) -> Commands {
        self.commands.clone()
    }

    /// How many commands run.
    pub(crate) fn running_commands(&self) -> usize {
        self.commands.running()
    }

    /// Waits until nothing is on its way to the log: after a start, until what was left open has its end.
    pub(crate) async fn settle(&self) {
        let (done, wait) = oneshot::channel();
        if self.requests.send(Command::Settle { done }).await.is_ok() {
            let _ = wait.await;
        }
    }

    /// Whether nothing runs, waits, or is on its way to the log.
    pub(crate) async fn is_idle(&self) -> bool {
        let (reply, wait) = oneshot::channel();
        let asked = self.requests.send(Command::IsIdle { reply }).await;
        asked.is_ok() && wait.await.unwrap_or(false)
    }

    /// Interrupts what runs, writes it down, and ends the loop.
    pub(crate) async fn stop(&self) {
        let (done, wait) = oneshot::channel();
        if self.requests.send(Command::Stop { done }).await.is_ok() {
            let _ = wait.await;
        }
    }

    fn command(&self, command: Command) {
        let (command, error) = match self.requests.try_send(command) {
            Ok(()) => return,
            Err(NotTaken::Full(command)) => (command, RuntimeError::Overloaded),
            Err(NotTaken::Closed(command)) => (command, RuntimeError::Stopped),
        };
        // Whoever asked may have left: then nobody misses the answer.
        match command {
            Command::Send { reply, .. } => drop(reply.send(Err(error))),
            Command::Interrupt { reply } => drop(reply.send(Err(error))),
            Command::Request { reply, .. } => drop(reply.send(Err(error))),
            Command::IsIdle { reply } => drop(reply.send(false)),
            Command::Compact(command) => command.refuse(error),
            Command::Settle { done } | Command::Stop { done } => drop(done.send(())),
            Command::AnswerApproval { reply, .. } => drop(reply.send(Err(error))),
            Command::Approvals { reply } => drop(reply.send(Vec::new())),
            // It is told again with the next life, and taken as known then.
            Command::ReportTaken { .. } => {}
        }
    }
}

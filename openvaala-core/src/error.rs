//! What a runtime can answer instead of a result.

use openvaala_executor::ExecutorError;
use openvaala_executor::commands::{CommandError, CommandId};
use openvaala_protocol::id::{ConversationId, ExecutorId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Approval, ApprovalState};

/// Why the runtime did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// There is no such conversation in this data directory.
    #[error("there is no conversation {id}")]
    ConversationNotFound {
        /// The id as it was given.
        id: ConversationId,
    },
    /// There is no such conversation in the trash.
    #[error("there is no conversation {id} in the trash")]
    NotInTrash {
        /// The id as it was given.
        id: ConversationId,
    },
    /// The trash has a conversation of that id already.
    #[error("the trash has a conversation {id} already: empty the trash of that one first")]
    InTrashAlready {
        /// The id.
        id: ConversationId,
    },
    /// A conversation cannot be restored since there is one of its id again.
    #[error(
        "there is a conversation {id} again: delete or move that before the one in the trash is restored"
    )]
    ConversationExists {
        /// The id.
        id: ConversationId,
    },
    /// The conversation has no such session.
    #[error("conversation {conversation} has no session {session}")]
    SessionNotFound {
        /// The conversation.
        conversation: ConversationId,
        /// The session as it was given.
        session: SessionId,
    },
    /// The conversation has no such turn.
    #[error("conversation {conversation} has no turn {turn}")]
    TurnNotFound {
        /// The conversation.
        conversation: ConversationId,
        /// The turn as it was given.
        turn: TurnId,
    },
    /// The conversation cannot be closed.
    #[error("conversation {conversation} is in use: {why}")]
    ConversationBusy {
        /// The conversation.
        conversation: ConversationId,
        /// What runs or waits in it, or who uses it.
        why: String,
    },
    /// The session has no such command in the background.
    #[error("session {session} has no terminal {id}; there are: {}", or_none(&numbers(known)))]
    TerminalNotFound {
        /// The session.
        session: SessionId,
        /// The number as it was given.
        id: CommandId,
        /// Those that there are.
        known: Vec<CommandId>,
    },
    /// A command did not do what was asked of it.
    #[error("the command did not take it")]
    Command(#[from] CommandError),
    /// The session runs a turn and the input was for an idle one only.
    #[error(
        "session {session} runs a turn: wait for its end, or send with mode `queue` or `steer`"
    )]
    SessionBusy {
        /// The session.
        session: SessionId,
    },
    /// There is no such question in that session.
    #[error("session {session} has no approval {approval}")]
    ApprovalNotFound {
        /// The session.
        session: SessionId,
        /// The approval as it was given.
        approval: ItemId,
    },
    /// Somebody else has answered first, or the question was taken back.
    #[error("{}", already(approval))]
    ApprovalAnswered {
        /// The approval as it is now.
        approval: Box<Approval>,
    },
    /// The input cannot be taken as it is.
    #[error("{message}")]
    InvalidInput {
        /// What is wrong with it and what would be right.
        message: String,
    },
    /// The cursor is none that this runtime made.
    #[error("this resume cursor is not valid: subscribe without one")]
    InvalidCursor,
    /// No provider of that name is configured.
    #[error("there is no model provider {name:?}; there are: {}", known.join(", "))]
    UnknownProvider {
        /// The name as it was given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No executor of that id is configured.
    #[error("there is no executor {id}; there are: {}", list(known))]
    UnknownExecutor {
        /// The id as it was given.
        id: ExecutorId,
        /// Those that there are.
        known: Vec<ExecutorId>,
    },
    /// No agent of that name is configured.
    #[error("there is no agent {name:?}; there are: {}", or_none(known))]
    UnknownAgent {
        /// The name as it was given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// An agent is to have a tool that there is not.
    #[error(
        "the agent is to have the tool {name:?}, which there is not; there are: {}",
        or_none(known)
    )]
    UnknownTool {
        /// The name as it was given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Too much waits already.
    #[error("too many requests wait for this conversation: try again a little later")]
    Overloaded,
    /// Something could not be read from or written to the storage.
    #[error("the storage failed")]
    Storage(#[from] openvaala_storage::Error),
    /// What was said could not be written down; it is kept in memory and tried again with the next send.
    #[error("it could not be written down: {message}")]
    NotWritten {
        /// What the storage said.
        message: String,
    },
    /// There is nothing to summarise, no summary to take back, or the model gave none that can be used.
    #[error("not summarised: {message}")]
    NotCompacted {
        /// Why not.
        message: String,
    },
    /// An executor could not do its part.
    #[error("the executor failed")]
    Executor(#[from] ExecutorError),
    /// The log holds something that this version cannot read.
    #[error("{what} cannot be read: {message}")]
    Unreadable {
        /// What it is and where it lies.
        what: String,
        /// Why it cannot be read.
        message: String,
    },
    /// The builder lacks something.
    #[error("the runtime cannot be built: {message}")]
    Builder {
        /// What is missing and how to give it.
        message: String,
    },
    /// No such input waits, and no turn has taken it.
    #[error("no input {input} waits: it was never sent, or was withdrawn")]
    InputNotFound {
        /// The id as it was given.
        input: ItemId,
    },
    /// The input does not wait any more.
    #[error("a turn has taken input {input} already: send another one to say more")]
    InputTaken {
        /// The id as it was given.
        input: ItemId,
    },
    /// An order does not name exactly the inputs that wait.
    #[error("the order does not name exactly the inputs that wait: {message}")]
    QueueChanged {
        /// How they differ.
        message: String,
    },
    /// A conversation cannot be forked there.
    #[error("cannot fork behind item {item}: {why}{}", nearest(*.before, *.after))]
    InvalidCut {
        /// The item as it was given.
        item: ItemId,
        /// Why not.
        why: String,
        /// The nearest item before it that can be forked behind.
        before: Option<ItemId>,
        /// The nearest one after it.
        after: Option<ItemId>,
    },
    /// The runtime or this conversation has stopped.
    #[error("the runtime has stopped")]
    Stopped,
}

fn nearest(before: Option<ItemId>, after: Option<ItemId>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => {
            format!("; the nearest that can be are {before} before it and {after} after it")
        }
        (Some(item), None) => format!("; the nearest that can be is {item} before it"),
        (None, Some(item)) => format!("; the nearest that can be is {item} after it"),
        (None, None) => String::new(),
    }
}

fn already(approval: &Approval) -> String {
    let done = match approval.state {
        ApprovalState::Approved => "approved",
        ApprovalState::Denied => "denied",
        ApprovalState::Expired => "denied, since nobody answered in time",
        _ => "taken back",
    };
    let who = approval
        .answered_by
        .as_ref()
        .map(|who| format!(" by {who}"));
    let why = approval.message.as_ref().map(|why| format!(": {why}"));
    let (who, why) = (who.unwrap_or_default(), why.unwrap_or_default());
    format!("this question was {done} already{who}{why}")
}

fn numbers(ids: &[CommandId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn list(ids: &[ExecutorId]) -> String {
    ids.iter()
        .map(ExecutorId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

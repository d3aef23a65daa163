//! What can go wrong with a session's commands.

use super::CommandId;
use crate::error::ExecutorError;

/// An error about the commands of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The session is closed, and its commands with it.
    #[error("the session is closed, its commands were ended")]
    Closed,
    /// The command has ended and takes nothing more.
    #[error("command {id} has ended")]
    Ended {
        /// The command.
        id: CommandId,
    },
    /// The environment said no.
    #[error(transparent)]
    Executor {
        /// What it said.
        #[from]
        source: ExecutorError,
    },
    /// The command is not there any more, and was killed.
    #[error("command {id} is gone: the session was closed, or its output could not be taken")]
    Gone {
        /// The command.
        id: CommandId,
    },
    /// Its input was ended by an earlier write.
    #[error("the input of command {id} was ended before; start the command again to write more")]
    InputEnded {
        /// The command.
        id: CommandId,
    },
    /// Something else was written to its input meanwhile.
    #[error(
        "{written} bytes were written to the input of command {id}, not {at}; nothing was written"
    )]
    InputMoved {
        /// The command.
        id: CommandId,
        /// Where the write was to begin.
        at: u64,
        /// How many bytes were written by then.
        written: u64,
    },
    /// An earlier write still waits for the command to read.
    #[error("command {id} has not read its earlier input yet; nothing was written")]
    InputUnread {
        /// The command.
        id: CommandId,
    },
    /// The command reads nothing: it was started with its input closed.
    #[error("command {id} was started without input; start it again with `input` true")]
    NoInput {
        /// The command.
        id: CommandId,
    },
    /// There is no such command.
    #[error("there is no command {id}; {}", known_text(known))]
    NotFound {
        /// What was asked for.
        id: CommandId,
        /// Those that there are.
        known: Vec<CommandId>,
    },
    /// As many run as may run.
    #[error("{max} commands are running, no more may; end one with bash_kill")]
    TooMany {
        /// How many may run.
        max: usize,
    },
}

fn known_text(known: &[CommandId]) -> String {
    if known.is_empty() {
        return "none was started".to_owned();
    }
    let ids: Vec<String> = known.iter().map(ToString::to_string).collect();
    format!("there is {}", ids.join(", "))
}

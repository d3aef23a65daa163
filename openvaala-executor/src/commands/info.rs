//! What is known of a command.

use std::time::Duration;

use tokio::time::Instant;

use super::CommandId;
use crate::process::ExitStatus;

/// What is known of a command.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CommandInfo {
    /// Its number.
    pub id: CommandId,
    /// Its command line.
    pub line: String,
    /// Whether it runs, or how it ended.
    pub status: CommandStatus,
    /// Whether it has outlived the call that started it.
    pub left: bool,
    /// How long ago it was started.
    pub started_ago: Duration,
    /// How long ago it ended; `None` while it runs.
    pub ended_ago: Option<Duration>,
    /// How many bytes it has written.
    pub bytes: u64,
    /// How many bytes were written to its input, read by it or not.
    pub input_bytes: u64,
}

/// Whether a command runs.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CommandStatus {
    /// It runs, or something that it left in the background does.
    Running {
        /// How its shell ended, if only what it left in the background runs.
        shell: Option<ExitStatus>,
    },
    /// Nothing of it runs any more.
    Exited {
        /// How its shell ended.
        status: ExitStatus,
        /// Who ended it, unless it ended by itself.
        stopped: Option<StoppedBy>,
    },
    /// The system can't say how it ended.
    Lost {
        /// Why.
        message: String,
    },
}

impl CommandStatus {
    /// Tells whether anything of it runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }
}

/// Why a command was ended from outside.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum StoppedBy {
    /// The call that attended to it was cancelled or dropped.
    Call,
    /// Somebody asked for it.
    Kill,
    /// The session was closed.
    Session,
    /// Its time was over.
    Timeout,
}

/// What a command's task tells about it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) status: CommandStatus,
    /// The attention of the call that started it is over.
    pub(super) left: bool,
    /// Its shell has gone and what remains goes on, or everything is over.
    pub(super) settled: bool,
    /// There is text that nobody has looked at.
    pub(super) unseen: bool,
    pub(super) bytes: u64,
    pub(super) input_bytes: u64,
    pub(super) ended: Option<Instant>,
}

impl State {
    pub(super) const fn new() -> Self {
        Self {
            status: CommandStatus::Running { shell: None },
            left: false,
            settled: false,
            unseen: false,
            bytes: 0,
            input_bytes: 0,
            ended: None,
        }
    }
}

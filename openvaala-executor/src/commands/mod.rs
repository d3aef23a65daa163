//! The commands of a session: they outlive the call that started them, and end with the session.
//!
//! [`commands`] makes a [`Commands`] handle and a loop. The loop owns every process; whoever starts
//! a command only attends to it, for as long as it likes. Each command keeps what it wrote since
//! somebody last looked, cut to head and tail; all of it goes to the
//! [`OutputSink`] of the call that started it.

mod error;
mod handle;
mod info;
mod input;
mod run;
mod runner;
mod stages;

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
#[cfg(feature = "tools")]
use tokio_util::sync::CancellationToken;

pub use self::error::CommandError;
pub use self::handle::{Attended, CommandHandle};
pub use self::info::{CommandInfo, CommandStatus, StoppedBy};
use self::run::{Request, run};
#[cfg(feature = "tools")]
pub(crate) use self::runner::GRACE;
use self::runner::Start;
#[cfg(feature = "tools")]
use crate::process::Process;
use crate::process::{Command, Processes};
use crate::tool::OutputSink;

/// How many commands may wait for the loop to take them.
const MAILBOX: usize = 64;

/// How to make a session's [`Commands`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandsOptions {
    /// Variables added to each command, such as a marker of the session; a later one wins, and
    /// those of the command itself win over all; default none.
    pub env: Vec<(String, String)>,
    /// How many commands may run at the same time; default 64.
    pub max_running: usize,
}

impl CommandsOptions {
    /// Adds a variable to each command.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Changes how many commands may run at the same time.
    #[must_use]
    pub const fn with_max_running(mut self, max_running: usize) -> Self {
        self.max_running = max_running;
        self
    }
}

impl Default for CommandsOptions {
    fn default() -> Self {
        Self {
            env: Vec::new(),
            max_running: 64,
        }
    }
}

/// The number of a command within its session, from 1; never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CommandId(u32);

impl CommandId {
    /// The command with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.0, f)
    }
}

/// Makes the commands of a session: the handle, and the loop to be run as a task of the session.
///
/// The loop ends when [`Commands::close`] was called or every handle was dropped, and everything
/// that it ran is dead then. It runs one task a command, which it owns: dropping it ends them, and
/// kills their groups as soon as the runtime gets to it.
pub fn commands(options: CommandsOptions) -> (Commands, impl Future<Output = ()> + Send + 'static) {
    let (requests, mailbox) = mpsc::channel(MAILBOX);
    let max_running = options.max_running.min(Semaphore::MAX_PERMITS);
    let handle = Commands {
        requests,
        env: options.env.into(),
        running: Arc::new(Semaphore::new(max_running)),
        max_running,
    };
    (handle, run(mailbox))
}

/// A command without a session: its task is run by whoever attends to it, and ends with that.
#[cfg(feature = "tools")]
pub(crate) fn alone(
    process: Box<dyn Process>,
    options: StartOptions,
) -> (Attended, impl Future<Output = ()> + Send + 'static) {
    let start = Start::new(String::new(), process, options, None);
    start.split(CommandId::new(0), CancellationToken::new())
}

/// The commands of a session; a clone means the same ones.
#[derive(Clone, Debug)]
pub struct Commands {
    /// Boxed, since a channel keeps room for 32 of them from its beginning.
    requests: mpsc::Sender<Box<Request>>,
    env: Arc<[(String, String)]>,
    /// One permit for each command that may run.
    running: Arc<Semaphore>,
    max_running: usize,
}

/// How a command is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartOptions {
    /// Takes its raw output; default [`NoOutput`](crate::tool::NoOutput).
    pub output: Arc<dyn OutputSink>,
    /// After this it is ended, with what it started; default `None`, never.
    pub timeout: Option<Duration>,
    /// How many bytes of text are kept for who looks next, head and tail; default
    /// [`DEFAULT_CAP`](crate::output::DEFAULT_CAP).
    pub unseen_cap: usize,
}

impl StartOptions {
    /// The defaults with a sink for the raw output.
    #[must_use]
    pub const fn new(output: Arc<dyn OutputSink>) -> Self {
        Self {
            output,
            timeout: None,
            unseen_cap: crate::output::DEFAULT_CAP,
        }
    }

    /// Ends the command after some time.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Changes how much unseen text is kept, in bytes.
    #[must_use]
    pub const fn with_unseen_cap(mut self, cap: usize) -> Self {
        self.unseen_cap = cap;
        self
    }
}

impl Commands {
    /// Starts a command and attends to it: dropping what this returns ends the command, unless
    /// [`Attended::leave`] was called.
    ///
    /// # Errors
    ///
    /// [`CommandError::Executor`] if it can't be started, [`CommandError::TooMany`],
    /// [`CommandError::Closed`].
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves nothing running.
    pub async fn start(
        &self,
        processes: &dyn Processes,
        mut command: Command,
        options: StartOptions,
    ) -> Result<Attended, CommandError> {
        if self.requests.is_closed() {
            return Err(CommandError::Closed);
        }
        let permit = Arc::clone(&self.running).try_acquire_owned();
        let permit = permit.map_err(|_| CommandError::TooMany {
            max: self.max_running,
        })?;
        let own = std::mem::take(&mut command.env);
        command.env = self.env.iter().cloned().chain(own).collect();
        let line = command.line.clone();
        let process = processes.spawn(command).await?;
        let start = Start::new(line, process, options, Some(permit));
        self.ask(|reply| Request::Adopt { start, reply }).await
    }

    /// How many run, those included that a call attends to.
    #[must_use]
    pub fn running(&self) -> usize {
        self.max_running
            .saturating_sub(self.running.available_permits())
    }

    /// All that run and the last 50 that have ended, by id; none once the session is closed.
    pub async fn list(&self) -> Vec<CommandInfo> {
        self.ask(Request::List).await.unwrap_or_default()
    }

    /// The command with this id.
    ///
    /// # Errors
    ///
    /// [`CommandError::NotFound`], [`CommandError::Closed`].
    pub async fn get(&self, id: CommandId) -> Result<CommandHandle, CommandError> {
        self.ask(|reply| Request::Get { id, reply }).await?
    }

    /// Ends everything: asks first, kills after 500 ms, and returns when all is gone, after 3 s at
    /// most. Nothing can be started afterwards. Closing twice is closing once.
    pub async fn close(&self) {
        // An error means that the loop is over, and everything dead.
        let _ = self.ask(Request::Close).await;
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, CommandError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(Box::new(request(reply))).await;
        sent.map_err(|_| CommandError::Closed)?;
        answer.await.map_err(|_| CommandError::Closed)
    }
}

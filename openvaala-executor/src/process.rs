//! The processes of a workspace.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::ExecutorError;

/// The shell of a workspace.
#[async_trait]
pub trait Processes: Debug + Send + Sync {
    /// Starts a command in a process group of its own.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::NotFound`] and [`ExecutorError::NotADirectory`] for its working directory,
    /// [`ExecutorError::Process`] when it could not be started, [`ExecutorError::Closed`].
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, ExecutorError>;
}

/// A command line for the shell of the environment.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Command {
    /// The line, as the shell reads it.
    pub line: String,
    /// Where it runs; `None` is the root of the workspace.
    pub cwd: Option<String>,
    /// Variables added to the environment of the executor; a later one wins.
    pub env: Vec<(String, String)>,
    /// Whether standard error goes where standard output goes, in the exact order of writing; all
    /// output then comes as [`OutputStream::Stdout`].
    pub merge_output: bool,
    /// What it reads as standard input; default [`Input::Closed`].
    pub input: Input,
}

impl Command {
    /// A command line that runs in the root of the workspace.
    #[must_use]
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            cwd: None,
            env: Vec::new(),
            merge_output: false,
            input: Input::Closed,
        }
    }

    /// Runs it in another directory: absolute, or relative to the root.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Adds a variable to its environment.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sends standard error where standard output goes.
    #[must_use]
    pub const fn with_merged_output(mut self) -> Self {
        self.merge_output = true;
        self
    }

    /// Changes what it reads as standard input.
    #[must_use]
    pub const fn with_input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }
}

/// What a command reads as its standard input.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// The end, at once, so that nothing waits at a prompt.
    #[default]
    Closed,
    /// What is written to its [`ProcessInput`].
    Piped,
}

/// The standard input of a process; dropping it is its end.
#[async_trait]
pub trait ProcessInput: Debug + Send {
    /// Writes all of it, waiting for as long as the process does not read. Not cancel safe: a
    /// dropped future may have written a part.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Process`] when nobody reads it any more.
    async fn write(&mut self, bytes: Bytes) -> Result<(), ExecutorError>;
}

/// A running command with all that it started in its process group.
///
/// Dropping it kills the whole group.
#[async_trait]
pub trait Process: Debug + Send {
    /// Its number in the operating system, where it has one; also that of its process group.
    fn id(&self) -> Option<u32>;

    /// Gives out its standard input, once; `None` if it has none or gave it out already.
    fn take_input(&mut self) -> Option<Box<dyn ProcessInput>>;

    /// Waits for what happens next. Cancel safe: a dropped future loses nothing.
    ///
    /// [`ProcessEvent::Exited`] comes once, before or after output: a child left in the background
    /// may hold the output open after its shell has gone. [`ProcessEvent::Closed`] is the last one
    /// and comes again if asked again.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Process`] when the system can't say how the command ended.
    async fn next_event(&mut self) -> Result<ProcessEvent, ExecutorError>;

    /// Waits for more output; `None` when there won't be any. Cancel safe.
    async fn next_output(&mut self) -> Option<Output>;

    /// Waits until the shell has exited; output that was not read before is dropped. Cancel safe.
    ///
    /// It answers the same again after the first time.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Process`] when the system can't say how the command ended.
    async fn wait(&mut self) -> Result<ExitStatus, ExecutorError>;

    /// Sends a signal to every process of the group; nobody left to get it is no error.
    ///
    /// Once the group is gone, an environment that can find what has left it ends that, too.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Process`] when the system refuses.
    fn signal(&self, signal: Signal) -> Result<(), ExecutorError>;

    /// Tells whether a process of the group is left, as far as the environment knows.
    fn is_alive(&self) -> bool;
}

/// What happens to a process.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProcessEvent {
    /// The shell has exited and all output was given out.
    Closed,
    /// The shell has exited.
    Exited(ExitStatus),
    /// It wrote something.
    Output(Output),
}

/// A piece of output as it came.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Where it was written to.
    pub stream: OutputStream,
    /// The bytes, at least one; characters may be cut.
    pub bytes: Bytes,
}

impl Output {
    /// A piece of output.
    #[must_use]
    pub const fn new(stream: OutputStream, bytes: Bytes) -> Self {
        Self { stream, bytes }
    }
}

/// One of the two streams that a process writes to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a shell ended: by its own code, or by a signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ExitStatus {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, by number.
    pub signal: Option<i32>,
}

impl ExitStatus {
    /// The status of a command that exited by itself.
    #[must_use]
    pub const fn exited(code: i32) -> Self {
        Self {
            code: Some(code),
            signal: None,
        }
    }

    /// The status of a command that a signal ended.
    #[must_use]
    pub const fn signalled(signal: i32) -> Self {
        Self {
            code: None,
            signal: Some(signal),
        }
    }

    /// Tells whether it exited with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// A signal to a process group.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Signal {
    /// Ends it at once; it can't refuse.
    Kill,
    /// Asks it to end.
    Terminate,
}

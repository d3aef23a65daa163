//! Tools: what a model can call.

mod context;
mod raw;
mod route;
mod typed;

use std::fmt::Debug;

use async_trait::async_trait;
use openvaala_protocol::content::Content;
use openvaala_protocol::id::ItemId;
use serde_json::value::RawValue;

pub use self::context::{Cancel, CancelHandle, Kept, NoOutput, OutputSink, ToolContext};
pub use self::route::{Offer, RouteError, Routed, Toolbox, ToolboxError};
pub use self::typed::{TypedTool, typed};
use crate::error::ExecutorError;

/// Something that a model can call by name.
///
/// Calls of one model answer run at the same time, so a tool has no state that one call leaves for
/// another. [`TypedTool`] is the shorter way to write one.
#[async_trait]
pub trait Tool: Debug + Send + Sync + 'static {
    /// What the model is told about it; the same for as long as it exists.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. `arguments` is the text that the model wrote, possibly no JSON at all.
    ///
    /// # Errors
    ///
    /// A [`ToolError`], whose text is what the model reads. A tool that ran and failed may as well
    /// return an output with [`ToolStatus::Failed`], when it has something to show.
    ///
    /// # Cancellation
    ///
    /// After `context.cancel` fires, the call returns within 700 ms with what it has; the runtime
    /// abandons one that does not. Dropping the future ends what the call started, too.
    async fn call(&self, context: ToolContext, arguments: &str) -> Result<ToolOutput, ToolError>;
}

/// What the model is told about a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Its name: 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// What it does and when to use it; sent with every request, so short.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Box<RawValue>,
    /// Whether a call of it changes nothing, whatever its arguments are: then it may run without a question.
    pub read_only: bool,
}

impl ToolSpec {
    /// Describes a tool; name and schema are checked when a [`Toolbox`] takes it.
    #[must_use]
    pub const fn new(name: String, description: String, parameters: Box<RawValue>) -> Self {
        Self {
            name,
            description,
            parameters,
            read_only: false,
        }
    }

    /// The same for a tool that changes nothing.
    #[must_use]
    pub const fn with_read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
}

/// What came of a tool call.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model sees.
    pub content: Vec<Content>,
    /// Whether it worked.
    pub status: ToolStatus,
    /// The exit code of a command that ran to its end.
    pub exit_code: Option<i32>,
    /// Whether the model sees only a part of the output, its head and tail.
    pub cut: bool,
    /// Messages of other agents that the model reads in the content: they come to it in no other way.
    pub messages: Vec<ItemId>,
    /// Whether it tells of something that goes on by itself, such as a command that runs: the same call may say something
    /// else later, so repeating it is no circle.
    pub goes_on: bool,
}

impl ToolOutput {
    /// An output of any content, of a call that worked.
    #[must_use]
    pub const fn new(content: Vec<Content>) -> Self {
        Self {
            content,
            status: ToolStatus::Ok,
            exit_code: None,
            cut: false,
            messages: Vec::new(),
            goes_on: false,
        }
    }

    /// A text, of a call that worked.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![Content::text(text)])
    }

    /// A text, of a call that failed.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self::text(text).with_status(ToolStatus::Failed)
    }

    /// Changes how it ended.
    #[must_use]
    pub const fn with_status(mut self, status: ToolStatus) -> Self {
        self.status = status;
        self
    }

    /// Adds the exit code of the command.
    #[must_use]
    pub const fn with_exit_code(mut self, exit_code: Option<i32>) -> Self {
        self.exit_code = exit_code;
        self
    }

    /// Names the messages of other agents that the content has.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<ItemId>) -> Self {
        self.messages = messages;
        self
    }

    /// Says whether the model sees only a part.
    #[must_use]
    pub const fn with_cut(mut self, cut: bool) -> Self {
        self.cut = cut;
        self
    }

    /// Says whether it tells of something that goes on by itself.
    #[must_use]
    pub const fn with_goes_on(mut self, goes_on: bool) -> Self {
        self.goes_on = goes_on;
        self
    }
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ToolStatus {
    /// It did what it was asked.
    Ok,
    /// It ran and says that it failed.
    Failed,
    /// It was cancelled; what it had to show by then is kept.
    Interrupted,
}

/// Why a tool call has no output; the text is what the model reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The call was cancelled before it had anything to show.
    #[error("the call was cancelled")]
    Cancelled,
    /// The environment said no.
    #[error("{}", with_sources(source))]
    Executor {
        /// What it said.
        source: ExecutorError,
    },
    /// It could not be done.
    #[error("{message}")]
    Failed {
        /// The thing, the place, and the way out.
        message: String,
    },
    /// The arguments are not what the tool takes.
    #[error("invalid arguments for {tool}: {message}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// Which argument, and what was expected.
        message: String,
    },
    /// It took too long and has nothing to show.
    #[error("{tool} timed out after {seconds} s")]
    TimedOut {
        /// The tool.
        tool: String,
        /// How long it was given.
        seconds: u64,
    },
}

impl ToolError {
    /// A failure told in words.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
        }
    }
}

impl From<ExecutorError> for ToolError {
    fn from(source: ExecutorError) -> Self {
        Self::Executor { source }
    }
}

/// The model gets one line of text, so the whole chain of causes goes into it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

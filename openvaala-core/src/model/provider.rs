//! The trait that every source of model answers implements.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use openvaala_protocol::usage::Usage;
use serde_json::value::RawValue;

use super::request::ModelRequest;

/// Something that answers model requests: a remote service, a local model, a script.
///
/// # Contract
///
/// *Streaming.* [`stream`](Self::stream) sends the request and gives the answer as it comes. The stream ends
/// after exactly one [`ModelEvent::Finished`] or one error; nothing comes after either. A stream that just
/// ends was cut off, and whoever reads it treats it so.
///
/// *Parts.* An answer is made of parts, each with a number of its own in this answer: started once, then
/// any number of deltas, then ended. Parts may grow at the same time. They appear in the order in which they
/// are started.
///
/// *Cancellation.* Dropping the future or the stream closes the connection; nothing else has to be done.
///
/// *Errors.* Every failure is a [`ModelError`] whose kind says whether asking again can help. Providers do not
/// retry by themselves and never wait without end: a connection that stays silent is an error.
///
/// *Sharing.* One provider serves many requests at once.
#[async_trait]
pub trait ModelProvider: fmt::Debug + Send + Sync + 'static {
    /// Sends a request and gives the answer as a stream of events.
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError>;

    /// The account that is asked, as far as it is known: a hash of the key, never the key.
    ///
    /// Opaque reasoning data goes back only to the same provider, model and account.
    fn account(&self) -> Option<&str>;
}

/// Something that happens while a model answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ModelEvent {
    /// A part of the answer begins.
    Started {
        /// Its number in this answer.
        part: u32,
        /// What it is.
        kind: PartKind,
    },
    /// A part has more text (for a tool call: of its arguments).
    Delta {
        /// Which part.
        part: u32,
        /// The text.
        text: String,
    },
    /// A part is complete.
    Ended {
        /// Which part.
        part: u32,
        /// For reasoning: what the provider wants to see again.
        opaque: Option<Box<RawValue>>,
    },
    /// The answer is complete.
    Finished {
        /// Why it ends here.
        reason: StopReason,
        /// The tokens that it took.
        usage: Usage,
    },
}

/// What a part of an answer is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PartKind {
    /// Text for the user.
    Text,
    /// Thinking.
    Reasoning,
    /// A tool that the model asks for; the deltas are its arguments, JSON text that may be broken.
    ToolCall {
        /// The call's id as the provider gave it, possibly empty.
        id: String,
        /// The tool's name.
        name: String,
    },
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model has said what it wanted to say, or asks for tools.
    Done,
    /// It ran into the limit of output tokens; the last text or tool call is cut.
    Length,
    /// The model or its provider refused.
    Refused,
}

/// A model request that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// What happened and what to do about it; never has a key in it.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the provider asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// What caused it.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ModelError {
    /// An error of that kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            source: None,
        }
    }

    /// Adds the HTTP status.
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds how long the provider asks to wait.
    #[must_use]
    pub const fn with_retry_after(mut self, after: Option<Duration>) -> Self {
        self.retry_after = after;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// What kind of failure a model request met.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No connection, or it broke, before the answer was complete.
    Connection,
    /// The certificate of the service is not trusted; asking again does not help.
    Certificate,
    /// The provider has too much to do, or failed on its side (HTTP 408, 409, 5xx).
    Unavailable,
    /// Too many requests (HTTP 429) that may be sent again later.
    RateLimited,
    /// The key is missing, wrong, or has no right to this (HTTP 401, 403).
    Unauthorized,
    /// The account has no credit left.
    Quota,
    /// There is no such model or endpoint (HTTP 404).
    NotFound,
    /// The request does not fit into the model's window.
    ContextTooLong,
    /// The provider finds fault with the request (HTTP 400 and the like).
    BadRequest,
    /// The provider refuses to answer this.
    Refused,
    /// The answer makes no sense.
    BadAnswer,
}

//! What a tool call is given besides its arguments.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::commands::Commands;

/// What a tool call is given besides its arguments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolContext {
    /// The id that the model knows the call by.
    pub call_id: String,
    /// Fires when the call has to end.
    pub cancel: Cancel,
    /// Takes the raw output as it comes.
    pub output: Arc<dyn OutputSink>,
    /// The commands of the session, which outlive the call; default `None`: whatever a call starts
    /// ends with it.
    pub commands: Option<Commands>,
}

impl ToolContext {
    /// The context of one call.
    #[must_use]
    pub const fn new(call_id: String, cancel: Cancel, output: Arc<dyn OutputSink>) -> Self {
        Self {
            call_id,
            cancel,
            output,
            commands: None,
        }
    }

    /// Lets what the call starts outlive it, as a command of the session.
    #[must_use]
    pub fn with_commands(mut self, commands: Commands) -> Self {
        self.commands = Some(commands);
        self
    }

    /// The context of a call that nobody cancels or watches.
    #[must_use]
    pub fn unattended(call_id: impl Into<String>) -> Self {
        Self::new(call_id.into(), Cancel::never(), Arc::new(NoOutput))
    }
}

/// The end of a call, as the call sees it.
#[derive(Clone, Debug)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Makes a pair: the handle that fires, and what it fires.
    #[must_use]
    pub fn new() -> (CancelHandle, Self) {
        let token = CancellationToken::new();
        (CancelHandle(token.clone()), Self(token))
    }

    /// One that never fires.
    #[must_use]
    pub fn never() -> Self {
        Self(CancellationToken::new())
    }

    /// Makes a pair of which the second fires also when `self` does.
    #[must_use]
    pub fn child(&self) -> (CancelHandle, Self) {
        let token = self.0.child_token();
        (CancelHandle(token.clone()), Self(token))
    }

    /// Tells whether it has fired.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it fires; cancel safe.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

/// Fires a [`Cancel`]; dropping it fires nothing.
#[derive(Clone, Debug)]
pub struct CancelHandle(CancellationToken);

impl CancelHandle {
    /// Fires; once is enough.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// Takes the raw output of a call while it runs, and of its command after it.
///
/// It is what clients watch and what the whole output is stored from; what the model sees is the
/// cut and cleaned text in the [`ToolOutput`](super::ToolOutput).
/// [`MemoryOutput`](crate::output::MemoryOutput) is one for embedders and tests.
#[async_trait]
pub trait OutputSink: Debug + Send + Sync {
    /// Takes some output; at least one byte, in the order of writing, one call at a time.
    ///
    /// Waits while its reader is behind: nothing more is read from the command meanwhile, so that
    /// memory stays flat. Whoever drops the future before its end writes nothing more.
    async fn write(&self, bytes: Bytes);

    /// Nothing more comes. Called once by whoever runs the command, possibly long after the call
    /// has returned, and not at all when the whole loop of commands is dropped.
    async fn end(&self) {}

    /// Gives back what was written, from `offset` on (in bytes of the whole output), at most
    /// `limit` bytes; `None` if nothing is kept.
    async fn read(&self, offset: u64, limit: usize) -> Option<Kept>;
}

/// A piece of kept output.
///
/// What lies between the offset that was asked for and its own is not kept; the next piece is at
/// [`next`](Self::next).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Kept {
    /// Where the bytes begin in the whole output; never before what was asked for.
    pub offset: u64,
    /// The bytes; none if nothing was written there by now.
    pub bytes: Bytes,
}

impl Kept {
    /// A piece that begins at an offset of the whole output.
    #[must_use]
    pub const fn new(offset: u64, bytes: Bytes) -> Self {
        Self { offset, bytes }
    }

    /// Where the piece after it is asked for.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

/// Drops all output.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOutput;

#[async_trait]
impl OutputSink for NoOutput {
    async fn write(&self, _bytes: Bytes) {}

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_child_fires_with_its_parent_and_not_the_other_way() {
        let (parent_handle, parent) = Cancel::new();
        let (first_handle, first) = parent.child();
        let (second_handle, second) = parent.child();
        first_handle.cancel();
        assert!(first.is_cancelled() && !parent.is_cancelled() && !second.is_cancelled());
        assert_eq!(second.cancelled().now_or_never(), None);
        drop(second_handle);
        assert!(!second.is_cancelled(), "dropping a handle fires nothing");
        parent_handle.cancel();
        assert_eq!(second.cancelled().now_or_never(), Some(()));
    }
}

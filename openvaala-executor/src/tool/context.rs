//! What a tool call is given besides its arguments.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

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
}

impl ToolContext {
    /// The context of one call.
    #[must_use]
    pub const fn new(call_id: String, cancel: Cancel, output: Arc<dyn OutputSink>) -> Self {
        Self {
            call_id,
            cancel,
            output,
        }
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

/// Takes the raw output of a call while it runs.
///
/// It is what clients watch and what the whole output is stored from; what the model sees is the
/// cut and cleaned text in the [`ToolOutput`](super::ToolOutput).
pub trait OutputSink: Debug + Send + Sync {
    /// Takes some output; at least one byte, in the order of writing.
    ///
    /// Never blocks, and may be called from any task.
    fn write(&self, bytes: Bytes);
}

/// Drops all output.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOutput;

impl OutputSink for NoOutput {
    fn write(&self, _bytes: Bytes) {}
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

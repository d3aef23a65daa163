//! The environments that tool calls run in.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use openvaala_protocol::id::ExecutorId;

use crate::error::ExecutorError;
use crate::workspace::Workspace;

/// An environment with a file system and a shell: this machine, a host, a sandbox.
///
/// An executor is shared by all conversations; what belongs to one of them is in the
/// [`Workspace`] that it opens.
///
/// # Cancellation
///
/// Dropping the future of [`open`](Self::open) leaves nothing behind.
#[async_trait]
pub trait Executor: Debug + Send + Sync + 'static {
    /// The name that the user and the model know it by; the same for as long as it exists.
    fn id(&self) -> &ExecutorId;

    /// What kind of environment it is, such as `local`; the word that a configuration file uses.
    fn kind(&self) -> &'static str;

    /// Opens a workspace whose working directory is `root`.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::InvalidPath`] unless `root` is an absolute path;
    /// [`ExecutorError::NotFound`] and [`ExecutorError::NotADirectory`] unless it exists and is a
    /// directory; [`ExecutorError::Environment`] when the environment can't be reached.
    async fn open(&self, root: &str) -> Result<Arc<dyn Workspace>, ExecutorError>;
}

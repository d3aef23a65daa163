//! A working directory on an executor, opened for one conversation.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use openvaala_protocol::id::ExecutorId;

use crate::file::Files;
use crate::process::Processes;
use crate::tool::Tool;

/// A working directory on an [`Executor`](crate::Executor), with what can be done in it.
///
/// One conversation owns it, and closes it. Relative paths mean relative to [`root`](Self::root).
#[async_trait]
pub trait Workspace: Debug + Send + Sync + 'static {
    /// The executor that it is on.
    fn executor(&self) -> &ExecutorId;

    /// The working directory as an absolute path.
    fn root(&self) -> &str;

    /// What the model is told about the environment.
    fn environment(&self) -> &EnvironmentInfo;

    /// Its file system.
    fn files(&self) -> &dyn Files;

    /// Its shell.
    fn processes(&self) -> &dyn Processes;

    /// The tools that it offers to the model, each name once.
    ///
    /// They hold what they need of the workspace, and fail with a clear error once it is closed.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Ends everything that was started in it; afterwards nothing can be started.
    ///
    /// Returns when every process group has been sent its kill, and, where the environment can find
    /// them, every process that left its group. Closing twice is closing once.
    async fn close(&self);
}

/// What the model is told about an environment.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct EnvironmentInfo {
    /// Operating system, such as `linux` or `macos`.
    pub os: String,
    /// Processor architecture, such as `x86_64`.
    pub arch: String,
    /// The shell that commands are given to, such as `/usr/bin/bash`.
    pub shell: String,
}

impl EnvironmentInfo {
    /// A description of an environment.
    #[must_use]
    pub const fn new(os: String, arch: String, shell: String) -> Self {
        Self { os, arch, shell }
    }
}

//! Checking what lies in a data directory, through its owner or beside it.

#[cfg(feature = "file")]
mod data_dir;

use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::params::check::CheckResult;
use tokio::sync::mpsc;

#[cfg(feature = "file")]
pub use self::data_dir::check_data_dir;
use super::{Progress, Runtime};
use crate::dao::check::Check;
use crate::error::RuntimeError;

/// What to check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Only this conversation, also in the trash; `None` means all.
    pub conversation: Option<ConversationId>,
    /// Whether to put right what can be put right without losing a byte.
    pub repair: bool,
    /// Where to tell how far it is; may lose figures if full.
    pub progress: Option<mpsc::Sender<Progress>>,
}

impl CheckOptions {
    /// Only that conversation.
    #[must_use]
    pub const fn conversation(mut self, id: Option<ConversationId>) -> Self {
        self.conversation = id;
        self
    }

    /// With repair, or without.
    #[must_use]
    pub const fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }

    /// Tells how far it is.
    #[must_use]
    pub fn progress(mut self, progress: mpsc::Sender<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl Runtime {
    /// Reads every stream of every conversation, those in the trash with them, and compares the index.
    ///
    /// A repair cuts torn ends into side files, finishes interrupted deletions and restorations, sets aside directories
    /// without metadata, and makes the index anew. It never throws a byte away and never touches a damaged entry in
    /// the middle of a stream. Dropping the future ends the check; a repair that has begun may still happen.
    ///
    /// # Errors
    /// [`RuntimeError::ConversationNotFound`] for an unknown [`CheckOptions::conversation`], or the storage's error if
    /// not even the directories can be listed.
    pub async fn check(&self, options: CheckOptions) -> Result<CheckResult, RuntimeError> {
        // What the start has begun would be found as something unfinished.
        self.caught_up().await;
        self.index.flush().await;
        let check = Check {
            log: &self.log,
            files: &self.files,
            index: Some(&self.index),
            only: options.conversation,
            repair: options.repair,
            progress: options.progress,
        };
        found(check.run().await?, options.conversation)
    }
}

fn found(result: CheckResult, asked: Option<ConversationId>) -> Result<CheckResult, RuntimeError> {
    match asked {
        Some(id) if result.conversations == 0 => Err(RuntimeError::ConversationNotFound { id }),
        _ => Ok(result),
    }
}

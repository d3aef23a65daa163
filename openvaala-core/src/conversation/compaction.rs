//! Summaries that somebody asks for.

use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::item::ContextSummary;
use tokio::sync::oneshot;

use super::command::Command;
use super::handle::ConversationHandle;
use crate::error::RuntimeError;
use crate::session::CompactionCommand;

/// The most bytes that a guidance may have.
const MAX_GUIDANCE: usize = 16_000;

/// How a session is summarised.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompactOptions {
    /// Which session; `None` means the root.
    pub session_id: Option<SessionId>,
    /// What the summary should look at above all.
    pub guidance: Option<String>,
    /// Only show what the summary would be.
    pub preview: bool,
}

impl CompactOptions {
    /// The same for another session.
    #[must_use]
    pub const fn of_session(mut self, session_id: Option<SessionId>) -> Self {
        self.session_id = session_id;
        self
    }

    /// The same with that guidance.
    #[must_use]
    pub fn with_guidance(mut self, guidance: Option<String>) -> Self {
        self.guidance = guidance;
        self
    }

    /// The same, to look at only.
    #[must_use]
    pub const fn with_preview(mut self, preview: bool) -> Self {
        self.preview = preview;
        self
    }
}

/// A summary that was made.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// Its item; `None` for a preview.
    pub item_id: Option<ItemId>,
    /// The summary with all that is kept beside it.
    pub summary: ContextSummary,
}

impl ConversationHandle {
    /// Has the session's model summarise what was said so far; later requests begin with the summary.
    ///
    /// The old items stay in the log. The summary is on disk when this returns; dropping the future does not stop it,
    /// [`interrupt`](Self::interrupt) does. With `preview` nothing is written but what it has cost.
    ///
    /// # Errors
    /// [`RuntimeError::SessionBusy`] while a turn or another summary is at work, [`RuntimeError::NotCompacted`] if
    /// there is nothing to summarise or the model gives no usable summary.
    pub async fn compact(&self, options: CompactOptions) -> Result<Compacted, RuntimeError> {
        let CompactOptions {
            session_id,
            guidance,
            preview,
        } = options;
        let guidance = guidance.filter(|guidance| !guidance.trim().is_empty());
        let size = guidance.as_ref().map_or(0, String::len);
        if size > MAX_GUIDANCE {
            return Err(RuntimeError::InvalidInput {
                message: format!(
                    "the guidance has {size} bytes, the limit is {MAX_GUIDANCE}: say it shorter"
                ),
            });
        }
        let (reply, wait) = oneshot::channel();
        let session = session_id.unwrap_or(self.root);
        let command = CompactionCommand::Compact {
            guidance,
            preview,
            reply,
        };
        self.command(Command::Compact { session, command })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }

    /// Takes the last summary of a session back and gives its item: requests are made from the items that it stood for
    /// again, and from what was said since.
    ///
    /// # Errors
    /// [`RuntimeError::SessionBusy`] while a turn or a summary is at work, [`RuntimeError::NotCompacted`] if there is no
    /// summary.
    pub async fn uncompact(&self, session: Option<SessionId>) -> Result<ItemId, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let session = session.unwrap_or(self.root);
        let command = CompactionCommand::Uncompact { reply };
        self.command(Command::Compact { session, command })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }
}

//! Conversations that lie in memory until their first message.

use openvaala_protocol::id::ConversationId;
use openvaala_storage::{Error, LogPath};
#[cfg(feature = "sqlite")]
use {openvaala_storage::StagedLogStorage, std::sync::Arc};

/// What moves a conversation from memory to the real storage, where there is such a thing.
///
/// Without the feature `sqlite`, and when the embedder's storage shall see everything at once, nothing is staged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Staging {
    #[cfg(feature = "sqlite")]
    staged: Option<Arc<StagedLogStorage>>,
}

#[cfg(feature = "sqlite")]
impl Staging {
    pub(crate) const fn new(staged: Arc<StagedLogStorage>) -> Self {
        Self {
            staged: Some(staged),
        }
    }

    /// Begins to keep a new conversation in memory.
    pub(crate) fn stage(&self, id: ConversationId) -> Result<(), Error> {
        if let Some(staged) = &self.staged {
            staged.stage(&super::conversation_path(id)?);
        }
        Ok(())
    }

    pub(crate) fn is_staged(&self, id: ConversationId) -> bool {
        super::conversation_path(id).is_ok_and(|path| self.is_staged_path(&path))
    }

    pub(crate) fn is_staged_path(&self, path: &LogPath) -> bool {
        let staged = self.staged.as_ref();
        staged.is_some_and(|staged| staged.is_staged(path))
    }

    /// Forgets a conversation that is still in memory; says whether it was.
    pub(crate) async fn discard(&self, id: ConversationId) -> Result<bool, Error> {
        match &self.staged {
            Some(staged) => staged.discard(&super::conversation_path(id)?).await,
            None => Ok(false),
        }
    }

    /// Moves a conversation to the real storage; does nothing if it is there.
    pub(crate) async fn promote(&self, id: ConversationId) -> Result<(), Error> {
        let Some(staged) = self.staged.as_ref().filter(|_| self.is_staged(id)) else {
            return Ok(());
        };
        staged
            .promote(&super::conversation_path(id)?, &super::metadata_stream()?)
            .await
    }
}

#[cfg(not(feature = "sqlite"))]
impl Staging {
    pub(crate) const fn stage(&self, _: ConversationId) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) const fn is_staged(&self, _: ConversationId) -> bool {
        false
    }

    pub(crate) const fn is_staged_path(&self, _: &LogPath) -> bool {
        false
    }

    #[allow(clippy::unused_async, reason = "the twin with the feature waits")]
    pub(crate) async fn discard(&self, _: ConversationId) -> Result<bool, Error> {
        Ok(false)
    }

    #[allow(clippy::unused_async, reason = "the twin with the feature waits")]
    pub(crate) async fn promote(&self, _: ConversationId) -> Result<(), Error> {
        Ok(())
    }
}

//! Deleting conversations, restoring them, and emptying the trash: one after the other, in the order of asking.

use std::collections::VecDeque;
use std::time::Duration;

use openvaala_protocol::id::ConversationId;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::Error;
use tokio::sync::oneshot;

use crate::conversation::{ConversationDeps, ConversationHandle};
use crate::dao::trash::{self, Fate, TrashedConversation, trashed_path};
use crate::dao::{conversation_path, query, reindex};
use crate::error::RuntimeError;

/// What came of a deletion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeletedConversation {
    /// Whether it lies in the trash; one without a message was in memory only, and nothing is left of it.
    pub in_trash: bool,
}

/// What to remove from the trash for ever; by default all of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct EmptyTrash {
    /// Only these; empty means all.
    pub ids: Vec<ConversationId>,
    /// Only those that were deleted at least so long ago; those of which nobody knows when stay then.
    pub older_than: Option<Duration>,
}

impl EmptyTrash {
    /// These only.
    #[must_use]
    pub fn of(ids: impl IntoIterator<Item = ConversationId>) -> Self {
        Self {
            ids: ids.into_iter().collect(),
            older_than: None,
        }
    }

    /// The same, but only what was deleted at least so long ago.
    #[must_use]
    pub const fn older_than(mut self, age: Option<Duration>) -> Self {
        self.older_than = age;
        self
    }
}

type Reply<T> = oneshot::Sender<Result<T, RuntimeError>>;

/// What is asked of the trash.
#[derive(Debug)]
pub(super) enum TrashCommand {
    Delete {
        id: ConversationId,
        reply: Reply<DeletedConversation>,
    },
    Restore {
        id: ConversationId,
        reply: Reply<()>,
    },
    Empty {
        options: EmptyTrash,
        reply: Reply<Vec<TrashedConversation>>,
    },
    /// Remove what the period that the user has set says.
    Expire,
}

impl TrashCommand {
    pub(super) const fn id(&self) -> Option<ConversationId> {
        match self {
            Self::Delete { id, .. } | Self::Restore { id, .. } => Some(*id),
            Self::Empty { .. } | Self::Expire => None,
        }
    }

    pub(super) fn refuse(self) {
        match self {
            Self::Delete { reply, .. } => drop(reply.send(Err(RuntimeError::Stopped))),
            Self::Restore { reply, .. } => drop(reply.send(Err(RuntimeError::Stopped))),
            Self::Empty { reply, .. } => drop(reply.send(Err(RuntimeError::Stopped))),
            Self::Expire => {}
        }
    }
}

/// What waits for its turn; one thing is done at a time.
#[derive(Debug, Default)]
pub(super) struct TrashQueue {
    pub(super) waiting: VecDeque<TrashCommand>,
    pub(super) is_busy: bool,
    /// The conversation that is on its way.
    pub(super) moving: Option<ConversationId>,
    /// Who wants to open that conversation.
    pub(super) openers: Vec<Reply<ConversationHandle>>,
}

/// Does what was asked and answers; `open` is the conversation's handle, if it is open.
pub(super) async fn perform(
    deps: &ConversationDeps,
    command: TrashCommand,
    open: Option<ConversationHandle>,
) {
    // Whoever has asked may have left, here and below.
    match command {
        TrashCommand::Delete { id, reply } => drop(reply.send(delete(deps, id, open).await)),
        TrashCommand::Restore { id, reply } => drop(reply.send(restore(deps, id).await)),
        TrashCommand::Empty { options, reply } => drop(reply.send(empty(deps, options).await)),
        TrashCommand::Expire => expire(deps).await,
    }
}

async fn delete(
    deps: &ConversationDeps,
    id: ConversationId,
    open: Option<ConversationHandle>,
) -> Result<DeletedConversation, RuntimeError> {
    let staged = deps.staging.is_staged(id);
    let fate = trash::fate(&deps.log, &conversation_path(id)?).await?;
    let fate = match fate {
        Some(fate) => fate,
        // One whose metadata is lost is listed all the same.
        None if query::salvaged(&deps.log, id).await?.is_some() => Fate::default(),
        None => return Err(RuntimeError::ConversationNotFound { id }),
    };
    let trashed = trash::fate(&deps.log, &trashed_path(id)?).await?;
    if trashed.is_some() {
        return Err(RuntimeError::InTrashAlready { id });
    }
    if !fate.deleted {
        let marked = match open {
            Some(handle) => handle.delete().await,
            None => None,
        };
        match marked {
            Some(marked) => marked?,
            None => trash::mark_deleted(&deps.log, id, deps.clock.now()).await?,
        }
    }
    let in_trash = if staged && deps.staging.is_staged(id) {
        !deps.staging.discard(id).await?
    } else {
        trash::move_in(&deps.log, id).await?;
        true
    };
    deps.index.remove(id);
    tracing::info!(conversation = %id, in_trash, "a conversation was deleted");
    Ok(DeletedConversation { in_trash })
}

async fn restore(deps: &ConversationDeps, id: ConversationId) -> Result<(), RuntimeError> {
    let (log, here) = (&deps.log, conversation_path(id)?);
    let trashed = trash::fate(log, &trashed_path(id)?).await?;
    match (trash::fate(log, &here).await?, &trashed) {
        // Its deletion was not finished: it is as if it were.
        (Some(fate), None) if fate.deleted => trash::move_in(log, id).await?,
        (Some(_), Some(_)) => return Err(RuntimeError::ConversationExists { id }),
        (_, None) => return Err(RuntimeError::NotInTrash { id }),
        (None, Some(_)) => {}
    }
    trash::mark_restored(log, id, deps.clock.now()).await?;
    match trash::move_out(log, id).await {
        Err(Error::PathExists { .. }) => return Err(RuntimeError::ConversationExists { id }),
        moved => moved?,
    }
    reindex::reindex_one(log, &deps.index, id).await?;
    tracing::info!(conversation = %id, "a conversation was restored from the trash");
    Ok(())
}

async fn empty(
    deps: &ConversationDeps,
    options: EmptyTrash,
) -> Result<Vec<TrashedConversation>, RuntimeError> {
    let mut chosen = trash::list(&deps.log).await?;
    // All or nothing is known before anything is removed.
    if let Some(id) = options
        .ids
        .iter()
        .find(|id| !chosen.iter().any(|it| it.id == **id))
    {
        return Err(RuntimeError::NotInTrash { id: *id });
    }
    let limit = options.older_than.map(|age| before(deps.clock.now(), age));
    chosen.retain(|it| {
        let named = options.ids.is_empty() || options.ids.contains(&it.id);
        let old = limit.is_none_or(|limit| it.deleted_at.is_some_and(|at| at <= limit));
        named && old
    });
    for conversation in &chosen {
        deps.log
            .delete_path(&trashed_path(conversation.id)?)
            .await?;
        tracing::info!(conversation = %conversation.id, "a deleted conversation was removed from the trash for ever");
    }
    Ok(chosen)
}

/// Removes what has been in the trash for longer than the user has set; nothing if nothing is set.
async fn expire(deps: &ConversationDeps) {
    let Some(age) = deps.definitions.borrow().keep_trash else {
        return;
    };
    let options = EmptyTrash::default().older_than(Some(age));
    match empty(deps, options).await {
        Ok(gone) if gone.is_empty() => {}
        Ok(gone) => {
            let days = age.as_secs() / 86_400;
            tracing::info!(
                count = gone.len(),
                days,
                "the trash was emptied of conversations that were deleted longer ago than `trash.keep_days`"
            );
        }
        Err(error) => tracing::warn!(%error, "the trash could not be emptied of what is too old"),
    }
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(age))
}

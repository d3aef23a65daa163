//! New conversations that begin with what was said and done in others.

use openvaala_protocol::id::{ConversationId, ItemId, SessionId};

use super::Runtime;
use super::run::Command;
use crate::conversation::{ConversationDeps, ConversationHandle};
use crate::dao::fork::{self, Given, Source};
use crate::error::RuntimeError;

/// What a new conversation begins with of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ForkConversation {
    /// The other conversation.
    pub conversation: ConversationId,
    /// Which session of it; `None` means the root.
    pub session: Option<SessionId>,
    /// The last item that the new one has; `None` means all, but for a turn that runs.
    pub at: Option<ItemId>,
    /// The id of the new one; `None` means one that nobody has.
    pub to: Option<ConversationId>,
}

impl ForkConversation {
    /// All that was said and done in the root session.
    #[must_use]
    pub const fn of(conversation: ConversationId) -> Self {
        Self {
            conversation,
            session: None,
            at: None,
            to: None,
        }
    }

    /// The same of another session.
    #[must_use]
    pub const fn session(mut self, session: Option<SessionId>) -> Self {
        self.session = session;
        self
    }

    /// The same up to an item.
    #[must_use]
    pub const fn at(mut self, item: Option<ItemId>) -> Self {
        self.at = item;
        self
    }

    /// The same with an id of the caller's choice, so that asking twice forks once.
    #[must_use]
    pub const fn to(mut self, id: Option<ConversationId>) -> Self {
        self.to = id;
        self
    }
}

impl Runtime {
    /// Begins a new conversation with what was said and done in another one; nothing of that one changes.
    ///
    /// It works at the same locations, with the session's model and agent, and has the same title. Its items keep their ids; inputs
    /// that wait are not copied. It is on disk as a whole when this returns; dropping the future does not stop it. If there is a
    /// conversation of the [chosen id](ForkConversation::to) already, that one is given.
    ///
    /// # Errors
    /// [`RuntimeError::ConversationNotFound`], [`RuntimeError::SessionNotFound`], [`RuntimeError::InvalidCut`] behind a tool call whose
    /// result comes later and in a turn that runs, [`RuntimeError::InvalidInput`] for an item that is not there or if there is
    /// nothing to copy yet, [`RuntimeError::InTrashAlready`] for the id of a deleted one, or the storage's error: then there is no
    /// new conversation.
    pub async fn fork(&self, fork: ForkConversation) -> Result<ConversationHandle, RuntimeError> {
        // What a crash has left open has its end then, and the conversation stays open meanwhile.
        let _open = self.open(fork.conversation).await?;
        let source = Source {
            conversation: fork.conversation,
            session: fork.session,
            at: fork.at,
        };
        let to = fork.to;
        self.ask(|reply| Command::Fork { source, to, reply })
            .await?
    }
}

/// Writes the new conversation, which can be opened then.
pub(super) async fn fork(
    deps: &ConversationDeps,
    source: Source,
    id: ConversationId,
) -> Result<(), RuntimeError> {
    let given = Given {
        id,
        session: SessionId::from_uuid(deps.ids.next()),
        now: deps.clock.now(),
        model: deps.definitions.borrow().default_model.clone(),
    };
    fork::fork(&deps.log, source, given).await?;
    tracing::info!(conversation = %id, from = %source.conversation, "a conversation was forked");
    Ok(())
}

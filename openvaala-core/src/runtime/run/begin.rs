//! New conversations, empty or forked, each once: who asks for an id that there is gets the one that there is.

use openvaala_protocol::id::ConversationId;

use super::{Done, Reply, RuntimeLoop};
use crate::conversation::{ConversationDeps, ConversationHandle, ConversationStart};
use crate::dao::conversation_path;
use crate::dao::fork::Source;
use crate::dao::trash::{fate, trashed_path};
use crate::error::RuntimeError;
use crate::runtime::fork::fork;
use crate::runtime::{NewConversation, load};

impl RuntimeLoop {
    pub(super) fn create(&mut self, new: NewConversation, reply: Reply<ConversationHandle>) {
        let chosen = new.id;
        let Some(id) = self.begin(chosen, reply) else {
            return;
        };
        let deps = self.deps.clone();
        self.work.spawn(async move {
            if chosen.is_some()
                && let Some(start) = earlier(&deps, id).await
            {
                return Done::Opened { id, start };
            }
            let start = load::create(&deps, id, new).await.map(Box::new);
            Done::Created { id, start }
        });
    }

    pub(super) fn fork(
        &mut self,
        source: Source,
        to: Option<ConversationId>,
        reply: Reply<ConversationHandle>,
    ) {
        let Some(id) = self.begin(to, reply) else {
            return;
        };
        let deps = self.deps.clone();
        self.work.spawn(async move {
            if to.is_some()
                && let Some(start) = earlier(&deps, id).await
            {
                return Done::Opened { id, start };
            }
            let forked = fork(&deps, source, id).await;
            Done::Forked { id, forked }
        });
    }

    /// Keeps the id of a new conversation for it; `None` if there is one of that id in memory, which is the answer then.
    fn begin(
        &mut self,
        chosen: Option<ConversationId>,
        reply: Reply<ConversationHandle>,
    ) -> Option<ConversationId> {
        let id = chosen.unwrap_or_else(|| ConversationId::from_uuid(self.deps.ids.next()));
        if self.open.contains_key(&id) || self.is_busy(id) {
            self.open(id, reply);
            return None;
        }
        self.opening.insert(id, vec![reply]);
        Some(id)
    }

    pub(super) fn created(
        &mut self,
        id: ConversationId,
        start: Result<Box<ConversationStart>, RuntimeError>,
    ) {
        match start {
            Ok(start) => {
                let handle = self.start(*start);
                self.opened(&handle);
            }
            Err(error) => self.not_opened(id, error),
        }
    }

    pub(super) fn forked(&mut self, id: ConversationId, forked: Result<(), RuntimeError>) {
        match forked {
            Ok(()) => {
                for reply in self.opening.remove(&id).unwrap_or_default() {
                    self.open(id, reply);
                }
            }
            Err(error) => self.not_opened(id, error),
        }
    }
}

/// The conversation that has that id already, or why there cannot be one; `None` if the id is free.
async fn earlier(
    deps: &ConversationDeps,
    id: ConversationId,
) -> Option<Result<Box<ConversationStart>, RuntimeError>> {
    match load::open(deps, id).await {
        Err(RuntimeError::ConversationNotFound { .. }) => {}
        opened => return Some(opened.map(Box::new)),
    }
    match is_deleted(deps, id).await {
        Ok(false) => None,
        Ok(true) => Some(Err(RuntimeError::InTrashAlready { id })),
        Err(error) => Some(Err(error)),
    }
}

async fn is_deleted(deps: &ConversationDeps, id: ConversationId) -> Result<bool, RuntimeError> {
    for path in [trashed_path(id)?, conversation_path(id)?] {
        if fate(&deps.log, &path).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

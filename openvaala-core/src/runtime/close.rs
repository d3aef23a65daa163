//! Closing a conversation because somebody asks for it.

use std::time::Duration;

use openvaala_protocol::id::ConversationId;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::Runtime;
use super::run::Command;
use crate::conversation::ConversationHandle;
use crate::dao::query;
use crate::error::RuntimeError;

/// How long to let things go on between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// How to close a conversation.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CloseConversation {
    /// Whether what runs in it is ended first; default no.
    pub interrupt: bool,
    /// How long it is waited for while it is in use; default not at all.
    pub wait: Duration,
}

impl CloseConversation {
    /// The same, ending what runs.
    #[must_use]
    pub const fn with_interrupt(mut self, interrupt: bool) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// The same with some patience.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// What came of a try.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Closed {
    /// It is not in memory any more.
    Now,
    /// It was not in memory.
    Before,
    /// It is in use.
    No,
}

/// Who waits to hear what came of a try.
pub(super) type CloseReply = oneshot::Sender<Closed>;

impl Runtime {
    /// Takes a conversation out of the memory; says whether it was there. The next [`open`](Self::open) loads it again.
    ///
    /// Dropping the future may leave what runs interrupted.
    ///
    /// # Errors
    /// [`RuntimeError::ConversationBusy`] if something runs or waits in it, somebody watches it, or a handle is held,
    /// also after the wait; [`RuntimeError::ConversationNotFound`]; the storage's error.
    pub async fn close_conversation(
        &self,
        id: ConversationId,
        options: CloseConversation,
    ) -> Result<bool, RuntimeError> {
        let deadline = Instant::now() + options.wait;
        let mut shall_end = options.interrupt;
        loop {
            if shall_end && let Some(conversation) = self.loaded(id).await? {
                conversation.end_all().await?;
                shall_end = false;
            }
            match self.ask(|reply| Command::Close { id, reply }).await? {
                Closed::Now => return Ok(true),
                Closed::Before => return self.exists(id).await.map(|()| false),
                Closed::No if Instant::now() < deadline => sleep(PAUSE).await,
                Closed::No => {
                    let why = match self.loaded(id).await? {
                        Some(conversation) => why_busy(&conversation).await,
                        None => "it is just being loaded or closed".to_owned(),
                    };
                    return Err(RuntimeError::ConversationBusy {
                        conversation: id,
                        why,
                    });
                }
            }
        }
    }

    /// The conversation, if it is in memory.
    async fn loaded(&self, id: ConversationId) -> Result<Option<ConversationHandle>, RuntimeError> {
        self.ask(|reply| Command::Loaded { id, reply }).await
    }

    async fn exists(&self, id: ConversationId) -> Result<(), RuntimeError> {
        let model = self.definitions().default_model.clone();
        query::existing(&self.log, id, model).await.map(drop)
    }
}

/// Says what keeps it open.
async fn why_busy(conversation: &ConversationHandle) -> String {
    let sessions = conversation.tree().await.unwrap_or_default();
    let waiting = sessions.iter().map(|session| session.pending.len()).sum();
    let questions = conversation.approvals().await.unwrap_or_default().len();
    let parts = [
        (conversation.running_turns(), "turns run"),
        (conversation.running_commands().await, "commands run"),
        (waiting, "inputs wait"),
        (questions, "questions wait for an answer"),
    ];
    let mut parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if conversation.is_watched().await {
        parts.push("somebody has subscribed to it".to_owned());
    }
    if parts.is_empty() {
        return "another request about it is worked on: try again".to_owned();
    }
    parts.join(", ")
}

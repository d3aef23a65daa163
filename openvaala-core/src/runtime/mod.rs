//! The root object: definitions, and the table of open conversations.

mod builder;
mod check;
mod close;
mod definitions;
mod fork;
mod load;
mod run;
mod trash;
mod unload;
mod windows;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::conversation::{ModelRef, WorkLocation};
use openvaala_protocol::id::{ConversationId, ExecutorId};
use openvaala_protocol::rpc::params::approval::OpenApproval;
use openvaala_storage::LogStorage;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

pub use self::builder::RuntimeBuilder;
pub use self::check::CheckOptions;
#[cfg(feature = "file")]
pub use self::check::check_data_dir;
pub use self::close::CloseConversation;
pub use self::definitions::{AgentDefinition, Definitions};
pub use self::fork::ForkConversation;
use self::run::Command;
use self::trash::TrashCommand;
pub use self::trash::{DeletedConversation, EmptyTrash};
pub use self::windows::{CompactionPolicy, ContextWindows};
use crate::conversation::ConversationHandle;
use crate::dao::files::Files;
use crate::dao::index::Index;
use crate::dao::list::{ConversationPage, ListConversations};
use crate::dao::trash::{self as dao_trash, TrashedConversation};
use crate::error::RuntimeError;

/// How long a shutdown waits for what an earlier runtime has left.
const CATCHING_UP: Duration = Duration::from_secs(1);

/// Owns conversations; clones are the same runtime.
///
/// Its loops end when the last clone is dropped. Call [`shutdown`](Self::shutdown) before that: it writes down that
/// running turns were interrupted.
#[derive(Clone, Debug)]
pub struct Runtime {
    commands: mpsc::Sender<Command>,
    definitions: watch::Sender<Arc<Definitions>>,
    index: Index,
    log: Arc<dyn LogStorage>,
    files: Files,
    caught_up: watch::Receiver<bool>,
}

/// What a new conversation begins with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NewConversation {
    /// Where its tools run; with none it has only the tools of the runtime.
    pub executors: Vec<WorkLocation>,
    /// The model to ask; `None` means the default one.
    pub model: Option<ModelRef>,
    /// The name of the agent that works in it; `None` means the default one, with all tools.
    pub agent: Option<String>,
    /// Which tool calls run without a question; `None` means as the runtime is configured.
    pub approval_mode: Option<ApprovalMode>,
    /// Its id; `None` means one that nobody has.
    pub id: Option<ConversationId>,
}

impl NewConversation {
    /// A conversation that works at those locations and asks that model.
    #[must_use]
    pub const fn new(executors: Vec<WorkLocation>, model: Option<ModelRef>) -> Self {
        Self {
            executors,
            model,
            agent: None,
            approval_mode: None,
            id: None,
        }
    }

    /// The same with a mode of its own.
    #[must_use]
    pub const fn with_approval_mode(mut self, mode: Option<ApprovalMode>) -> Self {
        self.approval_mode = mode;
        self
    }

    /// The same with an agent of the definitions.
    #[must_use]
    pub fn with_agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// The same with an id of the caller's choice, so that asking twice creates one.
    #[must_use]
    pub const fn with_id(mut self, id: Option<ConversationId>) -> Self {
        self.id = id;
        self
    }

    /// A conversation that works in a folder of the executor `local`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let root = folder.into().to_string_lossy().into_owned();
        Self::new(
            vec![WorkLocation {
                executor: ExecutorId::local(),
                root,
            }],
            None,
        )
    }
}

/// How far a reindex has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How many conversations are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// What came of a reindex.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ReindexReport {
    /// How many conversations are in the index.
    pub conversations: u64,
    /// What could not be read, a line each; it stays on disk untouched.
    pub damaged: Vec<String>,
}

/// How a runtime is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RuntimeStatus {
    /// How many conversations are open in memory.
    pub open_conversations: usize,
    /// How many turns run.
    pub running_turns: usize,
    /// How many commands run, in the background or attended by a call.
    pub running_commands: usize,
    /// What does not work as it should, in words.
    pub degraded: Vec<String>,
}

impl Runtime {
    /// Begins to describe a runtime.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::default()
    }

    /// Creates an empty conversation.
    ///
    /// With the feature `sqlite` nothing of it is written to the log storage before its first message. If there is a
    /// conversation of the [chosen id](NewConversation::id) already, that one is given as it is.
    ///
    /// # Errors
    /// Names a provider or executor that there is not, or a folder that cannot be worked in;
    /// [`RuntimeError::InTrashAlready`] for the id of a deleted one.
    pub async fn create(&self, new: NewConversation) -> Result<ConversationHandle, RuntimeError> {
        self.ask(|reply| Command::Create {
            new: Box::new(new),
            reply,
        })
        .await?
    }

    /// Gives a conversation, from memory or from the log.
    ///
    /// # Errors
    /// [`RuntimeError::ConversationNotFound`], or why its log cannot be read.
    pub async fn open(&self, id: ConversationId) -> Result<ConversationHandle, RuntimeError> {
        self.ask(|reply| Command::Open { id, reply }).await?
    }

    /// Lists conversations, the last used first. Empty ones that are still in memory are not listed.
    ///
    /// A damaged conversation is listed like any other, with what is known of it. After a start, and while the index is
    /// repaired, waits at most a second for it; then the page says that it is [stale](ConversationPage::stale).
    ///
    /// # Errors
    /// [`RuntimeError::InvalidInput`] for a cursor that no page gave, or the storage's error if the index cannot be read.
    pub async fn list(&self, options: ListConversations) -> Result<ConversationPage, RuntimeError> {
        self.index.list(options).await
    }

    /// Waits until all that an earlier runtime has left is taken care of: the index is in step with the log, turns that were
    /// left open have ended.
    ///
    /// Nothing has to wait for it: what is opened is settled by then, and a list says whether it is stale.
    pub async fn caught_up(&self) {
        // An error says that the runtime has ended, or that it leaves alone what was left.
        let _ = self
            .caught_up
            .clone()
            .wait_for(|caught_up| *caught_up)
            .await;
    }

    /// Deletes a conversation: what runs in it is interrupted, whoever watches is told, and all of it goes to the trash.
    ///
    /// It can be [restored](Self::restore_conversation) from there. Dropping the future does not take it back.
    ///
    /// # Errors
    /// [`RuntimeError::ConversationNotFound`], [`RuntimeError::InTrashAlready`], or the storage's error: then it is still there,
    /// or the next start finishes the deletion.
    pub async fn delete_conversation(
        &self,
        id: ConversationId,
    ) -> Result<DeletedConversation, RuntimeError> {
        self.ask(|reply| Command::Trash(TrashCommand::Delete { id, reply }))
            .await?
    }

    /// Brings a conversation back from the trash, with everything as it was.
    ///
    /// # Errors
    /// [`RuntimeError::NotInTrash`], [`RuntimeError::ConversationExists`], or the storage's error.
    pub async fn restore_conversation(&self, id: ConversationId) -> Result<(), RuntimeError> {
        self.ask(|reply| Command::Trash(TrashCommand::Restore { id, reply }))
            .await?
    }

    /// Lists what is in the trash, the last deleted first.
    ///
    /// # Errors
    /// The storage's error if the trash cannot be listed.
    pub async fn trash(&self) -> Result<Vec<TrashedConversation>, RuntimeError> {
        Ok(dao_trash::list(&self.log).await?)
    }

    /// Removes deleted conversations for ever; gives those that are gone. Nothing else ever removes one, but for the period
    /// in [`Definitions::keep_trash`].
    ///
    /// # Errors
    /// [`RuntimeError::NotInTrash`] if one of the ids is not there; then nothing is removed. The storage's error: some
    /// may be removed by then.
    pub async fn empty_trash(
        &self,
        options: EmptyTrash,
    ) -> Result<Vec<TrashedConversation>, RuntimeError> {
        self.ask(|reply| Command::Trash(TrashCommand::Empty { options, reply }))
            .await?
    }

    /// Makes the index anew from the log; tells how far it is through `progress`, which may lose figures if full.
    ///
    /// It is made beside the old one, which serves meanwhile, and takes its place when it is whole: an interruption leaves the
    /// old one. Dropping the future does not stop it.
    ///
    /// # Errors
    /// The storage's error if log or index fail as a whole. Single conversations that cannot be read are in
    /// the report.
    pub async fn reindex(
        &self,
        progress: mpsc::Sender<Progress>,
    ) -> Result<ReindexReport, RuntimeError> {
        self.index.rebuild(Some(progress)).await
    }

    /// Tells how the runtime is.
    ///
    /// # Errors
    /// [`RuntimeError::Stopped`].
    pub async fn status(&self) -> Result<RuntimeStatus, RuntimeError> {
        let mut status = self.ask(|reply| Command::Status { reply }).await?;
        status.degraded.extend(self.files.degraded().await);
        status.degraded.extend(self.index.trouble());
        Ok(status)
    }

    /// What conversations are run with now.
    #[must_use]
    pub fn definitions(&self) -> Arc<Definitions> {
        Arc::clone(&self.definitions.borrow())
    }

    /// Replaces what conversations are run with; running turns go on with what they began with.
    pub fn replace_definitions(&self, definitions: Definitions) {
        self.definitions.send_replace(Arc::new(definitions));
    }

    /// Lists the open questions whether a tool call may run, of all open conversations, the oldest first.
    ///
    /// One with such a question is never closed, so there are no others.
    ///
    /// # Errors
    /// [`RuntimeError::Stopped`].
    pub async fn approvals(&self) -> Result<Vec<OpenApproval>, RuntimeError> {
        self.ask(|reply| Command::Approvals { reply }).await
    }

    /// Interrupts what runs, writes that down, closes all conversations and ends the runtime.
    ///
    /// Returns when all is written; calling it again does nothing. What an earlier runtime has left at work is taken care of
    /// before, unless that takes longer than a second: then it is left to the next start.
    pub async fn shutdown(&self) {
        let _ = timeout(CATCHING_UP, self.caught_up()).await;
        // An error says that it has ended before.
        let _ = self.ask(|reply| Command::Stop { reply }).await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        self.commands
            .send(command(reply))
            .await
            .map_err(|_| RuntimeError::Stopped)?;
        wait.await.map_err(|_| RuntimeError::Stopped)
    }
}

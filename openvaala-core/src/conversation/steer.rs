//! What embedders and the server change of a conversation that is open.

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{Conversation, PendingInput, Session};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::rpc::params::pending::WholeInput;
use tokio::sync::oneshot;

use super::ConversationChange;
use super::command::Command;
use super::handle::{ConversationHandle, Refs, check};
use crate::dao::record::QueuedInput;
use crate::error::RuntimeError;
use crate::session::{Answer, PendingChange, Request, SessionChange};

/// The inputs that wait for a session.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Pending {
    /// They, with all that was said, in the order in which they will be taken.
    pub inputs: Vec<WholeInput>,
    /// Whether they stay until the next send or [`resume`](ConversationHandle::resume).
    pub held: bool,
}

/// What shall be different in an input that waits; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PendingUpdate {
    /// What it says. A large image of the input may be given as the reference that [`Pending`] has.
    pub content: Option<Vec<Content>>,
    /// Whether the running turn shall read it, or one that comes after it.
    pub steer: Option<bool>,
}

impl PendingUpdate {
    /// Other content.
    #[must_use]
    pub fn content(content: Vec<Content>) -> Self {
        Self::default().with_content(Some(content))
    }

    /// For the running turn, or not for it any more.
    #[must_use]
    pub fn steer(steer: bool) -> Self {
        Self::default().with_steer(Some(steer))
    }

    /// The same with other content.
    #[must_use]
    pub fn with_content(mut self, content: Option<Vec<Content>>) -> Self {
        self.content = content;
        self
    }

    /// The same for the running turn, or not.
    #[must_use]
    pub const fn with_steer(mut self, steer: Option<bool>) -> Self {
        self.steer = steer;
        self
    }
}

impl ConversationHandle {
    /// Gives the inputs that wait for a session; `None` means the root, here and below.
    ///
    /// # Errors
    /// [`RuntimeError::SessionNotFound`].
    pub async fn pending(&self, session: Option<SessionId>) -> Result<Pending, RuntimeError> {
        let answer = self.ask(session, Request::ListPending).await?;
        let (inputs, held) = pending_of(answer)?;
        let inputs = inputs.into_iter().map(whole).collect();
        Ok(Pending { inputs, held })
    }

    /// Changes an input that waits; gives all that waited once that was done, and is on disk when it returns.
    ///
    /// An input that shall steer while no turn runs goes on waiting for the next.
    ///
    /// # Errors
    /// [`RuntimeError::InputTaken`], [`RuntimeError::InputNotFound`], [`RuntimeError::InvalidInput`] for no or too much content,
    /// [`RuntimeError::NotWritten`] if the storage did not take it.
    pub async fn update_pending(
        &self,
        session: Option<SessionId>,
        input: ItemId,
        update: PendingUpdate,
    ) -> Result<Vec<PendingInput>, RuntimeError> {
        if let Some(content) = &update.content {
            check(content, Refs::Allowed)?;
        }
        let PendingUpdate { content, steer } = update;
        let change = PendingChange::Update {
            item_id: input,
            content,
            steer,
        };
        self.change_pending(session, change).await
    }

    /// Takes inputs back that wait, all of them or none; gives what still waited, and is on disk when it returns.
    ///
    /// The ids of such inputs are not accepted again. Once nothing waits, nothing is held.
    ///
    /// # Errors
    /// As [`update_pending`](Self::update_pending).
    pub async fn withdraw_pending(
        &self,
        session: Option<SessionId>,
        inputs: Vec<ItemId>,
    ) -> Result<Vec<PendingInput>, RuntimeError> {
        let change = PendingChange::Withdraw { item_ids: inputs };
        self.change_pending(session, change).await
    }

    /// Puts the inputs that wait into that order; gives them, and is on disk when it returns.
    ///
    /// # Errors
    /// [`RuntimeError::QueueChanged`] if these are not exactly the inputs that wait, [`RuntimeError::NotWritten`].
    pub async fn reorder_pending(
        &self,
        session: Option<SessionId>,
        inputs: Vec<ItemId>,
    ) -> Result<Vec<PendingInput>, RuntimeError> {
        let change = PendingChange::Reorder { item_ids: inputs };
        self.change_pending(session, change).await
    }

    /// Lets inputs go on that are held since a turn was interrupted or has failed; says whether there were any.
    ///
    /// # Errors
    /// [`RuntimeError::SessionNotFound`], [`RuntimeError::NotWritten`].
    pub async fn resume(&self, session: Option<SessionId>) -> Result<bool, RuntimeError> {
        let request = Request::Pending(PendingChange::Resume);
        match self.ask(session, request).await? {
            Answer::Resumed(resumed) => Ok(resumed),
            _ => Err(RuntimeError::Stopped),
        }
    }

    /// Gives a session another model, effort or agent from its next turn on; gives the session, and is on disk when it returns.
    ///
    /// Subscribers are told the new state, and each difference is an item of the session's log.
    ///
    /// # Errors
    /// [`RuntimeError::UnknownProvider`], [`RuntimeError::UnknownAgent`], [`RuntimeError::InvalidInput`] for a model without a name:
    /// then nothing changes. [`RuntimeError::NotWritten`].
    pub async fn change_session(
        &self,
        session: Option<SessionId>,
        change: SessionChange,
    ) -> Result<Session, RuntimeError> {
        self.check_change(&change)?;
        match self.ask(session, Request::Change(change)).await? {
            Answer::Session(session) => Ok(*session),
            _ => Err(RuntimeError::Stopped),
        }
    }

    /// Renames or archives the conversation, or moves it to other executors or folders from the next turn on; gives it, and is on
    /// disk when it returns.
    ///
    /// A conversation without a message is in memory only, and its change with it.
    ///
    /// # Errors
    /// [`RuntimeError::InvalidInput`] for a title that is none, [`RuntimeError::UnknownExecutor`], [`RuntimeError::Executor`] for a
    /// folder that cannot be worked in: then nothing changes. [`RuntimeError::NotWritten`].
    pub async fn change(&self, change: ConversationChange) -> Result<Conversation, RuntimeError> {
        let change = change.checked()?;
        let (reply, wait) = oneshot::channel();
        self.command(Command::Change { change, reply })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }

    fn check_change(&self, change: &SessionChange) -> Result<(), RuntimeError> {
        let definitions = self.definitions.borrow();
        if let Some(model) = &change.model {
            definitions.provider(&model.provider)?;
            if model.model.trim().is_empty() {
                let message = "the model has no name: give the provider's name of it".to_owned();
                return Err(RuntimeError::InvalidInput { message });
            }
        }
        if let Some(agent) = change.agent.as_deref().filter(|agent| !agent.is_empty()) {
            definitions.agent(agent)?;
        }
        Ok(())
    }

    async fn change_pending(
        &self,
        session: Option<SessionId>,
        change: PendingChange,
    ) -> Result<Vec<PendingInput>, RuntimeError> {
        let answer = self.ask(session, Request::Pending(change)).await?;
        let (inputs, _) = pending_of(answer)?;
        Ok(inputs.iter().map(QueuedInput::to_wire).collect())
    }

    async fn ask(
        &self,
        session: Option<SessionId>,
        request: Request,
    ) -> Result<Answer, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let session = session.unwrap_or(self.root);
        self.command(Command::Request {
            session,
            request,
            reply,
        })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }
}

fn pending_of(answer: Answer) -> Result<(Vec<QueuedInput>, bool), RuntimeError> {
    match answer {
        Answer::Pending { inputs, held } => Ok((inputs, held)),
        // A session answers what it was asked.
        _ => Err(RuntimeError::Stopped),
    }
}

fn whole(input: QueuedInput) -> WholeInput {
    let PendingInput {
        item_id,
        preview,
        image_count,
        is_steer,
        from: _,
    } = input.to_wire();
    WholeInput {
        item_id,
        preview,
        image_count,
        is_steer,
        queued_at: input.queued_at,
        content: input.content,
    }
}

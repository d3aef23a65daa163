//! Commands that run in the background of a conversation's sessions, for who looks after them from outside.

use std::time::Duration;

use futures::future::join_all;
use openvaala_executor::commands::{
    CommandError, CommandHandle, CommandId, CommandInfo, Commands, StoppedBy,
};
use openvaala_executor::process::Signal;
use openvaala_protocol::id::SessionId;
use openvaala_protocol::rpc::params::session::InterruptScope;
use tokio::sync::oneshot;

use super::ConversationHandle;
use super::command::Command;
use crate::error::RuntimeError;

/// How long the end of a command is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command in the background.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TerminalInfo {
    /// The session whose agent has started it.
    pub session_id: SessionId,
    /// What is known of it now.
    pub command: CommandInfo,
}

impl ConversationHandle {
    /// Lists the commands in the background of a session, or of all: those that run and the last that have ended.
    ///
    /// # Errors
    /// [`RuntimeError::SessionNotFound`], [`RuntimeError::Stopped`].
    pub async fn terminals(
        &self,
        session: Option<SessionId>,
    ) -> Result<Vec<TerminalInfo>, RuntimeError> {
        let mut all = self.commands().await?;
        if let Some(session) = session {
            all.retain(|(id, _)| *id == session);
            if all.is_empty() {
                return Err(self.no_session(session));
            }
        }
        all.sort_by_key(|(session, _)| (*session != self.root, *session));
        let listed = all.into_iter().map(|(session_id, commands)| async move {
            let listed = commands.list().await.into_iter();
            let left = listed.filter(|command| command.left);
            left.map(|command| TerminalInfo {
                session_id,
                command,
            })
            .collect::<Vec<_>>()
        });
        Ok(join_all(listed).await.into_iter().flatten().collect())
    }

    /// Gives a command in the background; `None` means of the root session.
    ///
    /// # Errors
    /// [`RuntimeError::TerminalNotFound`] also for one that a call still attends to, [`RuntimeError::SessionNotFound`],
    /// [`RuntimeError::Stopped`].
    pub async fn terminal(
        &self,
        session: Option<SessionId>,
        id: CommandId,
    ) -> Result<CommandHandle, RuntimeError> {
        let session = session.unwrap_or(self.root);
        let all = self.commands().await?;
        let commands = all.into_iter().find(|(known, _)| *known == session);
        let (_, commands) = commands.ok_or_else(|| self.no_session(session))?;
        match commands.get(id).await {
            Ok(handle) if handle.info().left => Ok(handle),
            Ok(_) | Err(CommandError::NotFound { .. }) => {
                let listed = commands.list().await.into_iter();
                let known = listed.filter(|command| command.left);
                let known = known.map(|command| command.id).collect();
                Err(RuntimeError::TerminalNotFound { session, id, known })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Interrupts every turn and ends every command; returns when that is written down.
    pub(crate) async fn end_all(&self) -> Result<(), RuntimeError> {
        self.interrupt_within(None, InterruptScope::Tree).await?;
        for (_, commands) in self.commands().await? {
            let ends = commands.list().await.into_iter();
            let ends = ends
                .filter(|command| command.status.is_running())
                .map(|command| end(&commands, command.id));
            join_all(ends).await;
        }
        Ok(())
    }

    async fn commands(&self) -> Result<Vec<(SessionId, Commands)>, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let asked = self.commands.send(Command::Commands { reply }).await;
        asked.map_err(|_| RuntimeError::Stopped)?;
        wait.await.map_err(|_| RuntimeError::Stopped)
    }

    const fn no_session(&self, session: SessionId) -> RuntimeError {
        RuntimeError::SessionNotFound {
            conversation: self.id,
            session,
        }
    }
}

async fn end(commands: &Commands, id: CommandId) {
    if let Ok(handle) = commands.get(id).await {
        // One that is gone has ended; one that cannot be ended is told by the refusal to close.
        let _ = handle
            .stop_within(Signal::Terminate, StoppedBy::Kill, PATIENCE)
            .await;
    }
}

//! A command, seen from outside its task.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::DropGuard;

use super::info::State;
use super::runner::Ask;
use super::{CommandError, CommandId, CommandInfo, CommandStatus, StoppedBy};
use crate::output::Clipped;
use crate::process::Signal;
use crate::tool::OutputSink;

/// A command of a session; a clone means the same one.
#[derive(Clone, Debug)]
pub struct CommandHandle {
    id: CommandId,
    line: Arc<str>,
    started: Instant,
    asks: mpsc::Sender<Ask>,
    state: watch::Receiver<State>,
    output: Arc<dyn OutputSink>,
}

/// A command together with the attention of the call that started it: dropping it ends the
/// command.
#[derive(Debug)]
pub struct Attended {
    handle: CommandHandle,
    guard: DropGuard,
}

impl Attended {
    pub(super) const fn new(handle: CommandHandle, guard: DropGuard) -> Self {
        Self { handle, guard }
    }

    /// The command.
    #[must_use]
    pub const fn handle(&self) -> &CommandHandle {
        &self.handle
    }

    /// Stops attending to it: it goes on as a command of the session.
    pub async fn leave(self) -> CommandHandle {
        // First, so that it is known as left before anybody can ask.
        let _ = self.handle.asks.send(Ask::Leave).await;
        self.guard.disarm();
        self.handle
    }
}

impl CommandHandle {
    pub(super) const fn new(
        id: CommandId,
        line: Arc<str>,
        started: Instant,
        asks: mpsc::Sender<Ask>,
        state: watch::Receiver<State>,
        output: Arc<dyn OutputSink>,
    ) -> Self {
        Self {
            id,
            line,
            started,
            asks,
            state,
            output,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> CommandId {
        self.id
    }

    /// What is known of it now.
    #[must_use]
    pub fn info(&self) -> CommandInfo {
        let state = self.state.borrow();
        CommandInfo {
            id: self.id,
            line: self.line.to_string(),
            status: self.status_in(&state),
            left: state.left,
            started_ago: self.started.elapsed(),
            ended_ago: state.ended.map(|at| at.elapsed()),
            bytes: state.bytes,
            input_bytes: state.input_bytes,
        }
    }

    /// Whether it runs, or how it ended.
    #[must_use]
    pub fn status(&self) -> CommandStatus {
        self.status_in(&self.state.borrow())
    }

    fn status_in(&self, state: &State) -> CommandStatus {
        // Its task is gone without having told an end: it was dropped, or a sink panicked.
        if state.status.is_running() && self.asks.is_closed() {
            let message = "its task is gone, and it was killed".to_owned();
            return CommandStatus::Lost { message };
        }
        state.status.clone()
    }

    /// The sink that its raw output goes to.
    #[must_use]
    pub fn output(&self) -> &dyn OutputSink {
        &*self.output
    }

    /// Tells whether nothing of it runs any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        !self.status().is_running()
    }

    /// Waits until its shell has gone and all was read that comes with it: what runs then goes on
    /// by itself in the background. Cancel safe.
    pub async fn settled(&self) {
        self.when(|state| state.settled).await;
    }

    /// Waits until nothing of it runs any more. Cancel safe.
    pub async fn ended(&self) {
        self.when(|state| !state.status.is_running()).await;
    }

    /// Waits until there is text that nobody has looked at, or nothing runs any more. Cancel safe.
    pub async fn news(&self) {
        self.when(|state| state.unseen || !state.status.is_running())
            .await;
    }

    /// Takes the text that nobody has looked at: what a terminal would show, cut to head and tail.
    ///
    /// # Errors
    ///
    /// [`CommandError::Gone`].
    pub async fn take_text(&self) -> Result<Clipped, CommandError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Ask::Look(reply)).await?;
        answer.await.map_err(|_| CommandError::Gone { id: self.id })
    }

    /// Asks it to end, with all that it started; with [`Signal::Terminate`] it is killed if it has
    /// not ended after 500 ms. Returns at once; [`ended`](Self::ended) waits.
    ///
    /// # Errors
    ///
    /// [`CommandError::Gone`].
    pub async fn stop(&self, signal: Signal, by: StoppedBy) -> Result<(), CommandError> {
        self.ask(Ask::Stop { signal, by }).await
    }

    /// Asks it to end and waits for that, but no longer than `patience`.
    ///
    /// # Errors
    ///
    /// [`CommandError::Gone`].
    pub async fn stop_within(
        &self,
        signal: Signal,
        by: StoppedBy,
        patience: Duration,
    ) -> Result<(), CommandError> {
        let deadline = Instant::now() + patience;
        self.stop(signal, by).await?;
        // One that can't be killed is told by its status.
        let _ = timeout_at(deadline, self.ended()).await;
        Ok(())
    }

    /// Writes to its standard input, and with `end` closes it after that. Waits until the system
    /// has taken all of it; an empty write with `end` only closes.
    ///
    /// # Errors
    ///
    /// [`CommandError::NoInput`], [`CommandError::InputEnded`], [`CommandError::InputUnread`] while
    /// an earlier write waits, [`CommandError::Ended`], [`CommandError::Gone`], and
    /// [`CommandError::Executor`] when nobody reads it any more.
    ///
    /// # Cancellation
    ///
    /// A write whose future is dropped goes on.
    pub async fn write(&self, bytes: Bytes, end: bool) -> Result<(), CommandError> {
        self.feed(bytes, end, None).await
    }

    /// Writes like [`write`](Self::write), but only if exactly `at` bytes were written before. A write that
    /// was made there before is not made again, so one whose answer was lost can be repeated.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write), and [`CommandError::InputMoved`] if something else was written there.
    pub async fn write_at(&self, bytes: Bytes, end: bool, at: u64) -> Result<(), CommandError> {
        self.feed(bytes, end, Some(at)).await
    }

    async fn feed(&self, bytes: Bytes, end: bool, at: Option<u64>) -> Result<(), CommandError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Ask::Input {
            bytes,
            end,
            at,
            reply,
        })
        .await?;
        let id = self.id;
        // A write that was under way when it ended has no answer.
        answer.await.unwrap_or(Err(CommandError::Ended { id }))
    }

    async fn ask(&self, ask: Ask) -> Result<(), CommandError> {
        let sent = self.asks.send(ask).await;
        sent.map_err(|_| CommandError::Gone { id: self.id })
    }

    async fn when(&self, holds: impl FnMut(&State) -> bool) {
        // An error means that its task is gone, and with it the command.
        let _ = self.state.clone().wait_for(holds).await;
    }
}

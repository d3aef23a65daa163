//! The task of one command.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::select;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::handle::{Attended, CommandHandle};
use super::info::{CommandStatus, State, StoppedBy};
use super::input::{InputReply, InputSide};
use super::stages::{Look, Remains, Step};
use super::{CommandError, CommandId, StartOptions};
use crate::error::ExecutorError;
use crate::output::{Clip, Clipped, Screen};
use crate::process::{ExitStatus, Process, ProcessEvent, Signal};
use crate::tool::OutputSink;

/// How long a command may take to end after it was asked to.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// How many requests to one command may wait; it answers each at once.
const MAILBOX: usize = 16;

/// What a command is asked for.
#[derive(Debug)]
pub(super) enum Ask {
    Input {
        bytes: Bytes,
        end: bool,
        /// How much has to be written by then.
        at: Option<u64>,
        reply: InputReply,
    },
    Leave,
    Look(oneshot::Sender<Clipped>),
    Stop {
        signal: Signal,
        by: StoppedBy,
    },
}

/// A process that was started, on its way to its task.
#[derive(Debug)]
pub(crate) struct Start {
    line: String,
    process: Box<dyn Process>,
    options: StartOptions,
    permit: Option<OwnedSemaphorePermit>,
    started: Instant,
}

impl Start {
    pub(crate) fn new(
        line: String,
        process: Box<dyn Process>,
        options: StartOptions,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            line,
            process,
            options,
            permit,
            started: Instant::now(),
        }
    }

    /// Makes the end that attends to it, and its task, which goes on until it has ended and the
    /// last handle is dropped, or until `closing` has fired and it has ended.
    pub(crate) fn split(
        mut self,
        id: CommandId,
        closing: CancellationToken,
    ) -> (Attended, impl Future<Output = ()> + Send + 'static) {
        let (asks, mailbox) = mpsc::channel(MAILBOX);
        let (state, shown) = watch::channel(State::new());
        let abandoned = CancellationToken::new();
        let handle = CommandHandle::new(
            id,
            self.line.into(),
            self.started,
            asks,
            shown,
            Arc::clone(&self.options.output),
        );
        let input = InputSide::new(self.process.take_input());
        let runner = Runner {
            id,
            process: Some(self.process),
            input,
            sink: self.options.output,
            writing: None,
            screen: Screen::default(),
            clip: Clip::new(self.options.unseen_cap),
            unseen_cap: self.options.unseen_cap,
            timeout_at: self.options.timeout.map(|timeout| self.started + timeout),
            state,
            mailbox,
            abandoned: Some(abandoned.clone()),
            closing,
            closing_seen: false,
            stop: None,
            closed: false,
            shell: None,
            remains: None,
            failure: None,
            permit: self.permit,
        };
        (Attended::new(handle, abandoned.drop_guard()), runner.run())
    }
}

struct Runner {
    id: CommandId,
    /// `None` once everything is over.
    process: Option<Box<dyn Process>>,
    input: InputSide,
    sink: Arc<dyn OutputSink>,
    /// The write that the sink has not taken yet, or its end.
    writing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    screen: Screen,
    clip: Clip,
    unseen_cap: usize,
    timeout_at: Option<Instant>,
    state: watch::Sender<State>,
    mailbox: mpsc::Receiver<Ask>,
    /// Fires when nobody attends any more; `None` once that means nothing.
    abandoned: Option<CancellationToken>,
    closing: CancellationToken,
    closing_seen: bool,
    stop: Option<Stop>,
    /// All output was given out.
    closed: bool,
    shell: Option<ExitStatus>,
    /// From the exit of the shell on.
    remains: Option<Remains>,
    failure: Option<String>,
    permit: Option<OwnedSemaphorePermit>,
}

/// An end that was asked for.
#[derive(Clone, Copy, Debug)]
struct Stop {
    by: StoppedBy,
    /// `None` once it was killed.
    kill_at: Option<Instant>,
}

impl Runner {
    async fn run(mut self) {
        while self.process.is_some() {
            let wake = self.wake();
            // A timer that is due at once would still wait for the next tick of the clock, a millisecond or two.
            if wake.is_some_and(|at| at <= Instant::now()) {
                self.on_time();
                continue;
            }
            select! {
                biased;
                ask = self.mailbox.recv() => match ask {
                    Some(ask) => self.answer(ask),
                    None => return,
                },
                () = fired(self.abandoned.as_ref()) => {
                    self.abandoned = None;
                    self.stop(Signal::Terminate, StoppedBy::Call);
                }
                () = self.closing.cancelled(), if !self.closing_seen => {
                    self.closing_seen = true;
                    self.stop(Signal::Terminate, StoppedBy::Session);
                }
                () = until(wake) => self.on_time(),
                () = taken(&mut self.writing) => self.on_taken(),
                () = self.input.fed() => {}
                event = next_event(&mut self.process), if self.writing.is_none() && !self.closed => {
                    self.take(event);
                    // A flood must not keep the clock and other tasks from their turn.
                    yield_now().await;
                }
            }
        }
        self.finish().await;
        while !self.closing.is_cancelled() {
            select! {
                () = self.closing.cancelled() => return,
                ask = self.mailbox.recv() => match ask {
                    Some(ask) => self.answer(ask),
                    None => return,
                },
            }
        }
    }

    /// Tells the sink, then everybody, that nothing more comes.
    async fn finish(&mut self) {
        let sink = Arc::clone(&self.sink);
        let mut ending = Box::pin(async move { sink.end().await });
        loop {
            select! {
                biased;
                () = &mut ending => break,
                Some(ask) = self.mailbox.recv() => self.answer(ask),
            }
        }
        self.permit = None;
        self.input = InputSide::Ended;
        let mut rest = String::new();
        self.screen.finish(&mut rest);
        self.clip.push(rest.as_bytes());
        let status = match (self.failure.take(), self.shell) {
            (None, Some(status)) => CommandStatus::Exited {
                status,
                stopped: self.stop.map(|stop| stop.by),
            },
            (failure, _) => CommandStatus::Lost {
                message: failure.unwrap_or_else(|| "its end was never told".to_owned()),
            },
        };
        self.state.send_modify(|state| {
            state.status = status;
            state.settled = true;
            state.unseen |= !rest.is_empty();
            state.ended = Some(Instant::now());
        });
    }

    /// When something is due by itself.
    fn wake(&self) -> Option<Instant> {
        let due = match self.stop {
            Some(stop) => stop.kill_at,
            None => self.timeout_at,
        };
        let look = self.remains.as_ref().map(Remains::wake);
        due.into_iter().chain(look).min()
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        match self.stop {
            Some(stop) if stop.kill_at.is_some_and(|at| at <= now) => {
                self.stop(Signal::Kill, stop.by);
            }
            None if self.timeout_at.is_some_and(|at| at <= now) => {
                self.stop(Signal::Terminate, StoppedBy::Timeout);
            }
            _ => {}
        }
        self.look(now);
    }

    /// Looks at what remains after the shell, where that is due.
    fn look(&mut self, now: Instant) {
        let (Some(process), Some(remains)) = (&self.process, &mut self.remains) else {
            return;
        };
        if remains.wake() > now {
            return;
        }
        let look = Look {
            now,
            closed: self.closed,
            writing: self.writing.is_some(),
            stopping: self.stop.is_some(),
        };
        match remains.step(look, || process.is_alive()) {
            Step::Finish => self.process = None,
            Step::Settle => self.state.send_modify(|state| state.settled = true),
            Step::Wait => {}
        }
    }

    /// Ends the group, or asks it to end; what happens next is up to the clock. The first reason
    /// stays.
    fn stop(&mut self, signal: Signal, by: StoppedBy) {
        if self.process.is_none() || (self.stop.is_some() && signal != Signal::Kill) {
            return;
        }
        let now = Instant::now();
        let by = self.stop.map_or(by, |stop| stop.by);
        let kill_at = (signal != Signal::Kill).then(|| now + GRACE);
        self.stop = Some(Stop { by, kill_at });
        self.signal(signal);
        if let Some(remains) = &mut self.remains {
            remains.hurry(now);
        }
    }

    fn signal(&self, signal: Signal) {
        let sent = self.process.as_ref().map(|process| process.signal(signal));
        if let Some(Err(error)) = sent {
            tracing::warn!(command = %self.id, ?signal, %error, "could not signal a command");
        }
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Input {
                bytes,
                end,
                at,
                reply,
            } => self.feed(bytes, end, at, reply),
            Ask::Leave => {
                self.abandoned = None;
                self.state.send_modify(|state| state.left = true);
            }
            Ask::Look(reply) => {
                // Who asked may have gone; then what is unseen stays for the next one.
                if !reply.is_closed() {
                    let _ = reply.send(self.unseen());
                }
            }
            Ask::Stop { signal, by } => self.stop(signal, by),
        }
    }

    /// Writes to its input; what was written at that place before is not written again.
    fn feed(&mut self, bytes: Bytes, end: bool, at: Option<u64>, reply: InputReply) {
        let (id, length) = (self.id, bytes.len() as u64);
        let written = self.state.borrow().input_bytes;
        let answer = match at {
            Some(at) if at != written && at.saturating_add(length) <= written => Ok(()),
            Some(at) if at != written => Err(CommandError::InputMoved { id, at, written }),
            _ if self.process.is_none() => Err(CommandError::Ended { id }),
            _ => {
                if self.input.feed(id, bytes, end, reply) {
                    self.state.send_modify(|state| state.input_bytes += length);
                }
                return;
            }
        };
        // Who asked may have gone.
        let _ = reply.send(answer);
    }

    fn unseen(&mut self) -> Clipped {
        let mut text = String::new();
        self.screen.flush(&mut text);
        self.clip.push(text.as_bytes());
        self.state.send_modify(|state| state.unseen = false);
        std::mem::replace(&mut self.clip, Clip::new(self.unseen_cap)).finish()
    }

    fn on_taken(&mut self) {
        self.writing = None;
        let now = Instant::now();
        if let Some(remains) = &mut self.remains {
            remains.heard(now, 0);
        }
    }

    fn take(&mut self, event: Result<ProcessEvent, ExecutorError>) {
        let now = Instant::now();
        match event {
            Ok(ProcessEvent::Closed) => {
                self.closed = true;
                if let Some(remains) = &mut self.remains {
                    remains.hurry(now);
                }
            }
            Ok(ProcessEvent::Exited(status)) => {
                self.shell = Some(status);
                self.remains = Some(Remains::new(now));
                let shell = Some(status);
                let running = CommandStatus::Running { shell };
                self.state.send_modify(|state| state.status = running);
            }
            Ok(ProcessEvent::Output(output)) => self.take_output(output.bytes, now),
            Err(error) => {
                self.failure = Some(error.to_string());
                self.signal(Signal::Kill);
                self.process = None;
            }
        }
    }

    fn take_output(&mut self, bytes: Bytes, now: Instant) {
        if let Some(remains) = &mut self.remains {
            remains.heard(now, bytes.len());
        }
        let mut text = String::new();
        self.screen.push(&bytes, &mut text);
        self.clip.push(text.as_bytes());
        self.state.send_modify(|state| {
            state.bytes += bytes.len() as u64;
            state.unseen = true;
        });
        let sink = Arc::clone(&self.sink);
        self.writing = Some(Box::pin(async move { sink.write(bytes).await }));
    }
}

async fn fired(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

async fn taken(writing: &mut Option<Pin<Box<dyn Future<Output = ()> + Send>>>) {
    match writing {
        Some(write) => write.await,
        None => pending().await,
    }
}

async fn next_event(process: &mut Option<Box<dyn Process>>) -> Result<ProcessEvent, ExecutorError> {
    match process {
        Some(process) => process.next_event().await,
        None => pending().await,
    }
}

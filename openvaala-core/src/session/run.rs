//! The shell around the session machine: performs its effects and brings back what came of them.

mod compaction;
mod model;
mod perform;
mod request;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::commands::{Commands, CommandsOptions, commands};
use openvaala_executor::tool::{Cancel, CancelHandle};
use openvaala_protocol::conversation::Session;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{BlobId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{Approval, Instructions, InterruptionCause};
use openvaala_storage::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use self::compaction::Orders;
use self::model::{Asked, next_model_event};
use super::context::LoadedContext;
use super::event::{Event, ReplyId, SessionSetup};
use super::handle::{Command, Reply, SessionHandle};
use super::machine::SessionMachine;
use super::opening::open_session;
use super::prepare::Prepared;
use super::request::{Answer, Request};
use super::tools::store_image;
use crate::agent::{AgentEvent, Alarm, Tick, ToolOutcome};
use crate::conversation::{FeedSender, Input, Sent, Upward};
use crate::dao::mutation::{Stretch, Writer, Written};
use crate::dao::record::{Report, TurnState};
use crate::dao::tail::{self, Accepted};
use crate::environment::IdSource;
use crate::error::RuntimeError;
use crate::mailbox::{self, mailbox};
use crate::runtime::Definitions;

/// Requests that may wait for one session.
const INBOX: usize = 64;
/// How long abandoned tools are left to themselves before they are dropped.
const REAP: Duration = Duration::from_secs(1);

/// The variable by which the commands of a session know it.
const SESSION_VARIABLE: &str = "OPENVAALA_SESSION";

/// What a session is given by those around it.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) session: SessionId,
    pub(crate) writer: Writer,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) definitions: watch::Receiver<Arc<Definitions>>,
    pub(crate) feed: FeedSender,
    pub(crate) up: mpsc::UnboundedSender<Upward>,
}

/// What everything within a session works with.
#[derive(Debug)]
pub(crate) struct SessionDeps {
    pub(crate) around: Surroundings,
    /// Large images by blob, on their way to the loop that keeps them for requests.
    pub(crate) images: mpsc::UnboundedSender<(BlobId, String)>,
    /// What was started in the background: it goes on until the session ends.
    pub(crate) commands: Commands,
    /// Tasks that may outlive the call that began them.
    pub(crate) background: TaskTracker,
}

impl SessionDeps {
    /// Keeps an image at hand for the next requests.
    pub(crate) fn remember_image(&self, id: BlobId, base64: String) {
        let _ = self.images.send((id, base64));
    }
}

/// What a session tells its conversation when it has written something.
#[derive(Debug)]
pub(crate) struct SessionReport {
    pub(crate) session: Session,
    pub(crate) metadata: Option<Stretch>,
    /// How its last turns have ended, as far as whoever has started it may not know.
    pub(crate) reports: Vec<Report>,
}

/// What a session begins with.
#[derive(Debug)]
pub(crate) struct SessionStart {
    pub(crate) setup: SessionSetup,
    /// The turns as the log has them; those still running are ended, or go on if somebody's answer is waited for.
    pub(crate) turns: Vec<TurnState>,
}

/// Makes a session's handle and the loop behind it; the loop ends when it is stopped or nobody holds the handle.
pub(crate) fn session(
    around: Surroundings,
    start: SessionStart,
) -> (SessionHandle, impl Future<Output = ()>) {
    let (sender, inbox) = mailbox(INBOX);
    let (images, new_images) = mpsc::unbounded_channel();
    let options = CommandsOptions::default().with_env(SESSION_VARIABLE, around.session.to_string());
    let (commands, run_commands) = commands(options);
    let background = TaskTracker::new();
    background.spawn(run_commands);
    let handle = SessionHandle {
        requests: sender,
        commands: commands.clone(),
    };
    let deps = SessionDeps {
        around,
        images,
        commands,
        background,
    };
    let run = SessionLoop {
        deps: Arc::new(deps),
        machine: SessionMachine::new(start.setup),
        inbox,
        sends: HashMap::new(),
        requests: HashMap::new(),
        interrupts: HashMap::new(),
        approvals: HashMap::new(),
        last_reply: 0,
        work: JoinSet::new(),
        tools: JoinSet::new(),
        writing: false,
        model: None,
        prepared: None,
        cancel: None,
        images: HashMap::new(),
        new_images,
        life: 0,
        broken: None,
        stopping: Vec::new(),
        settling: Vec::new(),
        orders: Orders::default(),
    };
    (handle, run.run(start.turns))
}

struct SessionLoop {
    deps: Arc<SessionDeps>,
    machine: SessionMachine,
    inbox: mailbox::Receiver<Command>,
    sends: HashMap<ReplyId, Reply<Sent>>,
    requests: HashMap<ReplyId, Reply<Answer>>,
    interrupts: HashMap<ReplyId, Reply<Option<TurnId>>>,
    approvals: HashMap<ReplyId, Reply<Approval>>,
    last_reply: ReplyId,
    /// Commits, preparations, alarms, intake of images.
    work: JoinSet<Done>,
    /// Tool calls of the running turn.
    tools: JoinSet<(ItemId, ToolOutcome)>,
    writing: bool,
    model: Asked,
    /// What the running turn works with.
    prepared: Option<Arc<Prepared>>,
    cancel: Option<(CancelHandle, Cancel)>,
    /// The large images of what requests are made from, in base64.
    images: HashMap<BlobId, String>,
    new_images: mpsc::UnboundedReceiver<(BlobId, String)>,
    /// How often the machine was begun anew.
    life: u64,
    /// Set while the log could not be written: why.
    broken: Option<String>,
    stopping: Vec<oneshot::Sender<()>>,
    settling: Vec<oneshot::Sender<()>>,
    /// Those who have asked for a summary, or to take one back.
    orders: Orders,
}

/// What comes back from work outside the loop.
enum Done {
    Written {
        n: u64,
        result: Result<Written, Error>,
        reports: Vec<Report>,
    },
    Prepared {
        turn: TurnId,
        result: Result<Box<Findings>, RuntimeError>,
    },
    InputsFound {
        life: u64,
        result: Result<Accepted, Error>,
    },
    Intake {
        reply: ReplyId,
        input: Result<Input, Error>,
    },
    Alarm {
        turn: TurnId,
        alarm: Alarm,
    },
    Reaped,
    /// The images of an edited input are stored.
    Edited {
        reply: ReplyId,
        request: Result<Request, Error>,
    },
    Surveyed {
        request: u64,
        result: Result<Box<Findings>, RuntimeError>,
        commands: Vec<String>,
    },
}

/// What a turn works with, and what is to be written down of it.
struct Findings {
    prepared: Prepared,
    instructions: Vec<Instructions>,
    context: Option<LoadedContext>,
}

impl SessionLoop {
    async fn run(mut self, turns: Vec<TurnState>) {
        Box::pin(self.event(Event::Recover {
            turns,
            failure: None,
        }))
        .await;
        loop {
            tokio::select! {
                command = self.inbox.recv() => match command {
                    // Boxed, since the loop would have room for the largest of all these all the time.
                    Some(command) => Box::pin(self.command(command)).await,
                    None => break,
                },
                Some(done) = self.work.join_next(), if !self.work.is_empty() => {
                    if let Some(done) = rethrow(done) {
                        Box::pin(self.done(done)).await;
                    }
                }
                Some(ended) = self.tools.join_next(), if !self.tools.is_empty() => {
                    let Some((result, outcome)) = rethrow(ended) else { continue };
                    Box::pin(self.event(Event::Agent(AgentEvent::ToolEnded { result, outcome }))).await;
                }
                (request, event) = next_model_event(&mut self.model) => {
                    Box::pin(self.model_event(request, event)).await;
                }
            }
            if !self.writing {
                for done in self.settling.drain(..) {
                    let _ = done.send(());
                }
            }
            if self.is_over() {
                break;
            }
        }
        self.tools.shutdown().await;
        self.deps.commands.close().await;
        self.deps.background.close();
        // What a tool does not let go of is not waited for.
        let _ = tokio::time::timeout(REAP, self.deps.background.wait()).await;
        for done in self.stopping.drain(..) {
            let _ = done.send(());
        }
    }

    /// Whether a stop was asked for and nothing is left to be written.
    fn is_over(&self) -> bool {
        // A turn that only waits for answers goes on after the next start.
        let is_running = self.machine.running_turn().is_some() && !self.machine.is_parked();
        let at_work = is_running || self.machine.is_compacting();
        let idle = !at_work && !self.writing;
        !self.stopping.is_empty() && (idle || self.broken.is_some())
    }

    /// Whether nothing runs, waits, or is on its way to the log.
    fn is_idle(&self) -> bool {
        self.machine.running_turn().is_none()
            && self.machine.is_queue_empty()
            && !self.machine.is_compacting()
            && self.sends.is_empty()
            && self.requests.is_empty()
            && self.interrupts.is_empty()
            && self.approvals.is_empty()
            && self.tools.is_empty()
            && !self.writing
            && self.deps.commands.running() == 0
    }

    async fn command(&mut self, command: Command) {
        self.last_reply += 1;
        let reply_id = self.last_reply;
        match command {
            Command::Send { input, reply } => {
                if !self.stopping.is_empty() {
                    let _ = reply.send(Err(RuntimeError::Stopped));
                    return;
                }
                self.sends.insert(reply_id, reply);
                self.intake(reply_id, input).await;
            }
            Command::Request { reply, .. } if !self.stopping.is_empty() => {
                let _ = reply.send(Err(RuntimeError::Stopped));
            }
            Command::Request { request, reply } => {
                self.requests.insert(reply_id, reply);
                self.take_request(reply_id, request).await;
            }
            Command::Interrupt { reply } => {
                self.interrupts.insert(reply_id, reply);
                let cause = InterruptionCause::Requested;
                self.event(Event::Interrupt {
                    reply: Some(reply_id),
                    cause,
                })
                .await;
            }
            Command::IsIdle { reply } => {
                let _ = reply.send(self.is_idle());
            }
            Command::Settle { done } => self.settling.push(done),
            Command::Compact(command) => self.order(reply_id, command).await,
            Command::Stop { done } => {
                self.stopping.push(done);
                self.event(Event::Stop).await;
                let cause = InterruptionCause::Shutdown;
                self.event(Event::Interrupt { reply: None, cause }).await;
            }
            Command::AnswerApproval { reply, .. } if !self.stopping.is_empty() => {
                let _ = reply.send(Err(RuntimeError::Stopped));
            }
            Command::AnswerApproval { answer, reply } => {
                self.approvals.insert(reply_id, reply);
                self.event(Event::AnswerApproval {
                    reply: reply_id,
                    answer,
                })
                .await;
            }
            Command::ReportTaken { report } => self.event(Event::ReportTaken { report }).await,
            Command::Approvals { reply } => {
                let conversation = self.deps.around.writer.conversation;
                let _ = reply.send(self.machine.open_approvals(conversation));
            }
        }
    }

    /// Takes an input in; large images are written to the blob stream first.
    async fn intake(&mut self, reply: ReplyId, mut input: Input) {
        if input.content.iter().all(|piece| piece.as_text().is_some()) {
            self.send(reply, input).await;
            return;
        }
        let deps = Arc::clone(&self.deps);
        self.work.spawn(async move {
            let mut stored = Vec::with_capacity(input.content.len());
            for piece in std::mem::take(&mut input.content) {
                match store_image(&deps, piece).await {
                    Ok(piece) => stored.push(piece),
                    Err(error) => {
                        let input = Err(error);
                        return Done::Intake { reply, input };
                    }
                }
            }
            input.content = stored;
            let input = Ok(input);
            Done::Intake { reply, input }
        });
    }

    async fn send(&mut self, reply: ReplyId, input: Input) {
        if let Some(failure) = self.broken.clone()
            && let Err(error) = self.reload(failure).await
        {
            self.refuse(reply, RuntimeError::from(error));
            return;
        }
        self.event(Event::Send { reply, input }).await;
    }

    /// Begins anew with what the log has, after a commit had failed.
    async fn reload(&mut self, failure: String) -> Result<(), Error> {
        self.tools.abort_all();
        let around = &self.deps.around;
        let (log, id) = (&around.writer.log, around.writer.conversation);
        let latest = tail::states(log, id).await?.unwrap_or_default();
        let limits = around.definitions.borrow().limits();
        let opened = open_session(log, id, &latest, around.session, limits).await?;
        // Without a state in the log there was nothing acknowledged: the one in memory will do.
        let Some((SessionStart { setup, turns }, _)) = opened else {
            return Ok(());
        };
        self.machine = SessionMachine::new(setup);
        (self.broken, self.images) = (None, HashMap::new());
        self.life += 1;
        self.event(Event::Recover {
            turns,
            failure: Some(failure),
        })
        .await;
        Ok(())
    }

    async fn done(&mut self, done: Done) {
        match done {
            Done::Written {
                n,
                result: Ok(written),
                reports,
            } => {
                self.writing = false;
                tell(&self.deps, written, reports).await;
                self.event(Event::Committed { n }).await;
            }
            Done::Written {
                n,
                result: Err(error),
                ..
            } => {
                self.writing = false;
                tracing::error!(session = %self.deps.around.session, %error, "a commit failed");
                self.event(Event::CommitFailed {
                    n,
                    message: with_causes(&error),
                })
                .await;
            }
            Done::Prepared {
                turn,
                result: Ok(findings),
            } => {
                let Findings {
                    prepared,
                    instructions,
                    context,
                } = *findings;
                let context = context.map(|context| {
                    self.images.extend(context.images);
                    context.items
                });
                let prepared = Arc::new(prepared);
                let event = Event::Prepared {
                    turn,
                    executors: prepared.locations.clone(),
                    toolbox: Arc::clone(&prepared.toolbox),
                    account: prepared.account.clone(),
                    instructions,
                    context,
                    approval: prepared.definitions.approval.clone(),
                    ceiling: prepared.ceiling,
                };
                self.prepared = Some(prepared);
                self.event(event).await;
            }
            Done::Prepared {
                turn,
                result: Err(error),
            } => {
                let message = with_causes(&error);
                self.event(Event::NotPrepared { turn, message }).await;
            }
            Done::Intake {
                reply,
                input: Ok(input),
            } => self.send(reply, input).await,
            Done::Intake {
                reply,
                input: Err(error),
            } => self.refuse(reply, error.into()),
            Done::InputsFound { life, .. } if life != self.life => {}
            Done::InputsFound { result, .. } => {
                let event = match result {
                    Ok(accepted) => Event::InputsFound { accepted },
                    Err(error) => Event::InputsNotFound {
                        message: with_causes(&error),
                    },
                };
                self.event(event).await;
            }
            Done::Alarm { turn, alarm } => self.event(Event::Alarm { turn, alarm }).await,
            Done::Reaped => {}
            Done::Edited {
                reply,
                request: Ok(request),
            } => self.request(reply, request).await,
            Done::Edited {
                reply,
                request: Err(error),
            } => self.refuse(reply, error.into()),
            Done::Surveyed {
                request,
                result,
                commands,
            } => self.surveyed(request, result, commands).await,
        }
    }

    async fn event(&mut self, event: Event) {
        while let Ok((id, base64)) = self.new_images.try_recv() {
            self.images.insert(id, base64);
        }
        let now = self.deps.around.writer.clock.now();
        let ids = Arc::clone(&self.deps.around.ids);
        let tick = Tick {
            now,
            ids: &mut || ids.next(),
        };
        for effect in self.machine.on_event(tick, event) {
            self.perform(effect).await;
        }
        if self.machine.running_turn().is_none() && !self.machine.is_compacting() {
            // The next turn makes its own: tools and prompt are most of what an idle session would keep.
            self.prepared = None;
        }
    }
}

/// Tells subscribers and the conversation what is on disk now; only then anybody gets a reply.
async fn tell(deps: &SessionDeps, written: Written, reports: Vec<Report>) {
    let session = written.entries.iter().rev().find_map(|entry| match entry {
        Entry::Session { session, .. } => Some(session.clone()),
        _ => None,
    });
    deps.around.feed.entries(written.entries).await;
    if let Some(session) = session {
        let report = SessionReport {
            session,
            metadata: written.metadata,
            reports,
        };
        // The conversation ends after its sessions.
        let _ = deps.around.up.send(Upward::Report(Box::new(report)));
    }
}

/// The result of a task, unless it was cancelled; its panic goes on in the loop that owns it.
fn rethrow<T>(result: Result<T, tokio::task::JoinError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => None,
    }
}

/// An error with all that caused it, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

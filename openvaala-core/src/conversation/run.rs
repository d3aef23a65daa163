//! The shell around the conversation machine: owns sessions, workspaces and the feed.

mod agents;
mod change;
mod ground;
mod perform;
mod reports;
mod spawn;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::future::join_all;
use openvaala_executor::Workspace;
use openvaala_protocol::conversation::{Conversation, WorkLocation};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_protocol::questions::OpenQuestions;
use openvaala_storage::{Error, Fingerprint, LogStorage};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use self::agents::Agents;
pub(crate) use self::agents::Tell;
use self::change::{Asked, Possible};
use self::spawn::{Ready, Started};
use super::command::{Command, Reply, Upward};
use super::cursor::Position;
use super::feed::{FeedSender, feed};
use super::handle::{ConversationHandle, Input, Sent};
use super::machine::{ConversationMachine, Event, WaitId};
use super::waits::WaiterId;
use super::workspaces;
use crate::agents::AgentError;
use crate::dao::index::Index;
use crate::dao::mutation::{Promote, Writer, Written};
use crate::dao::query::States;
use crate::dao::record::{ConversationState, Report};
use crate::dao::staging::Staging;
use crate::dao::trash;
use crate::environment::{Clock, IdSource};
use crate::error::RuntimeError;
use crate::mailbox::{self, mailbox};
use crate::runtime::Definitions;
use crate::session::{SessionHandle, SessionReport, SessionStart, Surroundings, session};

/// Requests that may wait for one conversation.
const INBOX: usize = 256;

/// What every conversation of a runtime is given.
#[derive(Clone, Debug)]
pub(crate) struct ConversationDeps {
    pub(crate) log: Arc<dyn LogStorage>,
    pub(crate) staging: Staging,
    pub(crate) index: Index,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) definitions: watch::Receiver<Arc<Definitions>>,
}

/// What a conversation begins with.
#[derive(Debug)]
pub(crate) struct ConversationStart {
    pub(crate) state: ConversationState,
    /// The number of the metadata entry with its state, or of one close to it.
    pub(crate) state_seq: u64,
    /// The latest states; of the turns at least those that may run and the last one of each session.
    pub(crate) states: States,
    /// The end of the metadata stream.
    pub(crate) metadata: Option<(u64, Fingerprint)>,
    pub(crate) sessions: Vec<SessionStart>,
    /// The number of the last entry of each session's log.
    pub(crate) last_items: Vec<(SessionId, u64)>,
    pub(crate) workspaces: Option<Vec<Arc<dyn Workspace>>>,
}

/// Makes a conversation's handle and the loop behind it.
///
/// The loop ends when it is stopped, when nobody holds the handle, or with a panic if a session had one.
pub(crate) fn start(
    deps: ConversationDeps,
    start: ConversationStart,
) -> (ConversationHandle, impl Future<Output = ()>) {
    let id = start.state.id;
    let (commands, inbox) = mailbox(INBOX);
    let (up, from_sessions) = mpsc::unbounded_channel();
    let (tell_running, running) = watch::channel(0);
    let metadata = start
        .metadata
        .as_ref()
        .map_or(start.states.last, |(seq, _)| *seq);
    let position = Position {
        metadata,
        sessions: start.last_items.iter().copied().collect(),
    };
    let log = Arc::clone(&deps.log);
    let questions = open_questions(&start.sessions);
    let (feed, feeding) = feed(
        id,
        log,
        start.state.clone(),
        &start.states,
        position,
        questions,
    );
    let machine = ConversationMachine::new(
        start.state.clone(),
        start.state_seq,
        start.states.wire_sessions(),
        start.metadata,
        deps.staging.is_staged(id),
    );
    let handle = ConversationHandle {
        id,
        root: start.state.root_session,
        commands,
        feed: feed.clone(),
        log: Arc::clone(&deps.log),
        definitions: deps.definitions.clone(),
        running,
    };
    let run = ConversationLoop {
        id,
        machine,
        inbox,
        from_sessions,
        up,
        feed,
        sessions: HashMap::new(),
        tasks: JoinSet::new(),
        work: JoinSet::new(),
        waits: HashMap::new(),
        last_wait: 0,
        workspaces: start.workspaces,
        running: tell_running,
        stopping: Vec::new(),
        deleting: None,
        left_workspaces: Vec::new(),
        changes: VecDeque::new(),
        changing: false,
        agents: Agents::new(),
        deps,
    };
    (handle, run.run(start.sessions, feeding))
}

/// What the turns that were left open have asked.
fn open_questions(sessions: &[SessionStart]) -> OpenQuestions {
    let mut questions = OpenQuestions::default();
    for SessionStart { setup, .. } in sessions {
        let open = setup.state.active_turn;
        let items = setup.items.iter();
        for item in items.filter(|item| open.is_some() && item.head().turn == open) {
            questions.item(setup.state.id, item);
        }
    }
    questions
}

struct ConversationLoop {
    id: ConversationId,
    deps: ConversationDeps,
    machine: ConversationMachine,
    inbox: mailbox::Receiver<Command>,
    from_sessions: mpsc::UnboundedReceiver<Upward>,
    up: mpsc::UnboundedSender<Upward>,
    feed: FeedSender,
    sessions: HashMap<SessionId, SessionHandle>,
    /// The loops of the sessions and the feed.
    tasks: JoinSet<()>,
    work: JoinSet<Done>,
    waits: HashMap<WaitId, Wait>,
    last_wait: WaitId,
    workspaces: Option<Vec<Arc<dyn Workspace>>>,
    running: watch::Sender<usize>,
    stopping: Vec<oneshot::Sender<()>>,
    deleting: Option<oneshot::Sender<Result<(), Error>>>,
    /// Workspaces that no further turn gets; commands may still run there.
    left_workspaces: Vec<Arc<dyn Workspace>>,
    /// Changes that wait until the one before is made.
    changes: VecDeque<Asked>,
    changing: bool,
    agents: Agents,
}

enum Wait {
    Send {
        session: SessionId,
        input: Input,
        reply: Reply<Sent>,
    },
    Promote(Promote),
    Change {
        workspaces: Option<Vec<Arc<dyn Workspace>>>,
        reply: Reply<Conversation>,
    },
    Spawn(Box<Started>),
}

enum Done {
    Written {
        n: u64,
        result: Result<Written, Error>,
    },
    Promoted {
        wait: WaitId,
        result: Result<Option<(u64, Fingerprint)>, Error>,
    },
    Opened {
        locations: Vec<WorkLocation>,
        workspaces: Option<Vec<Arc<dyn Workspace>>>,
    },
    /// A session has opened workspaces of its own.
    OpenedOwn {
        session: SessionId,
        workspaces: Vec<Arc<dyn Workspace>>,
    },
    SpawnReady {
        path: String,
        ready: Result<Box<Ready>, AgentError>,
        tell: Tell,
    },
    Delivered {
        id: ItemId,
    },
    NotDelivered {
        id: ItemId,
    },
    WaitOver {
        id: WaiterId,
    },
    Settled,
    Idle {
        idle: bool,
        reply: oneshot::Sender<bool>,
    },
    Stopped,
    Possible {
        possible: Result<Box<Possible>, RuntimeError>,
        reply: Reply<Conversation>,
    },
}

impl ConversationLoop {
    async fn run(
        mut self,
        sessions: Vec<SessionStart>,
        feeding: impl Future<Output = ()> + Send + 'static,
    ) {
        self.tasks.spawn(feeding);
        let reports: Vec<(SessionId, Vec<Report>)> = sessions.iter().map(reports_of).collect();
        for start in sessions {
            self.add_session(start);
        }
        for (session, reports) in reports {
            self.take_reports(session, reports);
        }
        self.running.send_replace(self.machine.running());
        loop {
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.command(command),
                    None => break,
                },
                Some(upward) = self.from_sessions.recv() => self.upward(upward),
                Some(done) = self.work.join_next(), if !self.work.is_empty() => match done {
                    Ok(Done::Stopped) => break,
                    // Boxed, since the loop would have room for the largest of them all the time.
                    Ok(done) => Box::pin(self.done(done)).await,
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(Err(error)) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    std::panic::resume_unwind(error.into_panic());
                }
            }
        }
        if let Some(done) = self.deleting.take() {
            let marked = trash::mark_deleted(&self.deps.log, self.id, self.deps.clock.now()).await;
            if marked.is_ok() {
                self.feed.deleted().await;
            }
            let _ = done.send(marked);
        }
        let open = self.workspaces.take().unwrap_or_default();
        let own = self.agents.own.values().flatten();
        for workspace in open.iter().chain(&self.left_workspaces).chain(own) {
            workspace.close().await;
        }
        self.tasks.shutdown().await;
        for done in self.stopping.drain(..) {
            let _ = done.send(());
        }
    }

    fn add_session(&mut self, start: SessionStart) {
        let id = start.setup.state.id;
        let promoter = self.up.clone();
        let around = Surroundings {
            session: id,
            writer: Writer::new(&self.deps, self.id, Some(promoter)),
            ids: Arc::clone(&self.deps.ids),
            definitions: self.deps.definitions.clone(),
            feed: self.feed.clone(),
            up: self.up.clone(),
        };
        let (handle, run) = session(around, start);
        self.sessions.insert(id, handle);
        self.tasks.spawn(run);
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Send {
                session,
                input,
                reply,
            } => {
                if !self.sessions.contains_key(&session) {
                    let _ = reply.send(Err(self.no_session(session)));
                    return;
                }
                let shown = input.content.clone();
                let wait = self.wait(Wait::Send {
                    session,
                    input,
                    reply,
                });
                self.event(Event::Send {
                    wait,
                    content: shown,
                });
            }
            Command::Interrupt {
                session,
                scope,
                reply,
            } => self.interrupt(session, scope, reply),
            Command::Tree { reply } => {
                let root = self.machine.state().root_session;
                let below = self.tree().below(root).into_iter();
                let all = self.tree().get(root).into_iter().chain(below);
                let _ = reply.send(all.cloned().collect());
            }
            Command::Compact { session, command } => match self.sessions.get(&session) {
                Some(handle) => handle.compact(command),
                None => command.refuse(self.no_session(session)),
            },
            Command::Commands { reply } => {
                let sessions = self.sessions.iter();
                let commands = sessions.map(|(id, handle)| (*id, handle.commands()));
                let _ = reply.send(commands.collect());
            }
            Command::RunningCommands { reply } => {
                let running = self.sessions.values().map(SessionHandle::running_commands);
                let _ = reply.send(running.sum());
            }
            Command::Settle { done } => {
                let sessions: Vec<SessionHandle> = self.sessions.values().cloned().collect();
                self.work.spawn(async move {
                    join_all(sessions.iter().map(SessionHandle::settle)).await;
                    let _ = done.send(());
                    Done::Settled
                });
            }
            Command::StopIfIdle { reply } => self.ask_whether_idle(reply),
            Command::Stop { done } => {
                self.stopping.push(done);
                self.stop_sessions();
            }
            Command::Delete { done } => {
                self.deleting = Some(done);
                self.stop_sessions();
            }
            Command::Request {
                session,
                request,
                reply,
            } => match self.sessions.get(&session) {
                Some(handle) => handle.request(request, reply),
                None => drop(reply.send(Err(self.no_session(session)))),
            },
            Command::Change { change, reply } => {
                self.changes.push_back(Asked { change, reply });
                self.next_change();
            }
            Command::AnswerApproval {
                session,
                answer,
                reply,
            } => match self.sessions.get(&session) {
                Some(handle) => handle.answer(answer, reply),
                None => drop(reply.send(Err(self.no_session(session)))),
            },
            Command::Approvals { reply } => {
                let sessions: Vec<SessionHandle> = self.sessions.values().cloned().collect();
                self.work.spawn(async move {
                    let approvals = join_all(sessions.iter().map(SessionHandle::approvals)).await;
                    let _ = reply.send(approvals.into_iter().flatten().collect());
                    Done::Settled
                });
            }
        }
    }

    fn stop_sessions(&mut self) {
        let sessions: Vec<SessionHandle> = self.sessions.values().cloned().collect();
        self.work.spawn(async move {
            join_all(sessions.iter().map(SessionHandle::stop)).await;
            Done::Stopped
        });
    }

    /// Asks those who know, after all that they were told before this.
    fn ask_whether_idle(&mut self, reply: oneshot::Sender<bool>) {
        let sessions: Vec<SessionHandle> = self.sessions.values().cloned().collect();
        let feed = self.feed.clone();
        let idle = self.waits.is_empty() && self.work.is_empty() && self.agents.is_idle();
        self.work.spawn(async move {
            let idle = idle
                && !feed.is_watched().await
                && join_all(sessions.iter().map(SessionHandle::is_idle))
                    .await
                    .into_iter()
                    .all(|idle| idle);
            Done::Idle { idle, reply }
        });
    }

    fn no_session(&self, session: SessionId) -> RuntimeError {
        if let Some(closed) = self.tree().get(session) {
            let path = &closed.path;
            let message = format!("agent {path} was closed: it takes no more input");
            return RuntimeError::InvalidInput { message };
        }
        RuntimeError::SessionNotFound {
            conversation: self.id,
            session,
        }
    }

    fn wait(&mut self, wait: Wait) -> WaitId {
        self.last_wait += 1;
        self.waits.insert(self.last_wait, wait);
        self.last_wait
    }

    fn upward(&mut self, upward: Upward) {
        match upward {
            Upward::Report(report) => {
                let SessionReport {
                    session,
                    metadata,
                    reports,
                } = *report;
                self.event(Event::SessionChanged {
                    session: Box::new(session.clone()),
                    metadata,
                });
                self.running.send_replace(self.machine.running());
                self.turns_over(&session);
                self.take_reports(session.id, reports);
            }
            Upward::Ground {
                session,
                locations,
                reply,
            } => self.give_ground(session, locations, reply),
            Upward::Agents {
                from,
                request,
                reply,
            } => self.agents(from, request, reply),
            Upward::Heard(messages) => self.heard(&messages),
            Upward::Promote(promote) => {
                let wait = self.wait(Wait::Promote(promote));
                self.event(Event::Promote { wait });
            }
        }
    }

    async fn done(&mut self, done: Done) {
        match done {
            Done::Written {
                n,
                result: Ok(written),
            } => {
                self.feed.entries(written.entries).await;
                if let Some(metadata) = written.metadata {
                    self.event(Event::Committed { n, metadata });
                }
            }
            Done::Written {
                n,
                result: Err(error),
            } => {
                let message = crate::session::with_causes(&error);
                self.event(Event::CommitFailed { n, message });
            }
            Done::Promoted { wait, result } => {
                let (fingerprint, answer) = match result {
                    Ok(fingerprint) => (fingerprint, Ok(())),
                    Err(error) => (None, Err(error)),
                };
                self.event(Event::Promoted { fingerprint });
                if let Some(Wait::Promote(promote)) = self.waits.remove(&wait) {
                    let _ = promote.send(answer);
                }
            }
            Done::Opened {
                locations,
                workspaces,
            } => self.keep_workspaces(&locations, workspaces),
            Done::OpenedOwn {
                session,
                workspaces,
            } => {
                let before = self.agents.own.insert(session, workspaces);
                self.left_workspaces.extend(before.unwrap_or_default());
            }
            Done::SpawnReady { path, ready, tell } => self.spawn_ready(&path, ready, tell),
            Done::Delivered { id } => self.heard(&[id]),
            Done::NotDelivered { id } => self.deliver(id),
            Done::WaitOver { id } => self.wait_over(id),
            Done::Possible { possible, reply } => {
                self.possible(possible.map(|possible| *possible), reply);
            }
            Done::Idle { idle, reply } => {
                let _ = reply.send(idle);
                if idle {
                    self.stop_sessions();
                }
            }
            Done::Settled | Done::Stopped => {}
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.deps.clock.now();
        for effect in self.machine.on_event(now, event) {
            self.perform(effect);
        }
    }
}

/// What a session has to report from an earlier life.
fn reports_of(start: &SessionStart) -> (SessionId, Vec<Report>) {
    let state = &start.setup.state;
    let reports = state.child.as_ref().map(|child| child.reports.clone());
    (state.id, reports.unwrap_or_default())
}

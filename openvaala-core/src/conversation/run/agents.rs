//! What agents ask of their conversation: to say something to others, to wait for them, to list, interrupt and close them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use openvaala_executor::Workspace;
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{Session, SessionStatus};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::rpc::params::session::{InterruptScope, SendMode};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{ConversationLoop, Done};
use crate::agents::{AgentError, AgentReply, AgentRequest};
use crate::context::ending;
use crate::conversation::command::Reply;
use crate::conversation::handle::Input;
use crate::conversation::tree::Tree;
use crate::conversation::waits::{Waiter, WaiterId, Waits};
use crate::dao::record::Sender;
use crate::error::RuntimeError;
use crate::session::{Request, SessionHandle};

/// How long closing an agent may take; it goes on without anybody after that.
const CLOSING: Duration = Duration::from_secs(4);

/// The way to tell an agent what came of its request.
pub(crate) type Tell = oneshot::Sender<Result<AgentReply, AgentError>>;

/// What the loop knows of agents besides their sessions.
#[derive(Debug)]
pub(super) struct Agents {
    pub(super) waits: Waits<Tell>,
    pub(super) unheard: BTreeMap<ItemId, super::reports::Unheard>,
    /// The paths of agents that are being started.
    pub(super) starting: BTreeSet<String>,
    /// Those that are being closed, and need not have written that down yet.
    closing: BTreeSet<SessionId>,
    /// Workspaces of agents that do not work where the conversation does.
    pub(super) own: HashMap<SessionId, Vec<Arc<dyn Workspace>>>,
}

impl Agents {
    pub(super) fn new() -> Self {
        Self {
            waits: Waits::new(),
            unheard: BTreeMap::new(),
            starting: BTreeSet::new(),
            closing: BTreeSet::new(),
            own: HashMap::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waits.is_empty() && self.unheard.is_empty() && self.starting.is_empty()
    }

    pub(super) fn is_closing(&self, session: &Session) -> bool {
        session.closed || self.closing.contains(&session.id)
    }
}

impl ConversationLoop {
    pub(super) fn agents(&mut self, from: SessionId, request: AgentRequest, tell: Tell) {
        let done = match request {
            AgentRequest::Spawn(spawn) => return self.spawn_agent(from, *spawn, tell),
            AgentRequest::Send { agent, text, steer } => {
                self.say(from, &agent, text, steer).map(Answer::Later)
            }
            AgentRequest::Wait {
                agents,
                all,
                timeout,
            } => return self.wait_for(from, &agents, all, timeout, tell),
            AgentRequest::List => Ok(Answer::Now(self.list(from))),
            AgentRequest::Interrupt { agent } => self.interrupt_below(from, &agent),
            AgentRequest::Close { agent } => self.close_below(from, &agent),
        };
        match done {
            Ok(Answer::Now(text)) => drop(tell.send(Ok(AgentReply::text(text)))),
            Ok(Answer::Later(answer)) => {
                self.work.spawn(async move {
                    let _ = tell.send(answer.await.map(AgentReply::text));
                    Done::Settled
                });
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    }

    pub(super) const fn tree(&self) -> Tree<'_> {
        Tree(self.machine.sessions())
    }

    /// Gives a message to another agent.
    fn say(
        &mut self,
        from: SessionId,
        agent: &str,
        text: String,
        steer: bool,
    ) -> Result<Later, AgentError> {
        let to = self.tree().find(from, agent)?;
        let (id, path) = (to.id, to.path.clone());
        if id == from {
            return Err(AgentError::Yourself);
        }
        let Some(handle) = self
            .sessions
            .get(&id)
            .filter(|_| !self.agents.is_closing(to))
        else {
            return Err(AgentError::Closed { path });
        };
        let mut input = Input::new(
            ItemId::from_uuid(self.deps.ids.next()),
            vec![Content::text(text)],
        );
        input.mode = if steer {
            SendMode::Steer
        } else {
            SendMode::Queue
        };
        input.from = self.sender(from);
        let (reply, sent) = oneshot::channel();
        handle.send(input, reply);
        if steer {
            self.wake(id, "somebody has said something to you: it follows");
        }
        Ok(Box::pin(async move {
            sent.await.map_err(|_| RuntimeError::Stopped)??;
            Ok(format!("{path} has it"))
        }))
    }

    pub(super) fn sender(&self, session: SessionId) -> Option<Sender> {
        let path = self.tree().get(session)?.path.clone();
        let ended = None;
        Some(Sender {
            session,
            path,
            ended,
        })
    }

    fn wait_for(
        &mut self,
        from: SessionId,
        agents: &[String],
        all: bool,
        time: Duration,
        tell: Tell,
    ) {
        let targets = match self.targets(from, agents) {
            Ok(targets) => targets,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let busy: BTreeSet<SessionId> = targets
            .iter()
            .copied()
            .filter(|id| self.is_busy(*id))
            .collect();
        if busy.is_empty() {
            let lines: Vec<String> = targets.iter().map(|id| self.line(*id)).collect();
            let text = if lines.is_empty() {
                "no agent works below you".to_owned()
            } else {
                lines.join("\n")
            };
            return drop(tell.send(Ok(AgentReply::text(text))));
        }
        let id = self.add_waiter(from, busy, all, tell);
        self.work.spawn(async move {
            tokio::time::sleep(time).await;
            Done::WaitOver { id }
        });
    }

    pub(super) fn add_waiter(
        &mut self,
        session: SessionId,
        open: BTreeSet<SessionId>,
        all: bool,
        tell: Tell,
    ) -> WaiterId {
        let turn = self
            .tree()
            .get(session)
            .and_then(|session| session.active_turn);
        self.agents.waits.add(session, turn, open, all, tell)
    }

    /// Those that an agent can wait for: the ones whose reports come to it.
    fn targets(&self, from: SessionId, names: &[String]) -> Result<Vec<SessionId>, AgentError> {
        let tree = self.tree();
        if names.is_empty() {
            let below = tree.below(from).into_iter();
            let own = below.filter(|session| session.parent == Some(from));
            let busy = own.filter(|session| self.is_busy(session.id));
            return Ok(busy.map(|session| session.id).collect());
        }
        let found = names.iter().map(|name| {
            let found = tree.find(from, name)?;
            if found.parent == Some(from) {
                return Ok(found.id);
            }
            let path = found.path.clone();
            Err(AgentError::NotOwn { path })
        });
        found.collect()
    }

    /// Whether something is still to be heard of an agent.
    fn is_busy(&self, id: SessionId) -> bool {
        self.tree().get(id).is_some_and(|session| {
            let is_waiting = !session.pending.is_empty() && !session.held;
            let is_at_work = session.status == SessionStatus::Running || is_waiting;
            is_at_work && !self.agents.is_closing(session)
        })
    }

    /// Ends the waiting of an agent, because there is something else.
    pub(super) fn wake(&mut self, session: SessionId, why: &str) {
        for waiter in self.agents.waits.wake(session) {
            self.tell_waiter(waiter, Some(why));
        }
    }

    pub(super) fn wait_over(&mut self, id: WaiterId) {
        if let Some(waiter) = self.agents.waits.time_out(id) {
            self.tell_waiter(waiter, Some("the time is over"));
        }
    }

    /// Tells an agent what it has waited for; if it is not there any more, the reports come to it as messages later.
    pub(super) fn tell_waiter(&self, waiter: Waiter<Tell>, why: Option<&str>) {
        let mut parts: Vec<String> = why.map(|why| format!("[{why}]")).into_iter().collect();
        let mut messages = Vec::new();
        for (id, report) in waiter.reports {
            let path = self.path(id);
            let text = said(&report.text);
            parts.push(format!("{path} {}:\n{text}", ending(report.ended)));
            messages.push(report.item_id);
        }
        parts.extend(waiter.open.iter().map(|id| self.line(*id)));
        let text = parts.join("\n\n");
        let _ = waiter.reply.send(Ok(AgentReply { text, messages }));
    }

    pub(super) fn path(&self, id: SessionId) -> &str {
        self.tree().get(id).map_or("", |session| &session.path)
    }

    /// What an agent does, in a line.
    fn line(&self, id: SessionId) -> String {
        let Some(session) = self.tree().get(id) else {
            return String::new();
        };
        let state = if self.agents.is_closing(session) {
            "closed"
        } else if session.status == SessionStatus::Running {
            "at work"
        } else if session.held {
            "stopped; a message makes it go on"
        } else if session.pending.is_empty() {
            "waits for a message"
        } else {
            "about to begin"
        };
        format!("{}: {state}", session.path)
    }

    fn list(&self, from: SessionId) -> String {
        let root = self.machine.state().root_session;
        let below = self.tree().below(root).into_iter();
        let all = self.tree().get(root).into_iter().chain(below);
        let lines = all.map(|session| {
            let you = if session.id == from { " (you)" } else { "" };
            let model = &session.model.model;
            let agent = session.agent.as_deref();
            let agent = agent.map_or_else(String::new, |agent| format!(", agent {agent}"));
            format!("{}{you}{agent}, model {model}", self.line(session.id))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn interrupt_below(&mut self, from: SessionId, agent: &str) -> Result<Answer, AgentError> {
        let found = self.tree().find_below(from, agent)?;
        let (id, path) = (found.id, found.path.clone());
        let (reply, ended) = oneshot::channel();
        self.interrupt(id, InterruptScope::Tree, reply);
        Ok(Answer::Later(Box::pin(async move {
            let turn = ended.await.map_err(|_| RuntimeError::Stopped)??;
            Ok(match turn {
                Some(_) => format!("{path} is interrupted"),
                None => format!("{path} was not at work"),
            })
        })))
    }

    /// Interrupts a session's turn, and with the scope of the tree those of all sessions below it.
    pub(super) fn interrupt(
        &mut self,
        session: SessionId,
        scope: InterruptScope,
        reply: Reply<Option<openvaala_protocol::id::TurnId>>,
    ) {
        let Some(handle) = self.sessions.get(&session) else {
            return drop(reply.send(Err(self.no_session(session))));
        };
        if scope != InterruptScope::Tree {
            return handle.interrupt(reply);
        }
        // The one that starts others is stopped first.
        let (first, own) = oneshot::channel();
        handle.interrupt(first);
        let below: Vec<SessionId> = self
            .tree()
            .below(session)
            .iter()
            .map(|one| one.id)
            .collect();
        let mut others = Vec::with_capacity(below.len());
        for handle in below.iter().filter_map(|id| self.sessions.get(id)) {
            let (reply, ended) = oneshot::channel();
            handle.interrupt(reply);
            others.push(ended);
        }
        self.work.spawn(async move {
            join_all(others).await;
            let _ = reply.send(own.await.unwrap_or(Err(RuntimeError::Stopped)));
            Done::Settled
        });
    }

    /// Closes an agent and all below it; what hangs goes on ending without anybody.
    fn close_below(&mut self, from: SessionId, agent: &str) -> Result<Answer, AgentError> {
        let found = self.tree().find_below(from, agent)?;
        let (id, path) = (found.id, found.path.clone());
        let below = self.tree().below(id).into_iter().map(|one| one.id);
        let all: Vec<SessionId> = std::iter::once(id).chain(below).collect();
        let mut ending = Vec::new();
        for id in all {
            let Some(handle) = self.sessions.remove(&id) else {
                continue;
            };
            self.agents.closing.insert(id);
            self.agents.unheard.retain(|_, unheard| unheard.child != id);
            for waiter in self.agents.waits.gone(id) {
                self.tell_waiter(waiter, Some("it was closed"));
            }
            let workspaces = self.agents.own.remove(&id).unwrap_or_default();
            let (closed, is_closed) = oneshot::channel();
            self.work.spawn(close(handle, workspaces, closed));
            ending.push(is_closed);
        }
        Ok(Answer::Later(Box::pin(async move {
            let all = join_all(ending);
            Ok(match timeout(CLOSING, all).await {
                Ok(_) => format!("{path} is closed"),
                Err(_) => format!("{path} is closed; what it was doing has not stopped yet"),
            })
        })))
    }
}

/// Closes a session, ends its loop and leaves its workspaces.
async fn close(
    handle: SessionHandle,
    workspaces: Vec<Arc<dyn Workspace>>,
    closed: oneshot::Sender<()>,
) -> Done {
    let (reply, written) = oneshot::channel();
    handle.request(Request::Close, reply);
    let _ = written.await;
    let _ = closed.send(());
    handle.stop().await;
    for workspace in workspaces {
        workspace.close().await;
    }
    Done::Settled
}

type Later = futures::future::BoxFuture<'static, Result<String, AgentError>>;

enum Answer {
    Now(String),
    Later(Later),
}

/// What a report says that says nothing.
pub(super) fn said(text: &str) -> &str {
    if text.trim().is_empty() {
        "(it said nothing)"
    } else {
        text
    }
}

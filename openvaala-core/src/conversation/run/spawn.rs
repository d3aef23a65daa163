//! How an agent is started: it is checked, its folder is opened, its state is written, and only then it begins.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{ModelRef, WorkLocation};
use openvaala_protocol::id::{ExecutorId, ItemId, SessionId};
use openvaala_protocol::item::Item;
use tokio::sync::{mpsc, oneshot};

use super::agents::Tell;
use super::{ConversationLoop, Done, Event, Wait, workspaces};
use crate::agents::{AgentError, AgentReply, Given, Spawn};
use crate::context::inherited;
use crate::conversation::command::Upward;
use crate::conversation::tree::{is_name, level};
use crate::dao::mutation::Writer;
use crate::dao::record::{ChildState, QueuedInput, SessionState};
use crate::dao::tail;
use crate::error::RuntimeError;
use crate::journal::Batch;
use crate::runtime::Definitions;
use crate::session::{Inputs, SessionSetup, SessionStart};

/// An agent that could be started: all that can fail was done but for writing it down.
pub(super) struct Ready {
    parent: SessionId,
    spawn: Spawn,
    path: String,
    model: ModelRef,
    child: SessionId,
    locations: Option<Vec<WorkLocation>>,
    workspaces: Option<Vec<Arc<dyn Workspace>>>,
    items: Vec<Item>,
}

/// An agent whose state is being written.
pub(super) struct Started {
    start: SessionStart,
    parent: SessionId,
    path: String,
    foreground: bool,
    workspaces: Option<Vec<Arc<dyn Workspace>>>,
    tell: Tell,
}

impl ConversationLoop {
    pub(super) fn spawn_agent(&mut self, parent: SessionId, spawn: Spawn, tell: Tell) {
        let definitions = Arc::clone(&self.deps.definitions.borrow());
        let (path, model) = match self.check_spawn(parent, &spawn, &definitions) {
            Ok(checked) => checked,
            Err(error) => return drop(tell.send(Err(error))),
        };
        self.agents.starting.insert(path.clone());
        let child = SessionId::from_uuid(self.deps.ids.next());
        let (up, writer) = (self.up.clone(), Writer::new(&self.deps, self.id, None));
        let ids = Arc::clone(&self.deps.ids);
        self.work.spawn(async move {
            let ready = async {
                let (locations, workspaces) = ground(&up, parent, &spawn, &definitions).await?;
                let items = if spawn.context == Given::None {
                    Vec::new()
                } else {
                    let context = tail::context(&writer.log, writer.conversation, parent).await;
                    let context = context.map_err(RuntimeError::from)?;
                    let items = inherited(context, &mut || ItemId::from_uuid(ids.next()));
                    let batch = Batch {
                        items: items.clone(),
                        states: Vec::new(),
                    };
                    let written = writer.write(child, batch, false).await;
                    written.map_err(RuntimeError::from)?;
                    items
                };
                Ok(Ready {
                    parent,
                    spawn,
                    path: path.clone(),
                    model,
                    child,
                    locations,
                    workspaces,
                    items,
                })
            };
            let ready = ready.await.map(Box::new);
            Done::SpawnReady { path, ready, tell }
        });
    }

    /// What can be said without waiting: gives its path and the model that it asks.
    fn check_spawn(
        &self,
        parent: SessionId,
        spawn: &Spawn,
        definitions: &Definitions,
    ) -> Result<(String, ModelRef), AgentError> {
        let limits = definitions.agent_limits;
        let Some(above) = self.tree().get(parent) else {
            return Err(RuntimeError::Stopped.into());
        };
        if self.agents.is_closing(above) {
            let path = above.path.clone();
            return Err(AgentError::Closed { path });
        }
        if !is_name(&spawn.name) {
            let name = spawn.name.clone();
            return Err(AgentError::BadName { name });
        }
        let path = format!("{}/{}", above.path, spawn.name);
        if level(&path) > limits.depth {
            let limit = limits.depth;
            return Err(AgentError::TooDeep { limit });
        }
        let is_taken = self
            .machine
            .sessions()
            .values()
            .any(|known| known.path == path);
        if is_taken || self.agents.starting.contains(&path) {
            return Err(AgentError::NameTaken { path });
        }
        let is_open = |session: &&openvaala_protocol::conversation::Session| {
            session.parent.is_some() && !self.agents.is_closing(session)
        };
        let open = self.machine.sessions().values().filter(is_open).count();
        if open + self.agents.starting.len() >= limits.open {
            let limit = limits.open;
            return Err(AgentError::TooMany { limit });
        }
        Ok((path, model(spawn, definitions)?))
    }

    /// Writes the state of an agent that can be started.
    pub(super) fn spawn_ready(
        &mut self,
        path: &str,
        ready: Result<Box<Ready>, AgentError>,
        tell: Tell,
    ) {
        let ready = match ready {
            Ok(ready) if self.stopping.is_empty() && self.deleting.is_none() => *ready,
            Ok(_) => {
                self.agents.starting.remove(path);
                return drop(tell.send(Err(RuntimeError::Stopped.into())));
            }
            Err(error) => {
                self.agents.starting.remove(path);
                return drop(tell.send(Err(error)));
            }
        };
        let (parent, foreground) = (ready.parent, ready.spawn.foreground);
        let workspaces = ready.workspaces.clone();
        let start = self.start_of(ready);
        let child = Box::new(start.setup.state.clone());
        let started = Started {
            start,
            parent,
            path: path.to_owned(),
            foreground,
            workspaces,
            tell,
        };
        let wait = self.wait(Wait::Spawn(Box::new(started)));
        self.event(Event::Spawn { wait, child });
    }

    /// What the session of a new agent begins with: its task waits for it like any other input.
    fn start_of(&self, ready: Ready) -> SessionStart {
        let now = self.deps.clock.now();
        let Ready { spawn, items, .. } = ready;
        let task = QueuedInput {
            item_id: ItemId::from_uuid(self.deps.ids.next()),
            content: vec![Content::text(spawn.task)],
            steer: false,
            output_schema: None,
            queued_at: now,
            from: self.sender(ready.parent),
        };
        let mut inputs = Inputs::whole(items.iter().map(|item| item.head().id).collect());
        inputs.accept(task.item_id);
        let child = ChildState {
            path: ready.path,
            closed: false,
            tools: spawn.grants.tools,
            locations: ready.locations,
            token_budget: spawn.token_budget,
            reports: Vec::new(),
            summarise: spawn.context == Given::Summary && !items.is_empty(),
        };
        let state = SessionState {
            id: ready.child,
            conversation_id: self.id,
            parent: Some(ready.parent),
            agent: spawn.agent.or(spawn.grants.agent),
            model: ready.model,
            approval_mode: spawn.grants.approval_mode,
            approval_rules: spawn.grants.rules,
            active_turn: None,
            queue: vec![task],
            held: false,
            last_pos: items.last().map_or(0, |item| item.head().pos),
            newest_input: inputs.newest(),
            withdrawn: Vec::new(),
            usage: Default::default(),
            created_at: now,
            updated_at: now,
            context_tokens: None,
            child: Some(child),
        };
        let setup = SessionSetup {
            state,
            items,
            has_context: true,
            inputs,
            limits: self.deps.definitions.borrow().limits(),
        };
        SessionStart {
            setup,
            turns: Vec::new(),
        }
    }

    /// The agent is on disk: it begins.
    pub(super) fn spawned(&mut self, started: Started) {
        let Started {
            start,
            parent,
            path,
            foreground,
            workspaces,
            tell,
        } = started;
        let id = start.setup.state.id;
        self.agents.starting.remove(&path);
        if let Some(workspaces) = workspaces {
            self.agents.own.insert(id, workspaces);
        }
        self.event(Event::SessionChanged {
            session: Box::new(start.setup.state.to_wire()),
            metadata: None,
        });
        if foreground {
            self.add_waiter(parent, BTreeSet::from([id]), false, tell);
        } else {
            let text = format!("{path} has begun; its report comes to you as a message");
            let _ = tell.send(Ok(AgentReply::text(text)));
        }
        self.add_session(start);
    }

    pub(super) fn not_spawned(&mut self, started: Started, message: String) {
        self.agents.starting.remove(&started.path);
        self.left_workspaces
            .extend(started.workspaces.unwrap_or_default());
        let error = RuntimeError::NotWritten { message };
        let _ = started.tell.send(Err(error.into()));
    }
}

/// The model that a new agent asks.
fn model(spawn: &Spawn, definitions: &Definitions) -> Result<ModelRef, RuntimeError> {
    let mut model = match &spawn.agent {
        Some(name) if definitions.agent(name)?.model.is_some() => {
            definitions.model_of(Some(name))?
        }
        _ => spawn.grants.model.clone(),
    };
    if let Some(wanted) = &spawn.model {
        model = match wanted.split_once('/') {
            Some((provider, name)) if definitions.providers.contains_key(provider) => ModelRef {
                provider: provider.to_owned(),
                model: name.to_owned(),
                effort: None,
            },
            _ => ModelRef {
                provider: model.provider,
                model: wanted.clone(),
                effort: None,
            },
        };
    }
    if spawn.effort.is_some() {
        model.effort.clone_from(&spawn.effort);
    }
    definitions.provider(&model.provider)?;
    Ok(model)
}

type Own = (Option<Vec<WorkLocation>>, Option<Vec<Arc<dyn Workspace>>>);

/// Opens where a new agent works, if that is not where its starter does.
async fn ground(
    up: &mpsc::UnboundedSender<Upward>,
    parent: SessionId,
    spawn: &Spawn,
    definitions: &Definitions,
) -> Result<Own, AgentError> {
    let (reply, wait) = oneshot::channel();
    let ask = Upward::Ground {
        session: parent,
        locations: None,
        reply,
    };
    up.send(ask).map_err(|_| RuntimeError::Stopped)?;
    let of_parent = wait.await.map_err(|_| RuntimeError::Stopped)??.workspaces;
    if spawn.executors.is_none() && spawn.folder.is_none() {
        // Where a starter has a place of its own, that is also the place of those below it.
        let locations = workspaces::locations(&of_parent);
        return Ok((spawn.grants.own_place.then_some(locations), None));
    }
    let mut wanted = chosen(&of_parent, spawn.executors.as_deref())?;
    if let Some(folder) = &spawn.folder {
        let [only] = wanted.as_mut_slice() else {
            let known = wanted.iter().map(|one| one.executor.to_string());
            return Err(AgentError::WhichExecutor {
                known: known.collect(),
            });
        };
        // An absolute one stays what it is.
        let joined = Path::new(&only.root).join(folder);
        only.root = joined.to_string_lossy().into_owned();
    }
    let opened = workspaces::open(&wanted, &definitions.executors).await?;
    let locations = workspaces::locations(&opened);
    if spawn.grants.mode != ApprovalMode::Full
        && let Some(outside) = locations.iter().find(|one| !is_within(one, &of_parent))
    {
        for workspace in &opened {
            workspace.close().await;
        }
        return Err(AgentError::OutsideFolder {
            folder: outside.root.clone(),
            known: of_parent.iter().map(|one| one.root().to_owned()).collect(),
        });
    }
    Ok((Some(locations), Some(opened)))
}

/// The places of those executors.
fn chosen(
    of_parent: &[Arc<dyn Workspace>],
    executors: Option<&[ExecutorId]>,
) -> Result<Vec<WorkLocation>, AgentError> {
    let places = workspaces::locations(of_parent);
    let Some(executors) = executors else {
        return Ok(places);
    };
    let find = |id: &ExecutorId| {
        let place = places.iter().find(|place| place.executor == *id);
        place.cloned().ok_or_else(|| AgentError::NoExecutor {
            name: id.to_string(),
            known: places.iter().map(|one| one.executor.to_string()).collect(),
        })
    };
    executors.iter().map(find).collect()
}

/// Whether a place is one of those, or lies below it on the same executor.
fn is_within(place: &WorkLocation, of_parent: &[Arc<dyn Workspace>]) -> bool {
    of_parent.iter().any(|above| {
        *above.executor() == place.executor && Path::new(&place.root).starts_with(above.root())
    })
}

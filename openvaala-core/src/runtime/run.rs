//! The runtime's loop: the one owner of the table of open conversations.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use openvaala_protocol::id::ConversationId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{NewConversation, RuntimeStatus, load};
use crate::conversation::{ConversationDeps, ConversationHandle, ConversationStart, start};
use crate::dao::index::Row;
use crate::error::RuntimeError;

/// How long the last rows may take to their place.
const LAST_ROWS: Duration = Duration::from_secs(2);

type Reply<T> = oneshot::Sender<Result<T, RuntimeError>>;

/// What is asked of a runtime.
#[derive(Debug)]
pub(super) enum Command {
    Create {
        new: Box<NewConversation>,
        reply: Reply<ConversationHandle>,
    },
    Open {
        id: ConversationId,
        reply: Reply<ConversationHandle>,
    },
    Status {
        reply: oneshot::Sender<RuntimeStatus>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

pub(super) struct RuntimeLoop {
    deps: ConversationDeps,
    commands: mpsc::Receiver<Command>,
    open: HashMap<ConversationId, ConversationHandle>,
    opening: HashMap<ConversationId, Vec<Reply<ConversationHandle>>>,
    /// The loops of the conversations, each giving its id when it ends.
    conversations: JoinSet<()>,
    loops: HashMap<tokio::task::Id, ConversationId>,
    work: JoinSet<Done>,
    stopping: Vec<oneshot::Sender<()>>,
}

enum Done {
    Created {
        start: Result<Box<ConversationStart>, RuntimeError>,
        reply: Reply<ConversationHandle>,
    },
    Opened {
        id: ConversationId,
        start: Result<Box<ConversationStart>, RuntimeError>,
    },
    Settled {
        handle: ConversationHandle,
    },
    Stopped,
    Told,
}

impl RuntimeLoop {
    pub(super) fn new(deps: ConversationDeps, commands: mpsc::Receiver<Command>) -> Self {
        Self {
            deps,
            commands,
            open: HashMap::new(),
            opening: HashMap::new(),
            conversations: JoinSet::new(),
            loops: HashMap::new(),
            work: JoinSet::new(),
            stopping: Vec::new(),
        }
    }

    /// Runs until it is stopped or nobody holds the runtime, and ends those tasks with it.
    pub(super) async fn run(mut self, mut tasks: JoinSet<()>) {
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => break,
                },
                Some(done) = self.work.join_next(), if !self.work.is_empty() => match done {
                    Ok(Done::Stopped) => break,
                    Ok(done) => self.done(done),
                    // Whoever asked sees its reply dropped, which reads as "stopped"; others go on.
                    Err(error) => tracing::error!(%error, "opening a conversation failed"),
                },
                Some(ended) = self.conversations.join_next_with_id(), if !self.conversations.is_empty() => {
                    self.ended(ended);
                }
            }
        }
        // What cannot be written is made anew at the next start.
        let _ = timeout(LAST_ROWS, self.deps.index.flush()).await;
        tasks.shutdown().await;
        for reply in self.stopping.drain(..) {
            let _ = reply.send(());
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Create { reply, .. } | Command::Open { reply, .. }
                if !self.stopping.is_empty() =>
            {
                let _ = reply.send(Err(RuntimeError::Stopped));
            }
            Command::Create { new, reply } => {
                let deps = self.deps.clone();
                self.work.spawn(async move {
                    let start = load::create(&deps, *new).await.map(Box::new);
                    Done::Created { start, reply }
                });
            }
            Command::Open { id, reply } => self.open(id, reply),
            Command::Status { reply } => {
                let running_turns = self
                    .open
                    .values()
                    .map(ConversationHandle::running_turns)
                    .sum();
                let open_conversations = self.open.len();
                let open: Vec<ConversationHandle> = self.open.values().cloned().collect();
                self.work.spawn(async move {
                    let commands = open.iter().map(ConversationHandle::running_commands);
                    let running_commands = join_all(commands).await.into_iter().sum();
                    let _ = reply.send(RuntimeStatus {
                        open_conversations,
                        running_turns,
                        running_commands,
                        degraded: Vec::new(),
                    });
                    Done::Told
                });
            }
            Command::Stop { reply } => {
                self.stopping.push(reply);
                let open: Vec<ConversationHandle> = self.open.values().cloned().collect();
                self.work.spawn(async move {
                    join_all(open.iter().map(ConversationHandle::stop)).await;
                    Done::Stopped
                });
            }
        }
    }

    fn open(&mut self, id: ConversationId, reply: Reply<ConversationHandle>) {
        if let Some(waiting) = self.opening.get_mut(&id) {
            waiting.push(reply);
            return;
        }
        if let Some(handle) = self.open.get(&id) {
            let _ = reply.send(Ok(handle.clone()));
            return;
        }
        let waiting = self.opening.entry(id).or_default();
        waiting.push(reply);
        let deps = self.deps.clone();
        self.work.spawn(async move {
            let start = load::open(&deps, id).await.map(Box::new);
            Done::Opened { id, start }
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Created {
                start: Ok(start),
                reply,
            } => {
                let handle = self.start(*start);
                let _ = reply.send(Ok(handle));
            }
            Done::Created {
                start: Err(error),
                reply,
            } => {
                let _ = reply.send(Err(error));
            }
            Done::Opened {
                start: Ok(start), ..
            } => {
                self.heal_row(&start);
                let handle = self.start(*start);
                self.work.spawn(async move {
                    handle.settle().await;
                    Done::Settled { handle }
                });
            }
            Done::Settled { handle } => {
                for reply in self.opening.remove(&handle.id()).unwrap_or_default() {
                    let _ = reply.send(Ok(handle.clone()));
                }
            }
            Done::Opened {
                id,
                start: Err(error),
            } => {
                if matches!(error, RuntimeError::ConversationNotFound { .. }) {
                    self.deps.index.remove(id);
                }
                let mut error = Some(error);
                for reply in self.opening.remove(&id).unwrap_or_default() {
                    // The first is told the cause; the others, who asked at the same moment, may ask again.
                    let error = error.take().unwrap_or(RuntimeError::Overloaded);
                    let _ = reply.send(Err(error));
                }
            }
            Done::Stopped | Done::Told => {}
        }
    }

    /// What was read for an opening also puts the row right, should it be missing or old.
    fn heal_row(&self, start: &ConversationStart) {
        let Some((seq, fingerprint)) = &start.metadata else {
            return;
        };
        if self.deps.staging.is_staged(start.state.id) {
            return;
        }
        let Some(conversation) = start.states.wire_conversation() else {
            return;
        };
        let mut sessions = start.states.sessions.values();
        let waiting = sessions.any(|session| !session.queue.is_empty());
        let row = Row::new(conversation, waiting, fingerprint);
        self.deps.index.put(*seq, row);
    }

    fn start(&mut self, begin: ConversationStart) -> ConversationHandle {
        let id = begin.state.id;
        let (handle, run) = start(self.deps.clone(), begin);
        let task = self.conversations.spawn(run);
        self.loops.insert(task.id(), id);
        self.open.insert(id, handle.clone());
        handle
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, ()), tokio::task::JoinError>) {
        let task = match &ended {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        let Some(id) = self.loops.remove(&task) else {
            return;
        };
        self.open.remove(&id);
        if let Err(error) = ended {
            tracing::error!(conversation = %id, %error, "a conversation ended with a fault");
        }
    }
}

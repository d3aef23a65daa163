//! The runtime's loop: the one owner of the table of open conversations.

mod begin;

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::params::approval::OpenApproval;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use super::close::{CloseReply, Closed};
use super::trash::{TrashCommand, TrashQueue, perform};
use super::unload::{Unused, until_next_look};
use super::{NewConversation, RuntimeStatus, load};
use crate::conversation::{ConversationDeps, ConversationHandle, ConversationStart, start};
use crate::dao::fork::Source;
use crate::dao::index::Row;
use crate::error::RuntimeError;

/// How often the trash is looked at for what is too old.
const EXPIRY: Duration = Duration::from_secs(3_600);
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
    /// A conversation, if it is in memory.
    Loaded {
        id: ConversationId,
        reply: oneshot::Sender<Option<ConversationHandle>>,
    },
    /// Close a conversation if nobody uses it.
    Close {
        id: ConversationId,
        reply: CloseReply,
    },
    Status {
        reply: oneshot::Sender<RuntimeStatus>,
    },
    Trash(TrashCommand),
    Stop {
        reply: oneshot::Sender<()>,
    },
    Fork {
        source: Source,
        /// The id of the new one, if whoever asks has chosen it.
        to: Option<ConversationId>,
        reply: Reply<ConversationHandle>,
    },
    Approvals {
        reply: oneshot::Sender<Vec<OpenApproval>>,
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
    trash: TrashQueue,
    unused: Unused,
    /// Conversations that are asked whether they can be closed, or end, and who waits for them to be open.
    unloading: HashMap<ConversationId, Vec<Reply<ConversationHandle>>>,
    /// Who waits to hear whether one of those is closed.
    closing: HashMap<ConversationId, Vec<CloseReply>>,
    stopping: Vec<oneshot::Sender<()>>,
}

enum Done {
    Created {
        id: ConversationId,
        start: Result<Box<ConversationStart>, RuntimeError>,
    },
    Opened {
        id: ConversationId,
        start: Result<Box<ConversationStart>, RuntimeError>,
    },
    Settled {
        handle: ConversationHandle,
    },
    /// A conversation was asked whether it can be closed; if so it ends now.
    Asked {
        id: ConversationId,
        ends: bool,
    },
    Stopped,
    Told,
    /// What was asked of the trash is done.
    Trashed,
    Forked {
        id: ConversationId,
        forked: Result<(), RuntimeError>,
    },
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
            trash: TrashQueue::default(),
            unused: Unused::default(),
            unloading: HashMap::new(),
            closing: HashMap::new(),
            stopping: Vec::new(),
        }
    }

    /// Runs until it is stopped or nobody holds the runtime, and ends those tasks with it.
    pub(super) async fn run(mut self, mut tasks: JoinSet<()>) {
        // Before anything that is asked of the trash.
        self.command(Command::Trash(TrashCommand::Expire));
        let mut expiry = interval_at(Instant::now() + EXPIRY, EXPIRY);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look = Instant::now() + self.until_next_look();
        loop {
            tokio::select! {
                _ = expiry.tick() => self.command(Command::Trash(TrashCommand::Expire)),
                () = sleep_until(look) => {
                    self.unload();
                    look = Instant::now() + self.until_next_look();
                }
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
            Command::Create { reply, .. }
            | Command::Open { reply, .. }
            | Command::Fork { reply, .. }
                if !self.stopping.is_empty() =>
            {
                let _ = reply.send(Err(RuntimeError::Stopped));
            }
            Command::Create { new, reply } => self.create(*new, reply),
            Command::Open { id, reply } => self.open(id, reply),
            Command::Fork { source, to, reply } => self.fork(source, to, reply),
            Command::Loaded { id, reply } => {
                let is_loaded = !self.unloading.contains_key(&id);
                let loaded = self.open.get(&id).filter(|_| is_loaded).cloned();
                let _ = reply.send(loaded);
            }
            Command::Close { id, reply } => self.close(id, reply),
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
            Command::Approvals { reply } => {
                let open: Vec<ConversationHandle> = self.open.values().cloned().collect();
                self.work.spawn(async move {
                    let approvals = open.iter().map(ConversationHandle::approvals);
                    let approvals = join_all(approvals).await.into_iter();
                    // One that has just ended has no questions any more.
                    let mut approvals: Vec<OpenApproval> = approvals.flatten().flatten().collect();
                    approvals.sort_by_key(|open| (open.asked_at, open.approval_id));
                    let _ = reply.send(approvals);
                    Done::Told
                });
            }
            Command::Trash(command) if !self.stopping.is_empty() => command.refuse(),
            Command::Trash(command) => {
                self.trash.waiting.push_back(command);
                self.next_of_trash();
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

    /// Does the next thing that was asked of the trash, unless something is being done or its conversation is just being opened.
    fn next_of_trash(&mut self) {
        let next = self.trash.waiting.front().map(TrashCommand::id);
        let is_opening = next
            .flatten()
            .is_some_and(|id| self.opening.contains_key(&id) || self.unloading.contains_key(&id));
        if self.trash.is_busy || is_opening {
            return;
        }
        let Some(command) = self.trash.waiting.pop_front() else {
            return;
        };
        self.trash.is_busy = true;
        self.trash.moving = command.id();
        let open = command.id().and_then(|id| self.open.get(&id)).cloned();
        let deps = self.deps.clone();
        self.work.spawn(async move {
            perform(&deps, command, open).await;
            Done::Trashed
        });
    }

    fn trashed(&mut self) {
        self.trash.is_busy = false;
        if let Some(id) = self.trash.moving.take() {
            // A deleted one has ended, though its task may not have been noticed yet.
            if self
                .open
                .get(&id)
                .is_some_and(ConversationHandle::has_ended)
            {
                self.open.remove(&id);
            }
            for reply in std::mem::take(&mut self.trash.openers) {
                self.open(id, reply);
            }
        }
        self.next_of_trash();
    }

    fn until_next_look(&self) -> Duration {
        until_next_look(self.deps.definitions.borrow().unload_after)
    }

    /// Asks conversations that have not been in use for long enough to end.
    fn unload(&mut self) {
        let Some(after) = self.deps.definitions.borrow().unload_after else {
            return;
        };
        let now = Instant::now();
        let mut over = Vec::new();
        for (id, handle) in &self.open {
            if self.is_busy(*id) || handle.is_held() || handle.running_turns() > 0 {
                self.unused.used(*id);
            } else if self.unused.is_over(*id, now, after) {
                self.unused.used(*id);
                over.push((*id, handle.clone()));
            }
        }
        for (id, handle) in over {
            self.ask_to_end(id, handle);
        }
    }

    /// Whether it comes, goes or moves just now.
    fn is_busy(&self, id: ConversationId) -> bool {
        self.unloading.contains_key(&id)
            || self.opening.contains_key(&id)
            || self.trash.moving == Some(id)
    }

    /// Asks a conversation that nobody holds whether it can end.
    fn ask_to_end(&mut self, id: ConversationId, handle: ConversationHandle) {
        // Nobody gets a handle from now on until the answer is there.
        self.unloading.insert(id, Vec::new());
        self.work.spawn(async move {
            let ends = handle.stop_if_idle().await;
            Done::Asked { id, ends }
        });
    }

    fn close(&mut self, id: ConversationId, reply: CloseReply) {
        let handle = self.open.get(&id);
        let answer = match handle {
            Some(_) if self.unloading.contains_key(&id) => {
                self.closing.entry(id).or_default().push(reply);
                return;
            }
            _ if self.is_busy(id) => Closed::No,
            None => Closed::Before,
            Some(handle) if handle.is_held() || handle.running_turns() > 0 => Closed::No,
            Some(handle) => {
                let handle = handle.clone();
                self.closing.entry(id).or_default().push(reply);
                self.ask_to_end(id, handle);
                return;
            }
        };
        let _ = reply.send(answer);
    }

    fn tell_closers(&mut self, id: ConversationId, closed: Closed) {
        for reply in self.closing.remove(&id).unwrap_or_default() {
            let _ = reply.send(closed);
        }
    }

    fn open(&mut self, id: ConversationId, reply: Reply<ConversationHandle>) {
        self.unused.used(id);
        if self.trash.moving == Some(id) {
            self.trash.openers.push(reply);
            return;
        }
        if let Some(waiting) = self.unloading.get_mut(&id) {
            waiting.push(reply);
            return;
        }
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
            Done::Created { id, start } => self.created(id, start),
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
            Done::Settled { handle } => self.opened(&handle),
            Done::Opened {
                id,
                start: Err(error),
            } => {
                if matches!(error, RuntimeError::ConversationNotFound { .. }) {
                    self.deps.index.remove(id);
                }
                self.not_opened(id, error);
            }
            Done::Trashed => self.trashed(),
            // One that ends is opened anew once it has.
            Done::Asked { id, ends } => {
                if !ends {
                    self.tell_closers(id, Closed::No);
                }
                if !ends || !self.open.contains_key(&id) {
                    self.open_for_those_who_wait(id);
                }
            }
            Done::Forked { id, forked } => self.forked(id, forked),
            Done::Stopped | Done::Told => {}
        }
    }

    /// Gives a conversation to all who wait for it to be open.
    fn opened(&mut self, handle: &ConversationHandle) {
        for reply in self.opening.remove(&handle.id()).unwrap_or_default() {
            let _ = reply.send(Ok(handle.clone()));
        }
        self.next_of_trash();
    }

    fn not_opened(&mut self, id: ConversationId, error: RuntimeError) {
        let mut error = Some(error);
        for reply in self.opening.remove(&id).unwrap_or_default() {
            // The first is told the cause; the others, who asked at the same moment, may ask again.
            let error = error.take().unwrap_or(RuntimeError::Overloaded);
            let _ = reply.send(Err(error));
        }
        self.next_of_trash();
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
        // After a restoration there may be a new one of that id.
        if self
            .open
            .get(&id)
            .is_some_and(ConversationHandle::has_ended)
        {
            self.open.remove(&id);
        }
        self.unused.used(id);
        if let Err(error) = ended {
            tracing::error!(conversation = %id, %error, "a conversation ended with a fault");
        }
        self.tell_closers(id, Closed::Now);
        self.open_for_those_who_wait(id);
    }

    fn open_for_those_who_wait(&mut self, id: ConversationId) {
        for reply in self.unloading.remove(&id).unwrap_or_default() {
            if self.stopping.is_empty() {
                self.open(id, reply);
            } else {
                let _ = reply.send(Err(RuntimeError::Stopped));
            }
        }
        self.next_of_trash();
    }
}

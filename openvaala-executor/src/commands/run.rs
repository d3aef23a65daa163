//! The loop that owns a session's commands.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::select;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::handle::{Attended, CommandHandle};
use super::runner::Start;
use super::{CommandError, CommandId, CommandInfo};

/// How many commands that have ended are remembered.
const REMEMBERED: usize = 50;

/// Whatever has not gone by then is dropped, and with it its group killed.
const LONGEST_CLOSE: Duration = Duration::from_millis(2_500);

/// What the loop is asked for.
#[derive(Debug)]
pub(super) enum Request {
    Adopt {
        start: Start,
        reply: oneshot::Sender<Attended>,
    },
    Close(oneshot::Sender<()>),
    Get {
        id: CommandId,
        reply: oneshot::Sender<Result<CommandHandle, CommandError>>,
    },
    List(oneshot::Sender<Vec<CommandInfo>>),
}

/// Runs until it is closed.
pub(super) async fn run(mut mailbox: mpsc::Receiver<Box<Request>>) {
    let mut session = Session::default();
    let mut closers = Vec::new();
    loop {
        select! {
            request = mailbox.recv() => match request.map(|request| *request) {
                Some(Request::Close(reply)) => {
                    closers.push(reply);
                    break;
                }
                Some(request) => session.answer(request),
                None => break,
            },
            Some(_) = session.tasks.join_next() => {}
        }
    }
    mailbox.close();
    session.close().await;
    // Those that came meanwhile: what they bring is dropped, and killed by that.
    while let Some(request) = mailbox.recv().await {
        if let Request::Close(reply) = *request {
            closers.push(reply);
        }
    }
    drop(session);
    for reply in closers {
        // Who asked may have gone.
        let _ = reply.send(());
    }
}

#[derive(Default)]
struct Session {
    known: BTreeMap<CommandId, CommandHandle>,
    tasks: JoinSet<()>,
    closing: CancellationToken,
    last: u32,
}

impl Session {
    fn answer(&mut self, request: Request) {
        // A dropped reply means that nobody waits for it any more.
        match request {
            Request::Adopt { start, reply } => {
                let _ = reply.send(self.adopt(start));
            }
            Request::Close(reply) => drop(reply),
            Request::Get { id, reply } => {
                let known = || self.known.keys().copied().collect();
                let found = self.known.get(&id).cloned();
                let _ =
                    reply.send(found.ok_or_else(|| CommandError::NotFound { id, known: known() }));
            }
            Request::List(reply) => {
                let _ = reply.send(self.known.values().map(CommandHandle::info).collect());
            }
        }
    }

    fn adopt(&mut self, start: Start) -> Attended {
        self.last += 1;
        let id = CommandId::new(self.last);
        let (attended, runner) = start.split(id, self.closing.clone());
        self.tasks.spawn(runner);
        self.known.insert(id, attended.handle().clone());
        self.forget_old();
        attended
    }

    /// A command that is forgotten ends its task as soon as nobody holds a handle of it.
    fn forget_old(&mut self) {
        let ended = self.known.values().filter(|handle| handle.is_ended());
        let ended: Vec<CommandId> = ended.map(CommandHandle::id).collect();
        let surplus = ended.len().saturating_sub(REMEMBERED);
        for id in &ended[..surplus] {
            self.known.remove(id);
        }
    }

    async fn close(&mut self) {
        self.closing.cancel();
        let deadline = Instant::now() + LONGEST_CLOSE;
        loop {
            select! {
                biased;
                ended = self.tasks.join_next() => if ended.is_none() { return },
                () = sleep_until(deadline) => break,
            }
        }
        tracing::warn!(
            left = self.tasks.len(),
            "commands did not end with their session in time"
        );
        self.tasks.shutdown().await;
    }
}

//! The server's loop: the one owner of its connections and of its end.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::auth::Throttle;
use crate::connection;
use crate::context::{Command, Context, Phase, Reload};
use crate::http::{Doors, Gate};
use crate::process::discovery::DiscoveryFile;
use crate::process::signals::{Signals, Told};

/// How long what runs has to be written down at the end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(7);
/// How often it is looked whether a turn still runs that the end waits for.
const LOOK: Duration = Duration::from_millis(100);
/// How long connections have to send their last words at the end.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

pub(crate) struct ServerLoop {
    doors: Doors,
    context: Context,
    commands: mpsc::Receiver<Command>,
    phase: watch::Sender<Phase>,
    signals: Signals,
    discovery: DiscoveryFile,
    connections: JoinSet<()>,
    /// Connections that have not shown that they hold the token, the oldest first.
    waiting: VecDeque<AbortHandle>,
    /// Connections that have.
    clients: HashSet<Id>,
    /// Who has shown wrong tokens.
    throttle: Throttle,
    /// Set once somebody has asked for the end.
    ending: Option<Ending>,
    /// Whether the server ends by itself.
    ends_idle: bool,
    /// Since when there is no client.
    idle_since: Instant,
}

/// An end that waits for running turns.
struct Ending {
    reason: String,
    /// Until when it waits.
    until: Instant,
    /// When to see again whether any still runs.
    look: Instant,
}

pub(crate) struct Parts {
    pub(crate) doors: Doors,
    pub(crate) context: Context,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) signals: Signals,
    pub(crate) discovery: DiscoveryFile,
    pub(crate) ends_idle: bool,
}

impl ServerLoop {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            doors,
            context,
            commands,
            phase,
            signals,
            discovery,
            ends_idle,
        } = parts;
        Self {
            doors,
            context,
            commands,
            phase,
            signals,
            discovery,
            connections: JoinSet::new(),
            waiting: VecDeque::new(),
            clients: HashSet::new(),
            throttle: Throttle::default(),
            ending: None,
            ends_idle,
            idle_since: Instant::now(),
        }
    }

    /// Serves until somebody ends it.
    pub(crate) async fn run(mut self) {
        let reason = self.serve().await;
        tracing::info!(%reason, "the server stops");
        self.stop(reason).await;
    }

    async fn serve(&mut self) -> String {
        loop {
            let idle_end = self.idle_end();
            let look = self.ending.as_ref().map_or(idle_end, |ending| ending.look);
            tokio::select! {
                (stream, peer, gate) = self.doors.next() => self.accepted(stream, peer, gate),
                Some(ended) = self.connections.join_next_with_id() => self.ended(ended),
                Some(command) = self.commands.recv() => match command {
                    Command::Admitted(id) => self.admitted(id),
                    Command::Refused(from, reply) => {
                        let verdict = self.throttle.refused(from, Instant::now());
                        if let Some(count) = verdict.log {
                            tracing::warn!(%from, count, "a wrong token was refused");
                        }
                        let _ = reply.send(verdict.wait);
                    }
                    Command::Clients(reply) => {
                        // Whoever asked may have gone.
                        let _ = reply.send(self.clients());
                    }
                    Command::Stop { reason, wait } => self.wait_for_turns(reason, wait),
                },
                () = sleep_until(look), if self.ending.is_some() => {
                    if let Some(reason) = self.end_of_waiting().await {
                        return reason;
                    }
                }
                told = self.signals.next() => match told {
                    Told::End => return "the system asked for it".to_owned(),
                    Told::Reload => self.reload(),
                },
                () = sleep_until(idle_end), if self.is_idle() => {
                    if self.works().await {
                        self.idle_since = Instant::now();
                    } else {
                        return "it had nothing to do".to_owned();
                    }
                }
            }
        }
    }

    fn accepted(&mut self, stream: TcpStream, peer: SocketAddr, gate: Arc<Gate>) {
        let limits = self.context.assembled().config.limits;
        let most = limits.connections;
        if self.connections.len() >= most {
            tracing::warn!(%peer, "there are {most} connections, one more was refused");
            return;
        }
        let most = limits.waiting_connections;
        if self.waiting.len() >= most
            && let Some(oldest) = self.waiting.pop_front()
        {
            tracing::warn!("{most} connections wait to be let in, the oldest was ended");
            oldest.abort();
        }
        let context = self.context.clone();
        let task = async move { connection::serve(stream, peer, &gate, context, limits).await };
        self.waiting.push_back(self.connections.spawn(task));
    }

    fn admitted(&mut self, id: Id) {
        let waiting = self.waiting.len();
        self.waiting.retain(|waiting| waiting.id() != id);
        // One that has ended meanwhile waits no more.
        if self.waiting.len() < waiting {
            self.clients.insert(id);
        }
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.waiting.retain(|waiting| waiting.id() != id);
        self.clients.remove(&id);
        if let Err(error) = ended
            && error.is_panic()
        {
            tracing::error!(%error, "a connection ended with a fault");
        }
        self.idle_since = Instant::now();
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn is_idle(&self) -> bool {
        self.ends_idle && self.clients() == 0
    }

    fn idle_end(&self) -> Instant {
        self.idle_since + self.context.assembled().idle_exit
    }

    /// Ends soon: once no turn runs, or when that has taken too long.
    fn wait_for_turns(&mut self, reason: String, wait: Duration) {
        let now = Instant::now();
        let mut until = now + wait;
        if let Some(ending) = &self.ending {
            // Whoever asks again may have less patience, never more.
            until = until.min(ending.until);
        }
        let look = now;
        self.ending = Some(Ending {
            reason,
            until,
            look,
        });
    }

    /// Why the server ends, if it is time for it.
    async fn end_of_waiting(&mut self) -> Option<String> {
        let running = self.context.runtime.status().await;
        let running = running.map_or(0, |status| status.running_turns);
        let now = Instant::now();
        let ending = self.ending.as_mut()?;
        if running == 0 || now >= ending.until {
            return Some(ending.reason.clone());
        }
        ending.look = (now + LOOK).min(ending.until);
        None
    }

    /// Whether something is to be done although no client is there.
    async fn works(&self) -> bool {
        self.context
            .runtime
            .status()
            .await
            .is_ok_and(|status| status.running_turns + status.running_commands > 0)
    }

    fn reload(&self) {
        let (reply, _) = oneshot::channel();
        // The queue is full only if as many reloads are under way already.
        if self
            .context
            .reloads
            .try_send(Reload {
                change: None,
                reply,
            })
            .is_err()
        {
            tracing::warn!("the configuration is being loaded anew already");
        }
    }

    /// Ends everything in order; a second signal cuts it short.
    async fn stop(mut self, reason: String) {
        self.phase.send_replace(Phase::Stopping { reason });
        // From here on nobody is let in any more, and nobody waits for an answer of this loop.
        drop(self.doors);
        drop(self.commands);
        let runtime = self.context.runtime.clone();
        let mut cut_short = false;
        tokio::select! {
            ended = timeout(SHUTDOWN_LIMIT, runtime.shutdown()) => {
                if ended.is_err() {
                    tracing::error!("what runs could not be written down in time");
                }
            }
            () = second_signal(&mut self.signals) => cut_short = true,
        }
        self.phase.send_replace(Phase::Closing);
        if !cut_short {
            let all_closed = async { while self.connections.join_next().await.is_some() {} };
            tokio::select! {
                // Those that are late are ended below.
                _ = timeout(CLOSE_LIMIT, all_closed) => {}
                () = second_signal(&mut self.signals) => cut_short = true,
            }
        }
        let last = if cut_short {
            Duration::from_millis(200)
        } else {
            Duration::from_secs(1)
        };
        // They end at their next await; one that computes for longer does not hold the end up.
        let _ = timeout(last, self.connections.shutdown()).await;
        self.discovery.remove();
    }
}

async fn second_signal(signals: &mut Signals) {
    while signals.next().await != Told::End {
        // A reload makes no sense any more; the pause keeps a flood of them from spinning.
        sleep(Duration::from_millis(10)).await;
    }
    tracing::warn!("the server was told to end a second time and ends at once");
}

//! The task that owns the connection, and opens it again.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch as cell};
use tokio::time::{Instant, sleep};

use super::watch::{EVENTS, Told, Watching};
use super::{Locate, SteadyOptions};
use crate::client::{Client, ClientError, Notices};
use crate::event::ResumeCursor;
use crate::id::ConversationId;
use crate::rpc::Notice;
use crate::rpc::method::{ConversationSubscribe, ConversationUnsubscribe};
use crate::rpc::params::conversation::{SubscribeParams, UnsubscribeParams};

/// What the task is asked for.
#[derive(Debug)]
pub(super) enum Command {
    Watch(Watching),
    /// Forget what was told of a conversation, and begin with all that there is.
    Anew(ConversationId),
    /// Nobody takes the events of that watch any more.
    Left(ConversationId),
    Close,
}

/// A connection, and the how manieth it is.
#[derive(Clone, Debug)]
pub(super) struct Connected {
    pub(super) number: u64,
    pub(super) client: Client,
}

/// How it stands with the connection.
#[derive(Debug)]
pub(super) enum State {
    Connected(Connected),
    Away,
    Ended(String),
}

/// Why the task stops to serve a connection.
enum Stop {
    Lost(String),
    Closed,
}

/// What the task owns.
pub(super) struct Loop {
    locate: Arc<dyn Locate>,
    options: SteadyOptions,
    state: cell::Sender<State>,
    inbox: mpsc::UnboundedReceiver<Command>,
    watches: BTreeMap<ConversationId, Watching>,
    /// Watches that are told nothing until they have room.
    behind: FuturesUnordered<BoxFuture<'static, ConversationId>>,
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").finish_non_exhaustive()
    }
}

impl Loop {
    pub(super) fn new(
        locate: Arc<dyn Locate>,
        options: SteadyOptions,
        state: cell::Sender<State>,
        inbox: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            locate,
            options,
            state,
            inbox,
            watches: BTreeMap::new(),
            behind: FuturesUnordered::new(),
        }
    }

    pub(super) async fn run(mut self, connected: Connected, notices: Notices) {
        let mut connection = (connected, notices);
        let reason = loop {
            let (connected, notices) = connection;
            let number = connected.number;
            let lost = match self.serve(&connected.client, notices).await {
                Stop::Lost(reason) => reason,
                Stop::Closed => {
                    connected.client.close().await;
                    break "this client was closed".to_owned();
                }
            };
            self.state.send_replace(State::Away);
            for watching in self.watches.values() {
                // One that has no room sees at its next event that it was away.
                let _ = watching.told.try_send(Told::Lost(lost.clone()));
            }
            let (client, notices) = match self.come_back(lost).await {
                Ok(back) => back,
                Err(reason) => break reason,
            };
            let connected = Connected {
                number: number + 1,
                client,
            };
            self.state.send_replace(State::Connected(connected.clone()));
            connection = (connected, notices);
        };
        for watching in self.watches.values() {
            let _ = watching
                .told
                .try_send(Told::Ended(super::gone(reason.as_str())));
        }
        self.state.send_replace(State::Ended(reason));
    }

    /// Serves one connection until it is lost.
    async fn serve(&mut self, client: &Client, mut notices: Notices) -> Stop {
        let watched: Vec<ConversationId> = self.watches.keys().copied().collect();
        for id in watched {
            if let Err(stop) = self.subscribe(client, id).await {
                return stop;
            }
        }
        loop {
            let done = tokio::select! {
                command = self.inbox.recv() => self.obey(client, command).await,
                notice = notices.recv() => match notice {
                    Some(notice) => self.route(client, notice).await,
                    None => Err(Stop::Lost(client.closed().await)),
                },
                Some(id) = self.behind.next() => {
                    if let Some(watching) = self.watches.get_mut(&id) {
                        watching.is_behind = false;
                    }
                    self.subscribe(client, id).await
                }
            };
            if let Err(stop) = done {
                return stop;
            }
        }
    }

    async fn obey(&mut self, client: &Client, command: Option<Command>) -> Result<(), Stop> {
        match command {
            Some(Command::Watch(watching)) => {
                let id = watching.conversation;
                self.watches.insert(id, watching);
                self.subscribe(client, id).await
            }
            Some(Command::Left(id)) => self.forget(client, id).await,
            Some(Command::Anew(id)) => {
                self.begin_anew(id);
                // What is on its way on this connection belongs to what was.
                client.clone().close().await;
                Err(Stop::Lost("the server left something out".to_owned()))
            }
            Some(Command::Close) | None => Err(Stop::Closed),
        }
    }

    fn begin_anew(&mut self, id: ConversationId) {
        if let Some(watching) = self.watches.get_mut(&id) {
            watching.cursor = None;
        }
    }

    /// Subscribes from the last cursor on, and tells the watch what came of it.
    async fn subscribe(&mut self, client: &Client, id: ConversationId) -> Result<(), Stop> {
        let Some(watching) = self.watches.get_mut(&id) else {
            return Ok(());
        };
        if watching.is_behind {
            return Ok(());
        }
        let params = SubscribeParams {
            conversation_id: id,
            cursor: watching.cursor.clone(),
        };
        match client.call::<ConversationSubscribe>(params).await {
            Ok(result) => {
                let cursor = result.cursor.clone();
                self.tell(client, id, Told::Subscribed(Box::new(result)), Some(cursor))
                    .await
            }
            Err(ClientError::Disconnected { reason, .. }) => Err(Stop::Lost(reason)),
            Err(error) => {
                if let Some(watching) = self.watches.remove(&id) {
                    let _ = watching.told.try_send(Told::Ended(error));
                }
                Ok(())
            }
        }
    }

    async fn route(&mut self, client: &Client, notice: Notice) -> Result<(), Stop> {
        match notice {
            Notice::ConversationEntry(params) => {
                let (id, cursor) = (params.conversation_id, params.cursor);
                let told = Told::Entry(Box::new(params.entry), cursor.clone());
                self.tell(client, id, told, Some(cursor)).await
            }
            Notice::ConversationLive(params) => {
                let told = Told::Live(params.live);
                self.tell(client, params.conversation_id, told, None).await
            }
            Notice::ConversationGap(params) => self.subscribe(client, params.conversation_id).await,
            Notice::ConversationDeleted(params) => {
                if let Some(watching) = self.watches.remove(&params.conversation_id) {
                    let _ = watching.told.try_send(Told::Deleted);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Tells a watch something; one without room is told nothing more until it has, and then what it has missed.
    async fn tell(
        &mut self,
        client: &Client,
        id: ConversationId,
        told: Told,
        cursor: Option<ResumeCursor>,
    ) -> Result<(), Stop> {
        let Some(watching) = self.watches.get_mut(&id).filter(|known| !known.is_behind) else {
            return Ok(());
        };
        match watching.told.try_send(told) {
            Ok(()) => {
                watching.cursor = cursor.or_else(|| watching.cursor.take());
                Ok(())
            }
            Err(TrySendError::Closed(_)) => self.forget(client, id).await,
            Err(TrySendError::Full(_)) => {
                watching.is_behind = true;
                let sender = watching.told.clone();
                self.behind.push(Box::pin(async move {
                    // Whoever has dropped the watch is found out at the next event.
                    let _ = sender.reserve_many(EVENTS / 2).await;
                    id
                }));
                unsubscribe(client, id).await
            }
        }
    }

    async fn forget(&mut self, client: &Client, id: ConversationId) -> Result<(), Stop> {
        // A later watch of the same conversation may have taken its place.
        if self.left(id) {
            return unsubscribe(client, id).await;
        }
        Ok(())
    }

    fn left(&mut self, id: ConversationId) -> bool {
        let is_left = self
            .watches
            .get(&id)
            .is_some_and(|known| known.told.is_closed());
        if is_left {
            self.watches.remove(&id);
        }
        is_left
    }

    /// Tries to connect again until that succeeds, or cannot any more.
    async fn come_back(&mut self, mut why: String) -> Result<(Client, Notices), String> {
        let began = Instant::now();
        let mut wait = self.options.first_wait;
        loop {
            if let Some(patience) = self.options.patience
                && began.elapsed() >= patience
            {
                return Err(format!(
                    "the server did not come back within {patience:?}: {why}"
                ));
            }
            let (locate, pause) = (Arc::clone(&self.locate), jitter(wait));
            let attempt = async move {
                sleep(pause).await;
                Client::connect(locate.locate().await?).await
            };
            let closed = || "this client was closed".to_owned();
            match self.meanwhile(attempt).await.ok_or_else(closed)? {
                Ok(connected) => return Ok(connected),
                Err(
                    error @ (ClientError::WrongToken { .. } | ClientError::VersionMismatch { .. }),
                ) => return Err(error.to_string()),
                Err(error) => why = error.to_string(),
            }
            wait = (wait * 2).min(self.options.longest_wait);
        }
    }

    /// Does some work and takes commands beside it; `None` if it was closed.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                command = self.inbox.recv() => match command? {
                    Command::Watch(watching) => {
                        self.watches.insert(watching.conversation, watching);
                    }
                    Command::Anew(id) => self.begin_anew(id),
                    Command::Left(id) => {
                        self.left(id);
                    }
                    Command::Close => return None,
                },
                Some(id) = self.behind.next() => {
                    if let Some(watching) = self.watches.get_mut(&id) {
                        watching.is_behind = false;
                    }
                }
            }
        }
    }
}

async fn unsubscribe(client: &Client, conversation_id: ConversationId) -> Result<(), Stop> {
    let params = UnsubscribeParams { conversation_id };
    match client.call::<ConversationUnsubscribe>(params).await {
        Err(ClientError::Disconnected { reason, .. }) => Err(Stop::Lost(reason)),
        // There is nothing else that it could say.
        _ => Ok(()),
    }
}

/// A quarter more or less, so that many clients of one server do not come back in the same moment.
fn jitter(wait: Duration) -> Duration {
    let mut byte = [128];
    // Without randomness all wait the same.
    let _ = getrandom::fill(&mut byte);
    wait.mul_f64(0.75 + f64::from(byte[0]) / 512.0)
}

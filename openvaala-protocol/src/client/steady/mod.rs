//! A connection that comes back: calls wait for it, and what is watched goes on where it was.

mod run;
mod watch;

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch as cell};
use tokio::time::timeout;

pub use self::watch::{Watch, WatchEvent};

use self::run::{Command, Connected, Loop, State};
use super::{Client, ClientError, ConnectOptions};
use crate::id::ConversationId;
use crate::rpc::Method;

/// What [`Locate::locate`] gives.
pub type Located<'a> =
    Pin<Box<dyn Future<Output = Result<ConnectOptions, ClientError>> + Send + 'a>>;

/// Says where the server is now; asked before every attempt to connect.
///
/// A server that was started again has another port and another token: whoever finds it by a file reads that file
/// anew. [`ConnectOptions`] themselves always say the same.
pub trait Locate: Send + Sync + 'static {
    /// Where to connect.
    ///
    /// # Errors
    /// A [`ClientError::Refused`] is tried again later, like one of the connection itself; see [`SteadyClient`].
    fn locate(&self) -> Located<'_>;
}

impl Locate for ConnectOptions {
    fn locate(&self) -> Located<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// How a [`SteadyClient`] comes back.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SteadyOptions {
    /// How long is waited before the first attempt to come back; 50 ms by default. Each wait is twice as long as the one before.
    pub first_wait: Duration,
    /// How long is waited at the most; 5 s by default.
    pub longest_wait: Duration,
    /// How long to try before giving up for good; `None`, the default, tries for ever.
    pub patience: Option<Duration>,
}

impl Default for SteadyOptions {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_millis(50),
            longest_wait: Duration::from_secs(5),
            patience: None,
        }
    }
}

impl SteadyOptions {
    /// Gives up when the server has not come back for that long.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}

/// A handle to a connection that is opened again whenever it is lost; clones share it.
///
/// It ends for good when [`close`](Self::close) is called or the last clone and the last [`Watch`] are dropped, when its patience is over, or when
/// coming back cannot help: the server does not take the token ([`ClientError::WrongToken`]) or speaks another version
/// of the protocol ([`ClientError::VersionMismatch`]). Then calls fail, and watches say [`WatchEvent::Ended`].
///
/// ```no_run
/// use openvaala_protocol::client::{ConnectOptions, SteadyClient, SteadyOptions, WatchEvent};
///
/// # async fn run(options: ConnectOptions, id: openvaala_protocol::id::ConversationId) -> Result<(), Box<dyn std::error::Error>> {
/// let client = SteadyClient::connect(options, SteadyOptions::default()).await?;
/// let mut watch = client.watch(id)?;
/// while let Some(event) = watch.next().await {
///     match event {
///         WatchEvent::Lost { reason } => eprintln!("waiting for the server: {reason}"),
///         _ => println!("{} entries", watch.view().map_or(0, |view| view.sessions().len())),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SteadyClient {
    commands: mpsc::UnboundedSender<Command>,
    state: cell::Receiver<State>,
}

impl SteadyClient {
    /// Connects for the first time.
    ///
    /// # Errors
    /// As [`Client::connect`]; there is only this one attempt.
    pub async fn connect(locate: impl Locate, options: SteadyOptions) -> Result<Self, ClientError> {
        let locate: Arc<dyn Locate> = Arc::new(locate);
        let (client, notices) = Client::connect(locate.locate().await?).await?;
        Ok(Self::with(locate, options, (client, notices)))
    }

    /// Goes on with a connection that is open already.
    ///
    /// `notices` are those of that connection; only what belongs to a [`Watch`] is told any more.
    pub fn with(
        locate: Arc<dyn Locate>,
        options: SteadyOptions,
        (client, notices): (Client, super::Notices),
    ) -> Self {
        // One command a watch at a time, and one to close.
        let (commands, inbox) = mpsc::unbounded_channel();
        let connected = Connected { number: 0, client };
        let (sender, state) = cell::channel(State::Connected(connected.clone()));
        // It ends with the last sender of commands.
        tokio::spawn(Loop::new(locate, options, sender, inbox).run(connected, notices));
        Self { commands, state }
    }

    /// Calls a method and waits for its result, also while there is no connection.
    ///
    /// A call that never reached the server is made again over the next connection. One whose answer was lost is made
    /// again only if it may be repeated ([`Method::may_repeat`]), since nobody knows whether it was carried out.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] with the server's error; [`ClientError::Disconnected`] with `sent: true` for a call that may not be
    /// repeated and whose answer was lost, with `sent: false` when there will be no connection any more.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, ClientError>
    where
        M::Params: Clone,
    {
        let mut state = self.state.clone();
        let mut number = 0;
        loop {
            let connected = next_connection(&mut state, number).await?;
            number = connected.number + 1;
            match connected.client.call::<M>(params.clone()).await {
                Err(ClientError::Disconnected { sent, .. }) if !sent || M::may_repeat(&params) => {}
                answered => return answered,
            }
        }
    }

    /// As [`call`](Self::call), for at most `limit`.
    ///
    /// # Errors
    /// As [`call`](Self::call), and [`ClientError::TimedOut`]: the server may still carry it out then.
    pub async fn call_timeout<M: Method>(
        &self,
        params: M::Params,
        limit: Duration,
    ) -> Result<M::Result, ClientError>
    where
        M::Params: Clone,
    {
        let what = M::NAME.to_owned();
        timeout(limit, self.call::<M>(params))
            .await
            .unwrap_or(Err(ClientError::TimedOut { what, limit }))
    }

    /// Watches a conversation, over lost connections; its first event is all that there is.
    ///
    /// A second watch of the same conversation takes the place of the first. One whose events nobody takes is told nothing more once
    /// 1,024 of them wait, and what it has missed as soon as half of them were taken; it costs the others nothing.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] when there will be no connection any more. That the conversation does not exist is the first event.
    pub fn watch(&self, conversation: ConversationId) -> Result<Watch, ClientError> {
        let (watching, watch) = watch::watch(conversation, self.commands.clone());
        let sent = self.commands.send(Command::Watch(watching));
        sent.map_err(|_| self.ended())?;
        Ok(watch)
    }

    /// Whether there is a connection right now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(&*self.state.borrow(), State::Connected(_))
    }

    /// Ends it for good: watches end, calls fail.
    pub async fn close(self) {
        let mut state = self.state.clone();
        if self.commands.send(Command::Close).is_ok() {
            let _ = state
                .wait_for(|state| matches!(state, State::Ended(_)))
                .await;
        }
    }

    fn ended(&self) -> ClientError {
        match &*self.state.borrow() {
            State::Ended(reason) => gone(reason),
            State::Connected(_) | State::Away => gone("the task of the connection was ended"),
        }
    }
}

/// Waits for a connection with at least that number.
async fn next_connection(
    state: &mut cell::Receiver<State>,
    number: u64,
) -> Result<Connected, ClientError> {
    let found = state
        .wait_for(|state| match state {
            State::Connected(connected) => connected.number >= number,
            State::Ended(_) => true,
            State::Away => false,
        })
        .await
        .map_err(|_| gone("the task of the connection was ended"))?;
    match &*found {
        State::Connected(connected) => Ok(connected.clone()),
        State::Ended(reason) => Err(gone(reason)),
        State::Away => Err(gone("the connection is lost")),
    }
}

fn gone(reason: &str) -> ClientError {
    ClientError::Disconnected {
        sent: false,
        reason: reason.to_owned(),
    }
}

//! A WebSocket client for the runtime server.
//!
//! One task owns the socket; [`Client`] is a handle to it that can be cloned and used from many tasks at once.
//! What the server tells by itself comes through [`Notices`].
//!
//! ```no_run
//! use openvaala_protocol::client::{Client, ConnectOptions};
//! use openvaala_protocol::rpc::method::ConversationList;
//! use openvaala_protocol::rpc::params::conversation::ListParams;
//! use openvaala_protocol::rpc::params::server::Peer;
//!
//! # async fn run(token: openvaala_protocol::handshake::Token) -> Result<(), Box<dyn std::error::Error>> {
//! let peer = Peer { name: "my-client".to_owned(), version: "1.0".to_owned() };
//! let (client, _notices) = Client::connect(ConnectOptions::new("127.0.0.1:8790", token, peer)).await?;
//! for conversation in client.call::<ConversationList>(ListParams::default()).await?.conversations {
//!     println!("{} {}", conversation.id, conversation.title.unwrap_or_default());
//! }
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Everything here must run within a tokio runtime whose I/O and time are enabled. The connection of a [`Client`] that ends stays
//! ended; a [`SteadyClient`] opens it again, and its watches go on where they were, without a gap and without a double.

mod connection;
mod error;
mod notices;
mod open;
mod steady;
#[cfg(feature = "tls")]
mod tls;
mod view;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

pub use self::error::ClientError;
pub use self::notices::Notices;
pub use self::steady::{Locate, Located, SteadyClient, SteadyOptions, Watch, WatchEvent};
#[cfg(feature = "tls")]
pub use self::tls::{Tls, TlsError};
pub use self::view::{VIEW_ITEMS, View, ViewFault};

use self::connection::Link;
use crate::PROTOCOL_VERSION;
use crate::handshake::Credential;
use crate::rpc::params::server::{
    InitializeParams, InitializeResult, Peer, ShutdownParams, ShutdownResult,
};
use crate::rpc::{ErrorCode, MAX_RESPONSE_BYTES, Method, method};

/// Where and how to connect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The server's address, `host:port`.
    pub address: String,
    /// The token that the server knows.
    pub credential: Credential,
    /// Who this client says it is.
    pub client: Peer,
    /// How long connecting may take, `initialize` included; 10 seconds by default.
    pub timeout: Duration,
    /// The largest message that is taken from the server, in bytes; 64 MiB by default.
    pub max_message_bytes: usize,
    /// Whom to trust on an encrypted connection; `None`, the default, is one that is not encrypted.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

impl ConnectOptions {
    /// Options for a server at that address (`host:port` or a `SocketAddr`), all else at its default.
    pub fn new(
        address: impl fmt::Display,
        credential: impl Into<Credential>,
        client: Peer,
    ) -> Self {
        Self {
            address: address.to_string(),
            credential: credential.into(),
            client,
            timeout: Duration::from_secs(10),
            max_message_bytes: MAX_RESPONSE_BYTES,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Encrypts the connection, and sees that it is the right server's.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Changes how long connecting may take.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

/// A handle to an open connection; clones share it.
///
/// The connection ends when [`close`](Self::close) is called on any clone, when the last clone is dropped, or when
/// the server or the network ends it.
#[derive(Clone, Debug)]
pub struct Client {
    link: Link,
    initialized: Arc<InitializeResult>,
}

impl Client {
    /// Connects, sees that the server holds the token, and initializes.
    ///
    /// Dropping the future gives up; nothing stays open.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if nobody listens, [`ClientError::WrongServer`] if somebody else does,
    /// [`ClientError::VersionMismatch`] if the server speaks another version, and others as their names say.
    pub async fn connect(options: ConnectOptions) -> Result<(Self, Notices), ClientError> {
        within(&options, async {
            let (link, notices) = Link::open(&options).await?;
            let initialized = Arc::new(initialize(&link, options.client.clone()).await?);
            Ok((Self { link, initialized }, notices))
        })
        .await
    }

    /// Calls a method and waits for its result, as long as it takes.
    ///
    /// Calls of one client are sent in the order in which they were made and may be answered in any order. Dropping
    /// the future does not take back a call: the server may still carry it out.
    ///
    /// # Errors
    /// [`ClientError::Rpc`] with the server's error, [`ClientError::Disconnected`] if the connection ends first.
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, ClientError> {
        self.link.call::<M>(&params).await
    }

    /// Calls a method and waits at most `limit` for its result.
    ///
    /// # Errors
    /// As [`call`](Self::call), and [`ClientError::TimedOut`]; the server may still carry out the call then.
    pub async fn call_timeout<M: Method>(
        &self,
        params: M::Params,
        limit: Duration,
    ) -> Result<M::Result, ClientError> {
        timeout(limit, self.call::<M>(params))
            .await
            .unwrap_or_else(|_| {
                Err(ClientError::TimedOut {
                    what: M::NAME.to_owned(),
                    limit,
                })
            })
    }

    /// What the server said of itself when the connection was opened.
    #[must_use]
    pub fn initialized(&self) -> &InitializeResult {
        &self.initialized
    }

    /// Waits until the connection has ended and tells why; at once if it has.
    ///
    /// Cancel safe.
    pub async fn closed(&self) -> String {
        self.link.closed().await
    }

    /// Closes the connection for all clones, after the calls that were made before have been sent.
    ///
    /// Calls that wait for an answer fail with [`ClientError::Disconnected`]. Takes a second at most.
    pub async fn close(self) {
        self.link.close().await;
    }
}

/// Tells a server to stop, whatever version of the protocol it speaks.
///
/// It waits so long, in whole seconds, until no turn runs; what runs then is interrupted. The result comes when the server has begun
/// to wait or to stop; it ends a little later.
///
/// # Errors
/// As [`Client::connect`], but never [`ClientError::VersionMismatch`].
pub async fn shut_down(
    options: ConnectOptions,
    wait: Duration,
) -> Result<ShutdownResult, ClientError> {
    within(&options, async {
        let (link, _notices) = Link::open(&options).await?;
        match initialize(&link, options.client.clone()).await {
            Ok(_) | Err(ClientError::VersionMismatch { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut params = ShutdownParams {
            wait_seconds: u32::try_from(wait.as_secs()).unwrap_or(u32::MAX),
        };
        let mut result = link.call::<method::ServerShutdown>(&params).await;
        if let Err(ClientError::Rpc(error)) = &result
            && error.kind() == Some(ErrorCode::InvalidParams)
            && params.wait_seconds > 0
        {
            // A server of another version may not know how to wait.
            params.wait_seconds = 0;
            result = link.call::<method::ServerShutdown>(&params).await;
        }
        link.close().await;
        result
    })
    .await
}

async fn within<T>(
    options: &ConnectOptions,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let limit = options.timeout;
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(ClientError::TimedOut {
            what: format!("connecting to {}", options.address),
            limit,
        })
    })
}

async fn initialize(link: &Link, client: Peer) -> Result<InitializeResult, ClientError> {
    let params = InitializeParams {
        protocol_version: PROTOCOL_VERSION.to_owned(),
        client,
    };
    let mismatch = |theirs| ClientError::VersionMismatch {
        ours: PROTOCOL_VERSION.to_owned(),
        theirs,
    };
    match link.call::<method::Initialize>(&params).await {
        Ok(result) if result.protocol_version == PROTOCOL_VERSION => Ok(result),
        Ok(result) => Err(mismatch(result.protocol_version)),
        Err(ClientError::Rpc(error)) => Err(error
            .mismatched_version()
            .map_or(ClientError::Rpc(error), mismatch)),
        Err(error) => Err(error),
    }
}

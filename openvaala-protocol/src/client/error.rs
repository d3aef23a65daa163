//! What can go wrong between a client and its server.

use std::io;
use std::time::Duration;

use crate::handshake::NoRandomness;
use crate::rpc::RpcError;

/// Why a connection could not be opened, or a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens there: the server is not running, or at another address.
    #[error("nobody listens at {address}")]
    Refused {
        /// Where it was tried.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no way to that address.
    #[error("cannot reach {address}")]
    Unreachable {
        /// Where it was tried.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody listens there who could not prove that it has the token.
    #[error("the process at {address} does not hold the token: {reason}")]
    WrongServer {
        /// Where it was tried.
        address: String,
        /// How it showed.
        reason: String,
    },
    /// Nobody whom this client trusts vouches for the server's certificate, or it is another's.
    #[error("the certificate of the server at {address} is not trusted: {reason}")]
    NotTrusted {
        /// Where it was tried.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server holds the token but did not take this client's proof.
    #[error("the server at {address} did not accept the token: {reason}")]
    WrongToken {
        /// Where it was tried.
        address: String,
        /// What the server said.
        reason: String,
    },
    /// The server took no connection, for a reason that is not the token: it may have too many.
    #[error("the server at {address} took no connection (HTTP status {status}): {reason}")]
    Rejected {
        /// Where it was tried.
        address: String,
        /// The HTTP status.
        status: u16,
        /// What the server said.
        reason: String,
    },
    /// Server and client speak different versions of the protocol.
    #[error(
        "the server speaks protocol version {theirs:?}, this client {ours:?}: \
         run `openvaala serve stop` and retry"
    )]
    VersionMismatch {
        /// This client's version.
        ours: String,
        /// The server's version.
        theirs: String,
    },
    /// The server answered the call with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The connection ended, or had ended, before the answer came.
    #[error("disconnected from the server ({}): {reason}", fate(*sent))]
    Disconnected {
        /// `false`: the server never got the call. `true`: nobody knows whether it was carried out.
        sent: bool,
        /// Why the connection ended.
        reason: String,
    },
    /// It took longer than the caller wants to wait; nobody knows whether it is still carried out.
    #[error("{what} took longer than {limit:?}")]
    TimedOut {
        /// The method, or `connecting to` an address.
        what: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The call is larger than a server takes; it was not sent.
    #[error("the call of {method} has {bytes} bytes, more than the {limit} that a server takes")]
    TooLarge {
        /// The method.
        method: &'static str,
        /// How many bytes its parameters have.
        bytes: usize,
        /// How many they may have.
        limit: usize,
    },
    /// One side does not keep to the protocol.
    #[error("the protocol was broken: {message}")]
    Protocol {
        /// What was wrong.
        message: String,
    },
    /// No nonce could be made.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

const fn fate(sent: bool) -> &'static str {
    if sent {
        "it is not known whether the call was carried out"
    } else {
        "the call was not sent"
    }
}

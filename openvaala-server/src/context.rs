//! What every connection and every method can reach.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openvaala_core::Runtime;
use openvaala_protocol::approval::ApprovalRule;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::server::{ReloadResult, RemoteAddress};
use openvaala_protocol::time::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use crate::assemble::Assembled;
use crate::auth::{Keys, TokenRequest};
use crate::config::{ConfigEdit, NewProvider};
use crate::logs::Logs;
use crate::reload::Source;

/// What every connection and every method can reach; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) runtime: Runtime,
    pub(crate) assembled: watch::Receiver<Arc<Assembled>>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) reloads: mpsc::Sender<Reload>,
    /// Where the configuration comes from.
    pub(crate) source: Arc<Source>,
    /// The end of the log.
    pub(crate) logs: Option<Logs>,
    pub(crate) keys: watch::Receiver<Arc<Keys>>,
    pub(crate) tokens: mpsc::Sender<TokenRequest>,
    /// What the client of this connection calls itself.
    pub(crate) client: Option<Arc<str>>,
}

impl Context {
    /// The configuration as it counts now.
    pub(crate) fn assembled(&self) -> Arc<Assembled> {
        Arc::clone(&self.assembled.borrow())
    }
}

/// What is known of a server from its start on.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
    /// Where it listens for other machines.
    pub(crate) remote: Option<RemoteAddress>,
    pub(crate) data_dir: PathBuf,
    pub(crate) working_dir: PathBuf,
    pub(crate) started_at: Timestamp,
    /// What did not work at the start, in words.
    pub(crate) degraded: Vec<String>,
}

/// How far a server is in its life.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It serves.
    Serving,
    /// It writes down what runs; clients stay connected and see it.
    Stopping {
        /// Why it stops.
        reason: String,
    },
    /// It closes its connections.
    Closing,
}

/// What connections tell the server's loop.
#[derive(Debug)]
pub(crate) enum Command {
    /// The connection of this task belongs to a client that holds the token.
    Admitted(tokio::task::Id),
    /// Somebody there has shown a wrong token; the answer is how long to let wait for it.
    Refused(IpAddr, oneshot::Sender<Duration>),
    /// How many clients are there?
    Clients(oneshot::Sender<usize>),
    /// End.
    Stop {
        /// Why.
        reason: String,
        /// How long turns may go on until they end by themselves.
        wait: Duration,
    },
}

/// Who asked for a reload.
pub(crate) type ReloadReply = oneshot::Sender<Result<ReloadResult, RpcError>>;

/// A change of the configuration.
#[derive(Debug)]
pub(crate) enum ConfigChange {
    /// One more rule about tool calls.
    Rule(ApprovalRule),
    /// One more provider.
    AddProvider(Box<NewProvider>),
    /// A provider less, by name.
    RemoveProvider(String),
    /// Another text of a file that is there.
    Edit(ConfigEdit),
}

/// Asks for the configuration to be loaded anew.
#[derive(Debug)]
pub(crate) struct Reload {
    /// What to write to it before.
    pub(crate) change: Option<ConfigChange>,
    pub(crate) reply: ReloadReply,
}

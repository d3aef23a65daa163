//! What a connection must fit to be let in.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::handshake::{Credential, Key};
use tokio::sync::{mpsc, oneshot, watch};

use super::readiness::Readiness;
use crate::auth::{Access, Grant, Keys};
use crate::context::Command;

/// What a connection must fit to be let in.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) keys: watch::Receiver<Arc<Keys>>,
    /// Whether the token of the discovery file is taken.
    pub(crate) takes_local: bool,
    /// What the header `Host` may be.
    pub(crate) hosts: Vec<String>,
    /// The web pages that may open a WebSocket.
    pub(crate) origins: Vec<String>,
    pub(crate) readiness: Readiness,
    /// Is told of wrong tokens.
    pub(crate) commands: mpsc::Sender<Command>,
}

impl Gate {
    /// The gate for clients of this machine, of a server that listens at that address.
    pub(crate) fn local(
        address: SocketAddr,
        keys: watch::Receiver<Arc<Keys>>,
        readiness: Readiness,
        commands: mpsc::Sender<Command>,
    ) -> Self {
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        Self {
            keys,
            takes_local: true,
            origins: hosts.iter().map(|host| format!("http://{host}")).collect(),
            hosts,
            readiness,
            commands,
        }
    }

    /// What proofs of the token of that name are checked with, and what it grants.
    pub(super) fn find(&self, id: Option<&str>) -> Option<(Key, Grant)> {
        if id.is_none() && !self.takes_local {
            return None;
        }
        self.keys.borrow().find(id)
    }

    /// What a token grants that was sent itself.
    pub(super) fn grant(&self, credential: &Credential) -> Option<Grant> {
        let (key, grant) = self.find(credential.id())?;
        key.is_of(credential.token()).then_some(grant)
    }

    pub(super) fn access(&self, grant: Grant) -> Access {
        Access::new(grant, self.keys.clone())
    }

    /// Tells of a wrong token; the answer is how long to wait before it is refused.
    pub(super) async fn refused(&self, from: IpAddr) -> Duration {
        let (reply, wait) = oneshot::channel();
        if self
            .commands
            .send(Command::Refused(from, reply))
            .await
            .is_err()
        {
            // The server ends.
            return Duration::ZERO;
        }
        wait.await.unwrap_or_default()
    }
}

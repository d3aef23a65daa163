//! What a connection must fit to be let in.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::handshake::{Credential, Key};
use rustls::ServerConfig;
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
    /// Whether it may also be the address itself that a connection has come to: no name is pointed at it then.
    pub(crate) takes_address: bool,
    /// The web pages that may open a WebSocket.
    pub(crate) origins: Vec<String>,
    /// What encrypts its connections, the newest; `None` for those that are not.
    pub(crate) tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    pub(crate) readiness: Readiness,
    /// Is told of wrong tokens.
    pub(crate) commands: mpsc::Sender<Command>,
}

impl Gate {
    /// The gate for clients of this machine, of a server that listens at that address; pages from `origins` may come besides.
    pub(crate) fn local(
        address: SocketAddr,
        origins: &[String],
        keys: watch::Receiver<Arc<Keys>>,
        readiness: Readiness,
        commands: mpsc::Sender<Command>,
    ) -> Self {
        let hosts = vec![address.to_string(), format!("localhost:{}", address.port())];
        let own = hosts.iter().map(|host| format!("http://{host}"));
        Self {
            keys,
            takes_local: true,
            takes_address: false,
            origins: own.chain(origins.iter().cloned()).collect(),
            hosts,
            tls: None,
            readiness,
            commands,
        }
    }

    /// The gate for other machines that reach the same server at that address by those names: for tokens with a name only.
    pub(crate) fn remote(
        &self,
        address: SocketAddr,
        names: &[String],
        origins: &[String],
        tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    ) -> Self {
        let port = address.port();
        let hosts = names
            .iter()
            .flat_map(|name| [name.clone(), format!("{name}:{port}")]);
        let hosts: Vec<String> = hosts.collect();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let own = hosts.iter().map(|host| format!("{scheme}://{host}"));
        Self {
            keys: self.keys.clone(),
            takes_local: false,
            takes_address: true,
            origins: own.chain(origins.iter().cloned()).collect(),
            hosts,
            tls,
            readiness: self.readiness.clone(),
            commands: self.commands.clone(),
        }
    }

    /// Whether a connection that has come to that address may name that host.
    pub(super) fn takes_host(&self, host: &str, came_to: Option<SocketAddr>) -> bool {
        let address = came_to.filter(|_| self.takes_address);
        address
            .is_some_and(|address| host == address.to_string() || host == address.ip().to_string())
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    /// Whether a web page from there may connect.
    pub(super) fn takes_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|own| own.eq_ignore_ascii_case(origin))
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

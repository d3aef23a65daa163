//! The sockets that a server listens on: one for this machine and, if that is wanted, one for others.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::accept::Acceptor;
use super::gate::Gate;
use super::tls;
use crate::config::{RemoteConfig, TlsFiles};
use crate::error::ServerError;

/// A door for other machines.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) address: SocketAddr,
    pub(crate) listener: TcpListener,
    pub(crate) hosts: Vec<String>,
    /// The certificate, and where it is read again.
    pub(crate) tls: Option<(TlsFiles, watch::Sender<Arc<ServerConfig>>)>,
}

/// Listens for other machines.
pub(crate) async fn open_remote(wanted: RemoteConfig) -> Result<Remote, ServerError> {
    let RemoteConfig {
        listen,
        tls,
        insecure,
        hosts,
    } = wanted;
    let tls = match tls {
        Some(files) => {
            let config = tls::load(&files)?;
            Some((files, watch::channel(config).0))
        }
        None if insecure => None,
        None => return Err(ServerError::NotEncrypted { address: listen }),
    };
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AddrInUse => ServerError::AddressInUse {
            address: listen,
            source,
        },
        _ => ServerError::Listen {
            address: listen,
            source,
        },
    };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Remote {
        address,
        listener,
        hosts,
        tls,
    })
}

/// All the doors of a server, each with what a connection must fit there.
#[derive(Debug)]
pub(crate) struct Doors {
    local: (Acceptor, Arc<Gate>),
    remote: Option<(Acceptor, Arc<Gate>)>,
}

impl Doors {
    pub(crate) fn new(local: (Acceptor, Gate), remote: Option<(Acceptor, Gate)>) -> Self {
        let shared = |(acceptor, gate)| (acceptor, Arc::new(gate));
        Self {
            local: shared(local),
            remote: remote.map(shared),
        }
    }

    /// The next connection, and the gate that it stands at. Cancel safe.
    pub(crate) async fn next(&mut self) -> (TcpStream, SocketAddr, Arc<Gate>) {
        let Self { local, remote } = self;
        let others = async {
            match remote {
                Some((acceptor, gate)) => (acceptor.next().await, gate),
                None => pending().await,
            }
        };
        let ((stream, peer), gate) = tokio::select! {
            accepted = local.0.next() => (accepted, &local.1),
            (accepted, gate) = others => (accepted, &*gate),
        };
        (stream, peer, Arc::clone(gate))
    }
}

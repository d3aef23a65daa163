//! Opens the listening socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tokio::net::TcpListener;

use crate::error::ServerError;

/// Where to listen if nobody says otherwise.
pub(crate) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8790));

/// An address, and whether another one would do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// Somebody asked for exactly this one.
    Exactly(SocketAddr),
    /// This one, or any free port of this machine if it is taken.
    Preferably(SocketAddr),
}

/// Listens there.
pub(crate) async fn bind(wanted: Wanted) -> Result<TcpListener, ServerError> {
    let (Wanted::Exactly(address) | Wanted::Preferably(address)) = wanted;
    if !address.ip().is_loopback() {
        return Err(ServerError::NotLoopback { address });
    }
    match (TcpListener::bind(address).await, wanted) {
        (Ok(listener), _) => Ok(listener),
        (Err(error), Wanted::Preferably(_)) if error.kind() == io::ErrorKind::AddrInUse => {
            let address = SocketAddr::new(address.ip(), 0);
            TcpListener::bind(address)
                .await
                .map_err(|source| ServerError::Listen { address, source })
        }
        (Err(source), _) if source.kind() == io::ErrorKind::AddrInUse => {
            Err(ServerError::AddressInUse { address, source })
        }
        (Err(source), _) => Err(ServerError::Listen { address, source }),
    }
}

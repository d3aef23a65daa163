//! Why a server does not start, or ends.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use openvaala_core::RuntimeError;
use openvaala_core::model::ModelError;
use openvaala_protocol::handshake::NoRandomness;

use crate::config::ConfigError;
use crate::discovery::DiscoveryError;
use crate::http::TlsError;

/// Why a server does not start, or ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configured address is taken by another program.
    #[error("{address} is in use by another program: stop that, or listen somewhere else")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The configuration has faults.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another server, or another program, owns the data directory.
    #[error(
        "{} is in use by {}: use that server, or stop it with `openvaala serve stop`",
        data_dir.display(),
        holder(*pid, address.as_deref())
    )]
    DataDirInUse {
        /// The data directory.
        data_dir: PathBuf,
        /// The process that owns it, if it said so.
        pid: Option<u32>,
        /// Where that process listens, if it said so.
        address: Option<String>,
    },
    /// A directory cannot be made or used.
    #[error("cannot use the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file by which clients find the server cannot be written.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// Nothing can listen at the address.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address can be reached from other machines, and what is said there could be read on its way.
    #[error(
        "{address} can be reached from other machines, which needs TLS: give --tls-certificate and --tls-key, \
         or --insecure-listen in a network that nobody else can read"
    )]
    NotEncrypted {
        /// The address.
        address: SocketAddr,
    },
    /// Other machines could reach the server, but no token could let them in.
    #[error(
        "{address} can be reached from other machines, and no token lets them in: \
         make one with `openvaala token create NAME` first"
    )]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// An address that only other machines' clients are to use.
    #[error("{address} can be reached from other machines: listen at 127.0.0.1 or [::1]")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A model provider cannot be made from its configuration.
    #[error("the model provider {name:?} ({origin}) cannot be used")]
    Provider {
        /// Its name.
        name: String,
        /// Where it comes from.
        origin: String,
        /// What is wrong with it.
        source: ModelError,
    },
    /// No token could be made.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The runtime cannot be built.
    #[error("the runtime cannot start")]
    Runtime(#[source] RuntimeError),
    /// What is kept of named tokens cannot be read.
    #[error("the tokens in {} cannot be used", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The signals of the system cannot be listened to.
    #[error("cannot listen to signals")]
    Signals {
        /// What the system said.
        source: io::Error,
    },
}

fn holder(pid: Option<u32>, address: Option<&str>) -> String {
    let pid = pid.map_or_else(
        || "another program".to_owned(),
        |pid| format!("process {pid}"),
    );
    address.map_or_else(|| pid.clone(), |address| format!("{pid} at {address}"))
}

//! `remote` in `openvaala.yaml`: where other machines reach the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::schema::{Address, Filled, given};

/// Where other machines reach the server, and how what they say is kept from others.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RemoteConfig {
    /// Where to listen for them.
    pub listen: SocketAddr,
    /// What the server shows them to encrypt what is said; `None` only with `insecure`.
    pub tls: Option<TlsFiles>,
    /// Whether what is said may be read and changed on its way.
    pub insecure: bool,
    /// The names by which they reach it, each with or without a port; an address that was listened on needs none.
    pub hosts: Vec<String>,
}

/// The files of a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificate and those that vouch for it, PEM, the server's own first.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Those files.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
        }
    }
}

impl RemoteConfig {
    /// Listens there with that certificate.
    #[must_use]
    pub const fn with_tls(listen: SocketAddr, tls: TlsFiles) -> Self {
        Self {
            listen,
            tls: Some(tls),
            insecure: false,
            hosts: Vec::new(),
        }
    }

    /// Listens there without a certificate: for networks that nobody else can read.
    #[must_use]
    pub const fn insecure(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: None,
            insecure: true,
            hosts: Vec::new(),
        }
    }
}

/// `remote` as it is written.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "`listen: ADDRESS` with `certificate` and `key`"
)]
pub(super) struct RemoteSection {
    listen: Address,
    #[serde(default, deserialize_with = "given")]
    certificate: Option<Filled>,
    #[serde(default, deserialize_with = "given")]
    key: Option<Filled>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    hosts: Vec<Filled>,
}

impl RemoteSection {
    /// What it says, with paths that begin in the configuration directory; an error says which field is wrong, and how.
    pub(super) fn read(self, dir: &Path) -> Result<RemoteConfig, (&'static str, String)> {
        let tls = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => {
                Some(TlsFiles::new(dir.join(certificate.0), dir.join(key.0)))
            }
            (None, None) if self.insecure => None,
            (None, None) => {
                let message = "other machines need TLS: give `certificate` and `key`, or say `insecure: true`";
                return Err(("remote", message.to_owned()));
            }
            (Some(_), None) => {
                return Err(("remote.certificate", "its `key` is missing".to_owned()));
            }
            (None, Some(_)) => {
                return Err(("remote.key", "its `certificate` is missing".to_owned()));
            }
        };
        if tls.is_some() && self.insecure {
            let message = "with a certificate nothing is insecure: leave it out";
            return Err(("remote.insecure", message.to_owned()));
        }
        Ok(RemoteConfig {
            listen: self.listen.0,
            tls,
            insecure: self.insecure,
            hosts: self.hosts.into_iter().map(|host| host.0).collect(),
        })
    }
}

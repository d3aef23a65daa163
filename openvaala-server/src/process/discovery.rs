//! The file by which clients find the server of a data directory.
//!
//! `runtime-server.yaml` in the state directory for the default data directory, `runtime-server-<hash>.yaml` for any
//! other. It has the token, so it is written and trusted only as a private file.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use openvaala_protocol::handshake::Token;
use openvaala_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::{check_private_dir, create_private_dir, read_private, write_private_volatile};

/// The largest file that is read.
const MAX_FILE: u64 = 64 << 10;
/// The file for the default data directory.
const DEFAULT_NAME: &str = "runtime-server.yaml";

/// A server that says that it runs; it may have ended without saying so.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Its process id.
    pub pid: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// The secret that it shares with its clients.
    pub token: Token,
    /// Its data directory, canonical.
    pub data_dir: PathBuf,
    /// Its own version.
    pub version: String,
    /// The protocol version that it speaks.
    pub protocol_version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// The file that says so.
    pub path: PathBuf,
}

/// Why a discovery file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The file or its directory cannot be read, or cannot be trusted.
    #[error("the discovery file {} cannot be used", path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what a server writes.
    #[error("the discovery file {} is damaged ({reason}): delete it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it; never shows the token.
        reason: String,
    },
    /// The file cannot be written.
    #[error("the discovery file {} cannot be written", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The file's content; has no `Debug`, because of the token.
#[derive(Deserialize, Serialize)]
struct Content {
    pid: u32,
    address: SocketAddr,
    token: String,
    data_dir: PathBuf,
    version: String,
    protocol_version: String,
    started_at: Timestamp,
}

/// Finds the server of a data directory; `None` if none has said that it runs.
///
/// Does not ask whether it still runs: connect to it to know. Blocks for as long as the disk does.
///
/// # Errors
/// [`DiscoveryError`] if there is a file that cannot be read, or that others could have written or read.
pub fn find(state_dir: &Path, data_dir: &Path) -> Result<Option<Found>, DiscoveryError> {
    let Ok(data_dir) = fs::canonicalize(data_dir) else {
        return Ok(None);
    };
    match check_private_dir(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        checked => checked.map_err(|source| untrusted(state_dir, source))?,
    }
    for path in [
        state_dir.join(DEFAULT_NAME),
        state_dir.join(hashed_name(&data_dir)),
    ] {
        if let Some(found) = read(&path)?
            && found.data_dir == data_dir
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The discovery file of a running server; clones stand for the same one.
#[derive(Clone, Debug)]
pub(crate) struct DiscoveryFile {
    found: Found,
}

impl DiscoveryFile {
    /// Writes the file; `found.path` tells where.
    pub(crate) fn write(found: Found) -> Result<Self, DiscoveryError> {
        let file = Self { found };
        file.rewrite(&file.found.token)?;
        Ok(file)
    }

    /// Puts the same with another token in its place.
    pub(crate) fn rewrite(&self, token: &Token) -> Result<(), DiscoveryError> {
        let found = self.found.clone();
        let content = Content {
            pid: found.pid,
            address: found.address,
            token: token.to_hex(),
            data_dir: found.data_dir,
            version: found.version,
            protocol_version: found.protocol_version,
            started_at: found.started_at,
        };
        let failed = |source| DiscoveryError::Write {
            path: found.path.clone(),
            source,
        };
        let text =
            serde_yaml::to_string(&content).map_err(|error| failed(io::Error::other(error)))?;
        // After a crash of the machine there is no server to find.
        write_private_volatile(&found.path, &text).map_err(failed)
    }

    /// Removes the file, unless another server has put its own there.
    pub(crate) fn remove(&self) {
        let ours = |found: &Found| {
            (found.pid, found.started_at) == (self.found.pid, self.found.started_at)
        };
        let path = &self.found.path;
        if !read(path).is_ok_and(|found| found.as_ref().is_some_and(ours)) {
            return;
        }
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(path = %path.display(), %error, "the discovery file cannot be removed");
        }
    }
}

/// Where the file of a server goes; makes its directory.
///
/// `data_dir` must be canonical.
pub(crate) fn prepare(
    state_dir: &Path,
    data_dir: &Path,
    is_default: bool,
) -> Result<PathBuf, DiscoveryError> {
    create_private_dir(state_dir).map_err(|source| DiscoveryError::Write {
        path: state_dir.to_owned(),
        source,
    })?;
    check_private_dir(state_dir).map_err(|source| untrusted(state_dir, source))?;
    let name = if is_default {
        DEFAULT_NAME.to_owned()
    } else {
        hashed_name(data_dir)
    };
    Ok(state_dir.join(name))
}

fn hashed_name(data_dir: &Path) -> String {
    let digest = Sha256::digest(data_dir.as_os_str().as_encoded_bytes());
    let hash: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("runtime-server-{hash}.yaml")
}

fn read(path: &Path) -> Result<Option<Found>, DiscoveryError> {
    let Some(text) = read_private(path, MAX_FILE).map_err(|source| untrusted(path, source))? else {
        return Ok(None);
    };
    // Written, but not flushed, before the machine went down: the server went with it.
    if text.trim_matches('\0').is_empty() {
        return Ok(None);
    }
    let damaged = |reason: String| DiscoveryError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let content: Content = serde_yaml::from_str(&text).map_err(|error| {
        let place = error.location().map_or(1, |at| at.line());
        damaged(format!("line {place}"))
    })?;
    let token = content
        .token
        .parse()
        .map_err(|_| damaged("the token".to_owned()))?;
    Ok(Some(Found {
        pid: content.pid,
        address: content.address,
        token,
        data_dir: content.data_dir,
        version: content.version,
        protocol_version: content.protocol_version,
        started_at: content.started_at,
        path: path.to_owned(),
    }))
}

fn untrusted(path: &Path, source: io::Error) -> DiscoveryError {
    DiscoveryError::Untrusted {
        path: path.to_owned(),
        source,
    }
}

//! `tokens.yaml` in the data directory: what is kept of the tokens with names.
//!
//! It lies there and not among the configuration because the lock of the data directory makes this server its only writer,
//! and because a configuration is often copied to other machines or shown to others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use openvaala_protocol::handshake::Verifier;
use openvaala_protocol::rpc::Rights;
use openvaala_protocol::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::keys::Named;
use crate::files::{read_private, write_private};

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;
/// What stands at its head.
const HEAD: &str =
    "# Tokens of clients on other machines. Written by the server; see `openvaala token`.\n";

#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Content {
    tokens: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rights: Rights,
    created_at: Timestamp,
    verifier: Verifier,
}

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("tokens.yaml")
}

/// Reads them; none if there is no such file.
pub(super) fn load(data_dir: &Path) -> io::Result<BTreeMap<String, Named>> {
    let Some(text) = read_private(&path(data_dir), MAX_FILE)? else {
        return Ok(BTreeMap::new());
    };
    let content: Content = serde_yaml::from_str(&text).map_err(|error| {
        // The error itself could show what is kept of a token.
        let line = error.location().map_or(1, |at| at.line());
        io::Error::other(format!(
            "line {line} is not as the server writes it: mend it, or delete the file and make the tokens anew"
        ))
    })?;
    let named = content.tokens.into_iter().map(|(name, entry)| {
        let named = Named {
            verifier: entry.verifier,
            rights: entry.rights,
            created_at: entry.created_at,
        };
        (name, named)
    });
    Ok(named.collect())
}

/// Writes all of them; readers see the old file or the new one.
pub(super) fn save(data_dir: &Path, tokens: &BTreeMap<String, Named>) -> io::Result<()> {
    let entries = tokens.iter().map(|(name, named)| {
        let entry = Entry {
            rights: named.rights.clone(),
            created_at: named.created_at,
            verifier: named.verifier.clone(),
        };
        (name.clone(), entry)
    });
    let content = Content {
        tokens: entries.collect(),
    };
    let text = serde_yaml::to_string(&content).map_err(io::Error::other)?;
    write_private(&path(data_dir), &format!("{HEAD}{text}"))
}

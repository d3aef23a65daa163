//! The tokens that are good now.

use std::collections::BTreeMap;
use std::path::Path;

use openvaala_core::environment::{Clock, SystemClock};
use openvaala_protocol::handshake::{Key, NoRandomness, Token, Verifier};
use openvaala_protocol::rpc::Rights;
use openvaala_protocol::rpc::params::token::TokenInfo;
use openvaala_protocol::time::Timestamp;

use super::access::Grant;
use super::bound::Bound;
use super::file;
use crate::error::ServerError;

/// Everything by which a client can be known; a change makes a new value.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The token of the discovery file.
    pub(super) local: Token,
    /// What bound tokens are made from.
    pub(super) binding: Token,
    /// How often these two were made anew.
    pub(super) rotation: u64,
    pub(super) named: BTreeMap<String, Named>,
}

/// What is kept of a token with a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Named {
    pub(super) verifier: Verifier,
    pub(super) rights: Rights,
    pub(super) created_at: Timestamp,
}

impl Keys {
    /// New ones of the server's own, and the named ones of that data directory. Blocks for as long as the disk does.
    pub(crate) fn load(data_dir: &Path) -> Result<Self, ServerError> {
        let named = file::load(data_dir).map_err(|source| ServerError::Tokens {
            path: file::path(data_dir),
            source,
        })?;
        Ok(Self {
            local: Token::generate()?,
            binding: Token::generate()?,
            rotation: 0,
            named,
        })
    }

    /// The token of the discovery file.
    pub(crate) const fn local(&self) -> &Token {
        &self.local
    }

    /// Whether there are named ones.
    pub(crate) fn has_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// What is known of the named ones, by name.
    pub(crate) fn list(&self) -> Vec<TokenInfo> {
        let listed = self.named.iter().map(|(name, named)| TokenInfo {
            name: name.clone(),
            rights: named.rights.clone(),
            created_at: named.created_at,
        });
        listed.collect()
    }

    /// These, with new ones of the server's own.
    pub(super) fn rotated(&self) -> Result<Self, NoRandomness> {
        Ok(Self {
            local: Token::generate()?,
            binding: Token::generate()?,
            rotation: self.rotation + 1,
            named: self.named.clone(),
        })
    }

    /// What proofs of the token of that name are checked with, and what it grants; without a name that of the discovery file.
    pub(crate) fn find(&self, id: Option<&str>) -> Option<(Key, Grant)> {
        let Some(id) = id else {
            let grant = Grant::Local {
                rotation: self.rotation,
            };
            return Some((Key::Shared(self.local.clone()), grant));
        };
        if let Some(named) = self.named.get(id) {
            let grant = Grant::Named {
                name: id.to_owned(),
                named: named.clone(),
            };
            return Some((Key::Verifier(named.verifier.clone()), grant));
        }
        let bound: Bound = id.parse().ok()?;
        let grant = Grant::Bound {
            bound,
            rotation: self.rotation,
        };
        let key = Key::Verifier(self.binding.derive(id).verifier());
        self.is_good(&grant).then_some((key, grant))
    }

    /// Whether what was granted still counts.
    pub(super) fn is_good(&self, grant: &Grant) -> bool {
        match grant {
            Grant::Local { rotation } => *rotation == self.rotation,
            Grant::Named { name, named } => self.named.get(name) == Some(named),
            Grant::Bound { bound, rotation } => {
                *rotation == self.rotation && SystemClock.now() < bound.expires_at
            }
        }
    }
}

//! What a token allows.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One thing that a token may allow. None of them brings another one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Right {
    /// See conversations, and how the server is.
    Watch,
    /// Begin conversations, give input, interrupt, and change what waits or how a session goes on.
    Send,
    /// Answer questions whether a tool call may run, and choose what runs without one.
    Approve,
    /// Look after the server: configuration, tokens, its end, and what is gone for ever.
    Admin,
}

/// What a token allows: a list of rights without an order.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(transparent)]
pub struct Rights(BTreeSet<Right>);

/// A text that names no right.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no right {text:?}: there are watch, send, approve and admin")]
#[non_exhaustive]
pub struct UnknownRight {
    /// The text, cut if it is long.
    pub text: String,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 4] = [Self::Watch, Self::Send, Self::Approve, Self::Admin];

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Send => "send",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Right {
    type Err = UnknownRight;

    fn from_str(text: &str) -> Result<Self, UnknownRight> {
        let right = Self::ALL.into_iter().find(|right| right.as_str() == text);
        right.ok_or_else(|| UnknownRight {
            text: text.chars().take(40).collect(),
        })
    }
}

impl Rights {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Right::ALL.into_iter().collect()
    }

    /// Whether that is among them.
    #[must_use]
    pub fn has(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Right> + '_ {
        self.0.iter().copied()
    }

    /// Their names with that between them.
    #[must_use]
    pub fn join(&self, between: &str) -> String {
        let names: Vec<&str> = self.iter().map(Right::as_str).collect();
        names.join(between)
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<T: IntoIterator<Item = Right>>(rights: T) -> Self {
        Self(rights.into_iter().collect())
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.join(","))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn every_right_is_its_name_on_the_wire_and_in_texts() {
        for right in Right::ALL {
            assert_eq!(serde_json::to_value(right).unwrap(), right.as_str());
            assert_eq!(right.as_str().parse(), Ok(right));
        }
        let error = "root".parse::<Right>().unwrap_err().to_string();
        assert_eq!(
            error,
            r#"there is no right "root": there are watch, send, approve and admin"#
        );
    }

    #[test]
    fn rights_are_a_list_on_the_wire() {
        let rights = Rights::from_iter([Right::Send, Right::Watch, Right::Send]);
        assert_eq!(
            serde_json::to_string(&rights).unwrap(),
            r#"["watch","send"]"#
        );
        assert!(rights.has(Right::Send) && !rights.has(Right::Approve));
    }
}

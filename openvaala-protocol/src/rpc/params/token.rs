//! `token/…`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, SessionId};
use crate::rpc::Rights;
use crate::time::Timestamp;

/// Parameters of `token/create`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenCreateParams"),
    ts(rename = "TokenCreateParams")
)]
#[serde(deny_unknown_fields)]
pub struct CreateParams {
    /// What to call it: 1 to 64 of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// What it allows; at least one right.
    pub rights: Rights,
}

/// Result of `token/create`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenCreateResult"),
    ts(rename = "TokenCreateResult")
)]
pub struct CreateResult {
    /// The token: its name, a colon, 64 hex digits.
    pub token: TokenText,
}

/// A token as a text; its `Debug` form does not show it.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(transparent)]
pub struct TokenText(String);

impl TokenText {
    /// That text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, which is a secret.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(..)")
    }
}

/// Parameters of `token/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenListParams"),
    ts(rename = "TokenListParams")
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `token/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenListResult"),
    ts(rename = "TokenListResult")
)]
pub struct ListResult {
    /// The tokens by name.
    pub tokens: Vec<TokenInfo>,
}

/// What is known of a named token.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct TokenInfo {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub rights: Rights,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Parameters of `token/revoke`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenRevokeParams"),
    ts(rename = "TokenRevokeParams")
)]
#[serde(deny_unknown_fields)]
pub struct RevokeParams {
    /// Its name.
    pub name: String,
}

/// Result of `token/revoke`: nobody new is let in with it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenRevokeResult"),
    ts(rename = "TokenRevokeResult")
)]
pub struct RevokeResult {}

/// Parameters of `token/rotate`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenRotateParams"),
    ts(rename = "TokenRotateParams")
)]
#[serde(deny_unknown_fields)]
pub struct RotateParams {}

/// Result of `token/rotate`: the discovery file has the new token.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenRotateResult"),
    ts(rename = "TokenRotateResult")
)]
pub struct RotateResult {}

/// Parameters of `token/bind`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenBindParams"),
    ts(rename = "TokenBindParams")
)]
#[serde(deny_unknown_fields)]
pub struct BindParams {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The session.
    pub session_id: SessionId,
    /// What it allows there; at least one right, and not `admin`.
    pub rights: Rights,
    /// For how long, 1 second to 7 days.
    pub expires_in_seconds: u32,
}

/// Result of `token/bind`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TokenBindResult"),
    ts(rename = "TokenBindResult")
)]
pub struct BindResult {
    /// The token: what it is good for, a colon, 64 hex digits.
    pub token: TokenText,
    /// From when on it is good for nothing.
    pub expires_at: Timestamp,
}

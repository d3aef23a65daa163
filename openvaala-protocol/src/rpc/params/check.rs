//! `server/check`.

use serde::{Deserialize, Serialize};

use crate::id::ConversationId;

/// Parameters of `server/check`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerCheckParams"),
    ts(rename = "ServerCheckParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct CheckParams {
    /// Only this conversation, also in the trash; `None` means all.
    pub conversation_id: Option<ConversationId>,
    /// Whether to put right what can be put right without losing a byte.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub repair: bool,
}

/// Result of `server/check`: what was read, and what was found.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerCheckResult"),
    ts(rename = "ServerCheckResult")
)]
pub struct CheckResult {
    /// How many conversations were read, those in the trash with them.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub conversations: u64,
    /// How many streams they have.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub streams: u64,
    /// How many entries these have, damaged ones with them.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub entries: u64,
    /// What is not as it should be; empty when all is sound.
    pub findings: Vec<Finding>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Finding {
    /// What kind of thing it is.
    pub kind: FindingKind,
    /// The stream or directory, from the data directory on.
    pub place: String,
    /// The number of the entry.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub seq: Option<u64>,
    /// Where it begins, in bytes from the start of the stream.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub offset: Option<u64>,
    /// How many bytes it has.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub length: Option<u64>,
    /// What is wrong with it.
    pub message: String,
    /// What a repair does about it, or what the user can do.
    pub remedy: String,
    /// Whether it was put right.
    pub repaired: bool,
}

/// What kind of thing a check has found.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// An entry in the middle of a stream that cannot be read.
    DamagedEntry,
    /// Bytes at the end of a stream that are no whole entries.
    TornTail,
    /// A stream, or a state of something, that cannot be read at all.
    Unreadable,
    /// A directory without metadata: what a creation that did not finish has left.
    HalfCopy,
    /// A deletion that a crash has cut in two.
    InterruptedDeletion,
    /// A restoration that a crash has cut in two.
    InterruptedRestoration,
    /// A directory whose name is not that of the conversation in it.
    WrongName,
    /// Entries in a format that is newer than this version.
    NewerFormat,
    /// The index does not say what the logs say.
    StaleIndex,
}

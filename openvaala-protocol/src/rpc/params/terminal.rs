//! `terminal/…`: the commands that run in the background of a conversation's sessions.

use serde::{Deserialize, Serialize};

use crate::id::{ConversationId, SessionId};
use crate::time::Timestamp;

/// A command in the background of a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
pub struct Terminal {
    /// The session whose agent has started it.
    pub session_id: SessionId,
    /// Its number in that session, from 1.
    pub terminal_id: u32,
    /// The beginning of its command line, at most 4,000 characters.
    pub command: String,
    /// Whether it runs.
    pub status: TerminalStatus,
    /// How its shell exited, if it has and no signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended its shell, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Who ended it, or why nobody knows how it ended; `None` for one that runs or has ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How many bytes it has written.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub bytes: u64,
    /// How many bytes were written to its input.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub input_bytes: u64,
}

/// Whether a command in the background runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminalStatus {
    /// It runs, or something that it has started does.
    Running,
    /// Nothing of it runs any more.
    Exited,
    /// The system cannot say how it ended.
    Lost,
}

/// Parameters of `terminal/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalListParams"),
    ts(rename = "TerminalListParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Only those of this session; `None` means of all.
    #[serde(default)]
    pub session_id: Option<SessionId>,
}

/// Result of `terminal/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalListResult"),
    ts(rename = "TerminalListResult")
)]
pub struct ListResult {
    /// Those that run and, of each session, the last 50 commands that have ended; the root session first.
    pub terminals: Vec<Terminal>,
}

/// Parameters of `terminal/read`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalReadParams"),
    ts(rename = "TerminalReadParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ReadParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The number of the terminal in that session.
    pub terminal_id: u32,
    /// The first byte of its output to give, from 0.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>", optional))]
    pub offset: u64,
    /// How many bytes to give from there on: at most 1,048,576, default 65,536.
    #[serde(default)]
    pub head: Option<u32>,
    /// How many bytes of its end to give besides, if the head does not reach it: at most 1,048,576, default 0.
    #[serde(default)]
    pub tail: Option<u32>,
}

/// Result of `terminal/read`: what the command wrote as it wrote it, escape sequences and all.
///
/// What is no UTF-8 shows as U+FFFD; a character is never cut.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalReadResult"),
    ts(rename = "TerminalReadResult")
)]
pub struct ReadResult {
    /// The terminal as it is now.
    pub terminal: Terminal,
    /// Where `text` begins; behind what was asked for where bytes are not kept.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub offset: u64,
    /// What was written from there on; empty if there is nothing by now.
    pub text: String,
    /// Where to go on reading.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub next: u64,
    /// Its end, if that was asked for and lies behind `text`.
    pub tail: Option<TerminalTail>,
}

/// The end of an output.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct TerminalTail {
    /// Where it begins.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub offset: u64,
    /// What was written from there on.
    pub text: String,
    /// Where to go on reading.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub next: u64,
    /// How many bytes lie between the text before and this one.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub left_out: u64,
}

/// Parameters of `terminal/write`.
///
/// The command must have been started with its input open.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalWriteParams"),
    ts(rename = "TerminalWriteParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The number of the terminal in that session.
    pub terminal_id: u32,
    /// What to write, as it is: a line needs its line end.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub text: String,
    /// Whether its input is closed after that.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub end: bool,
    /// How many bytes have to be written to it before (`input_bytes`). A write that was made there already is not made again,
    /// so one whose answer was lost can be sent again; `None` writes behind whatever there is.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>", optional))]
    pub at: Option<u64>,
}

/// Result of `terminal/write`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalWriteResult"),
    ts(rename = "TerminalWriteResult")
)]
pub struct WriteResult {
    /// Whether the command could take all of it within 5 s; what is left waits for it to read on.
    pub taken: bool,
    /// The terminal as it is now.
    pub terminal: Terminal,
}

/// Parameters of `terminal/kill`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalKillParams"),
    ts(rename = "TerminalKillParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct KillParams {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which session of it; `None` means the root.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// The number of the terminal in that session.
    pub terminal_id: u32,
    /// What it is sent.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub signal: TerminalSignal,
}

/// What a command is ended with.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminalSignal {
    /// It is asked to end, and killed if it has not after 500 ms.
    #[default]
    Term,
    /// It is killed.
    Kill,
}

/// Result of `terminal/kill`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "TerminalKillResult"),
    ts(rename = "TerminalKillResult")
)]
pub struct KillResult {
    /// The terminal as it is now; it runs on only if the system does not let it go within 2 s.
    pub terminal: Terminal,
}

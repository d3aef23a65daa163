//! `initialize` and `server/…`.

use serde::{Deserialize, Serialize};

use crate::conversation::ModelRef;
use crate::time::Timestamp;

/// Parameters of `initialize`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct InitializeParams {
    /// The version that the client speaks; must be the server's own.
    pub protocol_version: String,
    /// Who the client is.
    pub client: Peer,
}

/// A program at one end of a connection.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Peer {
    /// Its name, such as `openvaala-cli`.
    pub name: String,
    /// Its own version.
    pub version: String,
}

/// Result of `initialize`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct InitializeResult {
    /// The version that both sides speak.
    pub protocol_version: String,
    /// Who the server is.
    pub server: Peer,
    /// The model that new conversations ask.
    pub default_model: ModelRef,
    /// Set while no real model is configured: what answers, and how to add one.
    pub notice: Option<String>,
}

/// Parameters of `server/status`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerStatusParams"),
    ts(rename = "ServerStatusParams")
)]
#[serde(deny_unknown_fields)]
pub struct StatusParams {}

/// Result of `server/status`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerStatusResult"),
    ts(rename = "ServerStatusResult")
)]
pub struct StatusResult {
    /// The server's own version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// The address that it listens on for clients of its machine.
    pub address: String,
    /// Where clients of other machines reach it; `None` if they do not.
    #[serde(default)]
    pub remote: Option<RemoteAddress>,
    /// Its data directory, canonical.
    pub data_dir: String,
    /// When it started.
    pub started_at: Timestamp,
    /// How many conversations are open in memory.
    pub open_conversations: u32,
    /// How many turns run.
    pub running_turns: u32,
    /// How many commands of agents run.
    pub running_commands: u32,
    /// How many clients are connected.
    pub clients: u32,
    /// Resident memory in bytes, where the system tells.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub memory_bytes: Option<u64>,
    /// The model that new conversations ask.
    pub default_model: ModelRef,
    /// What does not work as it should, in words; empty when all is well.
    pub degraded: Vec<String>,
}

/// Where a server listens for other machines.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct RemoteAddress {
    /// The address.
    pub address: String,
    /// Whether what is said there is encrypted (`wss://`).
    pub encrypted: bool,
}

/// Parameters of `server/shutdown`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerShutdownParams"),
    ts(rename = "ServerShutdownParams")
)]
#[serde(deny_unknown_fields)]
pub struct ShutdownParams {
    /// How long to wait until no turn runs, at most an hour; what runs then is interrupted. Default: not at all.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub wait_seconds: u32,
}

const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Result of `server/shutdown`: the server has begun to stop.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerShutdownResult"),
    ts(rename = "ServerShutdownResult")
)]
pub struct ShutdownResult {
    /// The process that is about to end.
    pub pid: u32,
}

/// Parameters of `server/reload`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerReloadParams"),
    ts(rename = "ServerReloadParams")
)]
#[serde(deny_unknown_fields)]
pub struct ReloadParams {}

/// Result of `server/reload`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerReloadResult"),
    ts(rename = "ServerReloadResult")
)]
pub struct ReloadResult {
    /// The model that new conversations ask from now on.
    pub default_model: ModelRef,
    /// What the configuration says that will only count after a restart, such as another address.
    pub after_restart: Vec<String>,
}

/// Parameters of `server/logs`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerLogsParams"),
    ts(rename = "ServerLogsParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct LogsParams {
    /// Only lines after that number, the oldest first; `None` means the last ones.
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>"))]
    pub after: Option<u64>,
    /// How many to give: 1 to 1,000, default 100.
    pub limit: Option<u32>,
    /// How long to wait for a line if there is none yet, at most 30,000 ms. Default: not at all.
    pub wait_ms: Option<u32>,
}

/// Result of `server/logs`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerLogsResult"),
    ts(rename = "ServerLogsResult")
)]
pub struct LogsResult {
    /// The lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// What to give as `after` to go on.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub next: u64,
}

/// A line of a server's log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct LogLine {
    /// Its number, from 1 at the start of the server. Where numbers are left out lines are not kept any more.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub number: u64,
    /// What it says.
    pub text: String,
}

/// Parameters of `server/reindex`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerReindexParams"),
    ts(rename = "ServerReindexParams")
)]
#[serde(deny_unknown_fields)]
pub struct ReindexParams {}

/// Result of `server/reindex`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerReindexResult"),
    ts(rename = "ServerReindexResult")
)]
pub struct ReindexResult {
    /// How many conversations are in the index now.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub conversations: u64,
    /// What could not be read, a line each; it stays on disk untouched.
    pub damaged: Vec<String>,
}

/// Parameters of `server/progress`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerProgressParams"),
    ts(rename = "ServerProgressParams")
)]
pub struct ProgressParams {
    /// The method whose work this is.
    pub method: String,
    /// How many things are done.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub done: u64,
    /// How many there are.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub total: u64,
}

/// Parameters of `server/stopping`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ServerStoppingParams"),
    ts(rename = "ServerStoppingParams")
)]
pub struct StoppingParams {
    /// Why it stops.
    pub reason: String,
}

//! `executor/…`.

use serde::{Deserialize, Serialize};

use crate::id::ExecutorId;

/// Parameters of `executor/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorListParams"),
    ts(rename = "ExecutorListParams")
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `executor/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorListResult"),
    ts(rename = "ExecutorListResult")
)]
pub struct ListResult {
    /// The executors by id.
    pub executors: Vec<Executor>,
}

/// A place where tools run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Executor {
    /// What conversations name it by.
    pub id: ExecutorId,
    /// What kind of environment it is, such as `local`.
    pub kind: String,
}

/// Parameters of `executor/test`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorTestParams"),
    ts(rename = "ExecutorTestParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct TestParams {
    /// Which executor.
    pub executor: ExecutorId,
    /// The folder to open there, absolute; `None` means the server's working directory.
    #[serde(default)]
    pub root: Option<String>,
}

/// Result of `executor/test`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorTestResult"),
    ts(rename = "ExecutorTestResult")
)]
pub struct TestResult {
    /// Whether the folder can be worked in.
    pub ok: bool,
    /// What environment it is, or what went wrong.
    pub message: String,
    /// How long it took, in milliseconds.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub millis: u64,
}

/// Parameters of `executor/browse`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorBrowseParams"),
    ts(rename = "ExecutorBrowseParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct BrowseParams {
    /// Which executor.
    pub executor: ExecutorId,
    /// The folder to look into, absolute; `None` means the server's working directory.
    #[serde(default)]
    pub path: Option<String>,
    /// How many to give: 1 to 1,000, default 1,000.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Result of `executor/browse`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorBrowseResult"),
    ts(rename = "ExecutorBrowseResult")
)]
pub struct BrowseResult {
    /// The folder as the executor names it.
    pub path: String,
    /// The folder that it lies in; `None` for the uppermost.
    pub parent: Option<String>,
    /// The folders in it by name, links to folders included.
    pub folders: Vec<Folder>,
    /// Whether there are more.
    pub more: bool,
}

/// A folder that somebody may choose.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Folder {
    /// Its name in the folder above.
    pub name: String,
    /// Where it is, absolute.
    pub path: String,
    /// Whether its name begins with a dot.
    pub hidden: bool,
}

/// Parameters of `executor/complete`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorCompleteParams"),
    ts(rename = "ExecutorCompleteParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct CompleteParams {
    /// Which executor.
    pub executor: ExecutorId,
    /// What was typed so far, absolute; what follows its last `/` is the beginning of a name.
    pub path: String,
    /// Whether files are completed besides folders.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub files: bool,
    /// How many to give: 1 to 1,000, default 100.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Result of `executor/complete`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ExecutorCompleteResult"),
    ts(rename = "ExecutorCompleteResult")
)]
pub struct CompleteResult {
    /// The paths that begin so, by name; those of folders end with `/`. Names with a dot before them come only once that is typed.
    pub paths: Vec<String>,
    /// Whether there are more.
    pub more: bool,
}

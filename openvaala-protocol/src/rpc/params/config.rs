//! `config/…`.

use serde::{Deserialize, Serialize};

use crate::conversation::ModelRef;

/// Parameters of `config/get`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigGetParams"),
    ts(rename = "ConfigGetParams")
)]
#[serde(deny_unknown_fields)]
pub struct GetParams {}

/// Result of `config/get`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigGetResult"),
    ts(rename = "ConfigGetResult")
)]
pub struct GetResult {
    /// The main file, `openvaala.yaml`, on the server's machine.
    pub path: String,
    /// What it says now, empty if there is none. It holds no keys: those are in the files of the providers.
    pub text: String,
    /// Stands for that text; `config/set` takes it to see that nobody has changed it meanwhile.
    pub revision: String,
    /// What is wrong on disk, in all files; empty if it could be put in force.
    pub faults: Vec<Fault>,
    /// What is in force but not as it should be, in words.
    pub warnings: Vec<String>,
}

/// Something that is wrong with a file of the configuration, or with a variable of the server's environment.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigFault"),
    ts(rename = "ConfigFault")
)]
pub struct Fault {
    /// The path of the file, or `environment: NAME`.
    pub origin: String,
    /// The line, from 1; `None` for the whole.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The field as a path, such as `headers.X-Team`.
    pub field: Option<String>,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Parameters of `config/validate`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigValidateParams"),
    ts(rename = "ConfigValidateParams", optional_fields = nullable)
)]
#[serde(default, deny_unknown_fields)]
pub struct ValidateParams {
    /// What the main file would say; `None` means what it says.
    pub text: Option<String>,
}

/// Result of `config/validate`: nothing has changed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigValidateResult"),
    ts(rename = "ConfigValidateResult")
)]
pub struct ValidateResult {
    /// The first fault of every broken file; empty if it could be put in force.
    pub faults: Vec<Fault>,
    /// What would be in force but not as it should be, in words.
    pub warnings: Vec<String>,
}

/// Parameters of `config/set`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigSetParams"),
    ts(rename = "ConfigSetParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct SetParams {
    /// What the main file is to say.
    pub text: String,
    /// The revision that was changed; with another one on disk nothing is written. `None` writes in any case.
    #[serde(default)]
    pub revision: Option<String>,
}

/// Result of `config/set`: it is on disk and in force.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ConfigSetResult"),
    ts(rename = "ConfigSetResult")
)]
pub struct SetResult {
    /// The revision now.
    pub revision: String,
    /// The model that new conversations ask now.
    pub default_model: ModelRef,
    /// What counts only after a restart.
    pub after_restart: Vec<String>,
}

//! `provider/…`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::conversation::ModelRef;

/// Parameters of `provider/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderListParams"),
    ts(rename = "ProviderListParams")
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `provider/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderListResult"),
    ts(rename = "ProviderListResult")
)]
pub struct ListResult {
    /// The providers, by name.
    pub providers: Vec<Provider>,
    /// The model that new conversations ask.
    pub default_model: ModelRef,
}

/// A configured model provider.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// What it speaks: `openai_chat`, `openai_responses`, `anthropic_messages`, or `demo`.
    #[serde(rename = "type")]
    pub dialect: String,
    /// Where it is asked; `None` for one that is not asked over the network.
    pub base_url: Option<String>,
    /// The model it is asked for by default.
    pub default_model: String,
    /// Where it comes from: a file of the configuration, a variable of the environment, or built in.
    pub origin: String,
}

/// Parameters of `provider/test`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderTestParams"),
    ts(rename = "ProviderTestParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct TestParams {
    /// The provider's name.
    pub name: String,
    /// The model to ask; `None` means its default.
    #[serde(default)]
    pub model: Option<String>,
}

/// Result of `provider/test`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderTestResult"),
    ts(rename = "ProviderTestResult")
)]
pub struct TestResult {
    /// Whether it answered.
    pub ok: bool,
    /// What it answered, or what went wrong and what to do about it.
    pub message: String,
    /// How long it took, in milliseconds.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub millis: u64,
}

/// Parameters of `provider/add`.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderAddParams"),
    ts(rename = "ProviderAddParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct AddParams {
    /// Its name; also that of its file.
    pub name: String,
    /// What it speaks: `openai_chat`, `openai_responses` or `anthropic_messages`.
    #[serde(rename = "type")]
    pub dialect: String,
    /// Where its API begins.
    pub base_url: String,
    /// Its key; written to its file, which only the owner can read, and never given out again.
    #[serde(default)]
    pub api_key: Option<String>,
    /// The variable of the server's environment that has its key, in the place of `api_key`.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The model it is asked for by default.
    pub default_model: String,
    /// Whether new conversations ask it; the first provider of a configuration is the default in any case.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub make_default: bool,
}

/// Without the key.
impl fmt::Debug for AddParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddParams")
            .field("name", &self.name)
            .field("dialect", &self.dialect)
            .field("base_url", &self.base_url)
            .field("default_model", &self.default_model)
            .finish_non_exhaustive()
    }
}

/// Result of `provider/add`: it is on disk and in force.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderAddResult"),
    ts(rename = "ProviderAddResult")
)]
pub struct AddResult {
    /// The model that new conversations ask now.
    pub default_model: ModelRef,
}

/// Parameters of `provider/remove`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderRemoveParams"),
    ts(rename = "ProviderRemoveParams")
)]
#[serde(deny_unknown_fields)]
pub struct RemoveParams {
    /// The provider's name.
    pub name: String,
}

/// Result of `provider/remove`: its file is gone.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderRemoveResult"),
    ts(rename = "ProviderRemoveResult")
)]
pub struct RemoveResult {
    /// The model that new conversations ask now.
    pub default_model: ModelRef,
}

/// Parameters of `provider/edit`; what is left out stays as it is.
#[derive(Clone, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderEditParams"),
    ts(rename = "ProviderEditParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct EditParams {
    /// The provider's name.
    pub name: String,
    /// What it speaks: `openai_chat`, `openai_responses` or `anthropic_messages`.
    #[serde(default, rename = "type")]
    pub dialect: Option<String>,
    /// Where its API begins.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Its key; written to its file, which only the owner can read, and never given out again.
    #[serde(default)]
    pub api_key: Option<String>,
    /// The variable of the server's environment that has its key, in the place of a key that was written.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The model it is asked for by default.
    #[serde(default)]
    pub default_model: Option<String>,
}

/// Without the key.
impl fmt::Debug for EditParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditParams")
            .field("name", &self.name)
            .field("dialect", &self.dialect)
            .field("base_url", &self.base_url)
            .field("default_model", &self.default_model)
            .finish_non_exhaustive()
    }
}

/// Result of `provider/edit`: it is on disk and in force.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ProviderEditResult"),
    ts(rename = "ProviderEditResult")
)]
pub struct EditResult {
    /// The model that new conversations ask now.
    pub default_model: ModelRef,
}

//! `provider/…`.

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

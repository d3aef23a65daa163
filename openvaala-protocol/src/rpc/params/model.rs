//! `model/…`.

use serde::{Deserialize, Serialize};

use crate::conversation::ModelRef;

/// Parameters of `model/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ModelListParams"),
    ts(rename = "ModelListParams", optional_fields = nullable)
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Only those of this provider; `None` means of all.
    #[serde(default)]
    pub provider: Option<String>,
}

/// Result of `model/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ModelListResult"),
    ts(rename = "ModelListResult")
)]
pub struct ListResult {
    /// The models that the configuration names, by provider and name; a provider may have others.
    pub models: Vec<Model>,
    /// The model that new conversations ask.
    pub default_model: ModelRef,
}

/// A model that the configuration names.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
pub struct Model {
    /// The provider's name.
    pub provider: String,
    /// The model's name there.
    pub model: String,
    /// Whether it is the one that the provider is asked for by default.
    pub is_provider_default: bool,
    /// How many tokens it can read, if that is known.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<u32>"))]
    pub context_window: Option<u64>,
}

/// Parameters of `model/default/set`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ModelDefaultSetParams"),
    ts(rename = "ModelDefaultSetParams")
)]
#[serde(deny_unknown_fields)]
pub struct DefaultSetParams {
    /// The model, at a provider that there is.
    pub model: ModelRef,
}

/// Result of `model/default/set`: it is on disk and in force.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "ModelDefaultSetResult"),
    ts(rename = "ModelDefaultSetResult")
)]
pub struct DefaultSetResult {
    /// The model that new conversations ask now.
    pub default_model: ModelRef,
}

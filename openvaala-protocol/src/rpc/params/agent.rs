//! `agent/…`.

use serde::{Deserialize, Serialize};

use crate::conversation::ModelRef;

/// Parameters of `agent/list`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "AgentListParams"),
    ts(rename = "AgentListParams")
)]
#[serde(deny_unknown_fields)]
pub struct ListParams {}

/// Result of `agent/list`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(
    feature = "schema",
    schemars(rename = "AgentListResult"),
    ts(rename = "AgentListResult")
)]
pub struct ListResult {
    /// The agents by name; the default one, which has no name, is not among them.
    pub agents: Vec<Agent>,
}

/// A configured agent.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[cfg_attr(feature = "schema", ts(optional_fields = nullable))]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The model of conversations that it begins; `None` means the default one.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// How hard that model shall think; `None` leaves it to `model`.
    #[serde(default)]
    pub effort: Option<String>,
    /// The names of its tools; `None` means all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

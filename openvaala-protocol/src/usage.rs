//! Token counts as a provider reports them.

use serde::{Deserialize, Serialize};

/// Tokens that one model response, or all of a turn, used.
///
/// `None` means that the provider did not say; it is never shown as zero.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub input_tokens: Option<u64>,
    /// The part of `input_tokens` that was read from the provider's cache.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub cached_input_tokens: Option<u64>,
    /// Tokens of the answer, reasoning included.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub output_tokens: Option<u64>,
    /// The part of `output_tokens` that was reasoning.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Adds another response's count; what only one side knows is kept.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            cached_input_tokens: add(self.cached_input_tokens, other.cached_input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            reasoning_tokens: add(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

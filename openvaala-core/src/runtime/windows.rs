//! How much a model can read, and when a conversation is made shorter.

use std::collections::BTreeMap;

/// The smallest window that is believed; what is smaller counts as not known.
const MIN_WINDOW: u64 = 1_000;

/// When a conversation is summarised by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct CompactionPolicy {
    /// Whether it is at all; `true` unless set. If not, a conversation that has become too long fails with a hint.
    pub automatic: bool,
    /// The share of the model's window, in percent, that the last response's tokens may take before the next request is
    /// preceded by a summary; 85 unless set. Only counts where the window is known.
    pub share_percent: u8,
}

impl Default for CompactionPolicy {
    fn default() -> Self {
        Self {
            automatic: true,
            share_percent: 85,
        }
    }
}

impl CompactionPolicy {
    /// Sets whether conversations are summarised by themselves.
    #[must_use]
    pub const fn with_automatic(mut self, automatic: bool) -> Self {
        self.automatic = automatic;
        self
    }

    /// Sets the share of the window, in percent; 1 to 100, anything else counts as the nearest of them.
    #[must_use]
    pub const fn with_share_percent(mut self, percent: u8) -> Self {
        self.share_percent = match percent {
            0 => 1,
            1..=100 => percent,
            _ => 100,
        };
        self
    }
}

/// The windows of a provider's models, in tokens.
///
/// A window below 1,000 tokens counts as not known. A conversation with a model whose window is not known is summarised
/// only when the provider says that it is too long.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ContextWindows {
    /// The window of every model that is not named in `models`.
    pub any: Option<u64>,
    /// Windows by the model's name.
    pub models: BTreeMap<String, u64>,
}

impl ContextWindows {
    /// No window is known.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            any: None,
            models: BTreeMap::new(),
        }
    }

    /// The same window for every model.
    #[must_use]
    pub const fn of_all(tokens: u64) -> Self {
        Self {
            any: Some(tokens),
            models: BTreeMap::new(),
        }
    }

    /// Sets the window of one model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>, tokens: u64) -> Self {
        self.models.insert(model.into(), tokens);
        self
    }

    /// The window of a model, if it is known.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<u64> {
        let window = self.models.get(model).copied().or(self.any);
        window.filter(|tokens| *tokens >= MIN_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn an_absurd_window_is_not_known_and_a_named_model_has_its_own() {
        let windows = ContextWindows::of_all(0).with_model("large", 200_000);
        assert_eq!(
            (windows.of("small"), windows.of("large")),
            (None, Some(200_000))
        );
        let windows = ContextWindows::of_all(8_000).with_model("odd", 999);
        assert_eq!((windows.of("any"), windows.of("odd")), (Some(8_000), None));
    }
}

//! What a configured provider speaks.

use std::fmt;
use std::str::FromStr;

/// What a provider that is reached over HTTP speaks, as `type` of its file says it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProviderType {
    /// OpenAI Chat Completions and everything compatible with it.
    #[default]
    OpenAiChat,
    /// OpenAI Responses and everything compatible with it.
    OpenAiResponses,
    /// Anthropic Messages and everything compatible with it.
    AnthropicMessages,
}

impl ProviderType {
    /// All of them, the most common first.
    pub const ALL: &[Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
    ];

    /// Its name in files and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
        }
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no type of provider has.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{name:?} is no type of provider: expected {}", expected())]
#[non_exhaustive]
pub struct UnknownProviderType {
    /// The name.
    pub name: String,
}

impl FromStr for ProviderType {
    type Err = UnknownProviderType;

    fn from_str(name: &str) -> Result<Self, UnknownProviderType> {
        let found = Self::ALL.iter().find(|kind| kind.as_str() == name);
        found.copied().ok_or_else(|| UnknownProviderType {
            name: name.to_owned(),
        })
    }
}

/// The names to choose from, in words.
pub(super) fn expected() -> String {
    let names: Vec<&str> = ProviderType::ALL.iter().map(|kind| kind.as_str()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

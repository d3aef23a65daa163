//! Bodies of what is said: by people, by models, and to models.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::notice::Plan;
use crate::content::Content;
use crate::conversation::TurnStatus;
use crate::id::{ItemId, SessionId};

/// What a person (or a program for one) said.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct UserMessage {
    /// Text and images, in order.
    pub content: Vec<Content>,
    /// Whether it was read in the middle of a running turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steer: bool,
}

impl UserMessage {
    /// A message of that content.
    #[must_use]
    pub const fn new(content: Vec<Content>, steer: bool) -> Self {
        Self { content, steer }
    }
}

/// What the model said.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct AssistantMessage {
    /// The text, as far as it came.
    pub text: String,
    /// Whether it ends before the model had finished it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl AssistantMessage {
    /// A message of that text.
    #[must_use]
    pub const fn new(text: String, cut: bool) -> Self {
        Self { text, cut }
    }
}

/// What one agent of the conversation said to another.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct AgentMessage {
    /// The session that it comes from.
    pub from: SessionId,
    /// The path of the agent that works there, such as `main/review`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How the sender's turn ended, if the message says what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TurnStatus>,
    /// Text and images, in order.
    pub content: Vec<Content>,
    /// Whether it was read in the middle of a running turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steer: bool,
}

impl AgentMessage {
    /// A message from the agent of that session.
    #[must_use]
    pub const fn new(from: SessionId, content: Vec<Content>) -> Self {
        Self {
            from,
            path: None,
            ended: None,
            content,
            steer: false,
        }
    }

    /// The same with the sender's path.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same, read in the middle of a running turn or not.
    #[must_use]
    pub const fn with_steer(mut self, steer: bool) -> Self {
        self.steer = steer;
        self
    }

    /// The same as a report of how a turn of the sender ended.
    #[must_use]
    pub const fn with_ended(mut self, ended: Option<TurnStatus>) -> Self {
        self.ended = ended;
        self
    }
}

/// What the model thought, as far as its provider shows it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Reasoning {
    /// The text or summary; empty if the provider shows none.
    pub text: String,
    /// What the provider wants to see again, unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
    /// Whether it ends before the model had finished it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Reasoning {
    /// Reasoning of that text.
    #[must_use]
    pub const fn new(text: String, opaque: Option<Opaque>, cut: bool) -> Self {
        Self { text, opaque, cut }
    }
}

/// A provider's own data, which goes back to the place where it came from and nowhere else.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Opaque {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model that made it.
    pub model: String,
    /// The account at the provider, as far as it is known: a hash of the key, never the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The data as it came.
    #[cfg_attr(
        feature = "schema",
        ts(type = "unknown"),
        schemars(with = "serde_json::Value")
    )]
    pub data: Box<RawValue>,
}

impl Opaque {
    /// Data of that provider, model and account.
    #[must_use]
    pub const fn new(
        provider: String,
        model: String,
        account: Option<String>,
        data: Box<RawValue>,
    ) -> Self {
        Self {
            provider,
            model,
            account,
            data,
        }
    }
}

/// A summary that stands for all items before it when a request is built.
///
/// Those items stay in the log. What must not depend on how well a model summarises is kept beside its text.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct ContextSummary {
    /// The summary.
    pub text: String,
    /// The `pos` of the last item that it stands for.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub up_to: u64,
    /// What the user said in the items that it stands for, word for word, oldest first: the newest always, older ones
    /// as far as there is room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<KeptMessage>,
    /// The agent's list of steps as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// The files that were changed, as the tools named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The commands that ran when it was made: number and command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<CompactionTrigger>,
    /// What it should look at above all, in the words of whoever asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// The tokens of the last response before it, as far as the provider told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub tokens_before: Option<u64>,
}

/// What the user said, kept word for word in a summary.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct KeptMessage {
    /// The item that has it.
    pub item: ItemId,
    /// Text and, of the newest message, images.
    pub content: Vec<Content>,
}

impl KeptMessage {
    /// The content of that item.
    #[must_use]
    pub const fn new(item: ItemId, content: Vec<Content>) -> Self {
        Self { item, content }
    }
}

/// What a summary was made for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionTrigger {
    /// The context had grown past its share of the model's window.
    Share,
    /// The provider said that the request is too long.
    Overflow,
    /// Somebody asked for it.
    Manual,
    /// An agent begins with a summary of what the one knows that has started it.
    Inherited,
}

/// A summary counts no longer: requests are made from the items that it stood for again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct SummaryUndone {
    /// The item of the summary.
    pub summary: ItemId,
}

impl SummaryUndone {
    /// That summary counts no longer.
    #[must_use]
    pub const fn new(summary: ItemId) -> Self {
        Self { summary }
    }
}

/// A skill that was brought into the context.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Skill {
    /// The skill's name.
    pub name: String,
    /// Its text as the model reads it.
    pub text: String,
}

/// An AGENTS.md that was brought into the context.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct Instructions {
    /// The file that it comes from.
    pub path: String,
    /// Its text as the model reads it.
    pub text: String,
    /// The size of the whole file in bytes; larger than the text if that was cut.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub bytes: u64,
}

impl Instructions {
    /// The text of that file, which has `bytes` bytes as a whole.
    #[must_use]
    pub const fn new(path: String, text: String, bytes: u64) -> Self {
        Self { path, text, bytes }
    }
}

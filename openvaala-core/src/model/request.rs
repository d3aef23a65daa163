//! What a model is asked, in no provider's words.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::Content;
use openvaala_protocol::item::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::messages::Messages;

/// One question to a model: everything that it shall know.
///
/// The request of a later step begins with the very bytes of the one before, so that providers can cache it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The model's name at the provider.
    pub model: String,
    /// How hard it shall think, in the provider's words; `None` leaves it to the provider.
    pub effort: Option<String>,
    /// The system prompt.
    pub instructions: String,
    /// What was said and done so far, oldest first; calls and results are paired.
    pub messages: Messages,
    /// The tools that it may ask for, sorted by name.
    pub tools: Vec<ToolSpec>,
    /// JSON Schema that the final answer shall follow; `None` for free text.
    pub output_schema: Option<OutputSchema>,
}

/// A JSON Schema that an answer shall follow, kept as it was written: the order of its fields is that of the answer's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct OutputSchema(Box<RawValue>);

impl OutputSchema {
    /// Takes a schema; `None` if it is no JSON object.
    #[must_use]
    pub fn new(schema: Box<RawValue>) -> Option<Self> {
        schema.get().starts_with('{').then_some(Self(schema))
    }

    /// The schema as JSON.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// One message of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message {
    /// From the user, or from the runtime in the user's place.
    User(Vec<Content>),
    /// From the model itself, its parts in order.
    Assistant(Vec<AssistantPart>),
    /// The results of all calls of the assistant message before it, in call order.
    ToolResults(Vec<ToolAnswer>),
}

/// A part of what the model itself said earlier.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AssistantPart {
    /// Text.
    Text(String),
    /// A provider's own reasoning data; only ever given back to where it came from.
    Reasoning {
        /// The readable part, possibly empty.
        text: String,
        /// The provider's own part.
        opaque: Opaque,
    },
    /// A tool that it asked for.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as JSON text; always a JSON object.
        arguments: String,
    },
}

/// The result of one tool call as the model sees it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolAnswer {
    /// The call's id.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Text and images.
    pub content: Vec<Content>,
    /// Whether the call failed.
    pub failed: bool,
}

impl ToolAnswer {
    /// An answer to that call.
    #[must_use]
    pub const fn new(call_id: String, name: String, content: Vec<Content>, failed: bool) -> Self {
        Self {
            call_id,
            name,
            content,
            failed,
        }
    }
}

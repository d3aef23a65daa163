//! One chunk of an answer, as far as it matters; all else in it is ignored.

use openvaala_protocol::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One `chat.completion.chunk`.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(default)]
    pub(super) error: Option<Value>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    /// Text, or with some services a list of typed parts.
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// A piece of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default)]
    name: Option<String>,
    /// JSON text within a string; with some services the object itself.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl CallDelta<'_> {
    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("")
    }

    pub(super) fn name(&self) -> &str {
        self.function
            .as_ref()
            .and_then(|function| function.name.as_deref())
            .unwrap_or("")
    }

    /// The piece of the arguments' JSON text.
    pub(super) fn arguments(&self) -> String {
        let raw = self
            .function
            .as_ref()
            .and_then(|function| function.arguments);
        let raw = raw.map_or("null", RawValue::get);
        match serde_json::from_str::<Option<String>>(raw) {
            Ok(text) => text.unwrap_or_default(),
            Err(_) => raw.to_owned(),
        }
    }
}

/// What kind of text a delta brings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Voice {
    Text,
    /// Thinking, with the field that it came in.
    Reasoning(&'static str),
}

impl Delta<'_> {
    /// The pieces of text in this delta, thinking first.
    pub(super) fn texts(&self) -> Vec<(Voice, &str)> {
        let mut texts = Vec::new();
        // Some services send the same thought in both fields.
        for (field, value) in [
            ("reasoning_content", &self.reasoning_content),
            ("reasoning", &self.reasoning),
        ] {
            let text = value.as_ref().and_then(Value::as_str).unwrap_or("");
            if texts.is_empty() && !text.is_empty() {
                texts.push((Voice::Reasoning(field), text));
            }
        }
        match &self.content {
            Some(Value::String(text)) => texts.push((Voice::Text, text)),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| typed_part(part, &mut texts)),
            _ => {}
        }
        texts.retain(|(_, text)| !text.is_empty());
        texts
    }
}

/// A typed part as Mistral sends it: `{"type":"text",…}` or `{"type":"thinking","thinking":[{"type":"text",…}]}`.
fn typed_part<'a>(part: &'a Value, texts: &mut Vec<(Voice, &'a str)>) {
    let text = |part: &'a Value| part.get("text").and_then(Value::as_str);
    texts.extend(text(part).map(|text| (Voice::Text, text)));
    let thoughts = part
        .get("thinking")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    // Such thoughts have no field of their own in which they could be given back.
    texts.extend(
        thoughts
            .filter_map(text)
            .map(|text| (Voice::Reasoning(""), text)),
    );
}

/// Token counts; whatever is no count (negative, a text) is unknown.
#[derive(Debug, Deserialize)]
pub(super) struct Counts {
    #[serde(default)]
    prompt_tokens: Value,
    #[serde(default)]
    completion_tokens: Value,
    #[serde(default)]
    prompt_tokens_details: Value,
    #[serde(default)]
    completion_tokens_details: Value,
    #[serde(default)]
    prompt_cache_hit_tokens: Value,
}

impl Counts {
    pub(super) fn usage(&self) -> Usage {
        let detail = |details: &Value, name| details.get(name).and_then(Value::as_u64);
        let mut usage = Usage::default();
        usage.input_tokens = self.prompt_tokens.as_u64();
        usage.cached_input_tokens = detail(&self.prompt_tokens_details, "cached_tokens")
            .or_else(|| self.prompt_cache_hit_tokens.as_u64());
        usage.output_tokens = self.completion_tokens.as_u64();
        usage.reasoning_tokens = detail(&self.completion_tokens_details, "reasoning_tokens");
        usage
    }
}

//! The events of an answer, as far as they matter; all else in them is ignored.

use std::borrow::Cow;

use openvaala_protocol::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A text that is borrowed from the event wherever it has no escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What an event is, before the rest of it is read.
#[derive(Debug, Deserialize)]
pub(super) struct EventHead<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Option<Text<'a>>,
    /// An error instead of an event, as proxies send it.
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// Which item of the answer an event belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key<'a> {
    pub(super) index: Option<u64>,
    /// Empty if the event names none.
    pub(super) id: &'a str,
}

/// More text of an item (`…delta`), or all of it (`…done`).
#[derive(Debug, Deserialize)]
pub(super) struct TextEvent<'a> {
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    item_id: Option<Text<'a>>,
    /// Which text of the item, where it has several.
    #[serde(default)]
    content_index: Option<u64>,
    #[serde(default)]
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Text<'a>>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl TextEvent<'_> {
    pub(super) fn key(&self) -> Key<'_> {
        Key {
            index: self.output_index,
            id: self.item_id.as_ref().map_or("", Text::as_str),
        }
    }

    pub(super) fn place(&self) -> u64 {
        self.summary_index.or(self.content_index).unwrap_or(0)
    }

    pub(super) fn delta(&self) -> &str {
        self.delta.as_ref().map_or("", Text::as_str)
    }

    /// The whole text, in whichever field it stands.
    pub(super) fn whole(&self) -> Cow<'_, str> {
        match (&self.text, &self.refusal, self.arguments) {
            (Some(text), ..) | (None, Some(text), _) => Cow::Borrowed(text.as_str()),
            (None, None, arguments) => json_text(arguments),
        }
    }
}

/// An item that begins or is complete.
#[derive(Debug, Deserialize)]
pub(super) struct ItemEvent<'a> {
    #[serde(default)]
    pub(super) output_index: Option<u64>,
    #[serde(borrow)]
    pub(super) item: &'a RawValue,
}

/// The end of the answer.
#[derive(Debug, Deserialize)]
pub(super) struct EndEvent<'a> {
    #[serde(borrow, default)]
    pub(super) response: Option<Response<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    pub(super) error: Value,
    #[serde(default)]
    incomplete_details: Value,
}

impl Response<'_> {
    /// Why the answer is not complete, in the provider's word.
    pub(super) fn why_incomplete(&self) -> &str {
        let reason = self.incomplete_details.get("reason");
        reason.and_then(Value::as_str).unwrap_or("")
    }

    /// The tokens; whatever is no count (negative, a text) is unknown.
    pub(super) fn usage(&self) -> Usage {
        let count = |name| self.usage.get(name).and_then(Value::as_u64);
        let detail = |details, name| self.usage.get(details)?.get(name)?.as_u64();
        let mut usage = Usage::default();
        usage.input_tokens = count("input_tokens");
        usage.cached_input_tokens = detail("input_tokens_details", "cached_tokens");
        usage.output_tokens = count("output_tokens");
        usage.reasoning_tokens = detail("output_tokens_details", "reasoning_tokens");
        usage
    }
}

/// Arguments are JSON text within a string; with some services the object itself.
pub(super) fn json_text(raw: Option<&RawValue>) -> Cow<'_, str> {
    let raw = raw.map_or("null", RawValue::get);
    match serde_json::from_str::<Option<Text<'_>>>(raw) {
        Ok(text) => text.unwrap_or_default().0,
        Err(_) => Cow::Borrowed(raw),
    }
}

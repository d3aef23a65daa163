//! An item of the answer as the service words it: a message, a thought, or a call.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::Error;
use serde_json::value::RawValue;

use super::event::{Text, json_text};

/// What an item is; others (calls of tools that the service runs itself) were not asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
}

/// What kind of text an item has; an item may have several, each with texts of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Voice {
    /// What a message says, or its refusal.
    Text,
    /// The thoughts as the service sums them up.
    Summary,
    /// The thoughts themselves.
    Thought,
    /// The arguments of a call.
    Arguments,
}

impl Voice {
    /// The kind of item that speaks so.
    pub(super) const fn kind(self) -> ItemKind {
        match self {
            Self::Text => ItemKind::Message,
            Self::Summary | Self::Thought => ItemKind::Reasoning,
            Self::Arguments => ItemKind::Call,
        }
    }
}

#[derive(Debug, Deserialize)]
struct ItemHead<'a> {
    #[serde(borrow, default)]
    r#type: Option<Text<'a>>,
}

/// An item, begun or complete.
#[derive(Debug, Deserialize)]
pub(super) struct OutputItem<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<ItemText<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<ItemText<'a>>>,
    #[serde(borrow, default)]
    encrypted_content: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct ItemText<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
}

impl<'a> OutputItem<'a> {
    /// Reads an item; `None` for a kind that was not asked for.
    pub(super) fn read(raw: &'a RawValue) -> serde_json::Result<Option<(ItemKind, Self)>> {
        // serde would read a list as an item, too.
        if !raw.get().starts_with('{') {
            return Err(serde_json::Error::custom("an item is no object"));
        }
        let head: ItemHead<'_> = serde_json::from_str(raw.get())?;
        let kind = match head.r#type.as_ref().map_or("", Text::as_str) {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => return Ok(None),
        };
        Ok(Some((kind, serde_json::from_str(raw.get())?)))
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_ref().map_or("", Text::as_str)
    }

    /// What a result refers to: the id of the call, or of the item if the service gives no other.
    pub(super) fn call_id(&self) -> &str {
        let call_id = self.call_id.as_ref().map_or("", Text::as_str);
        if call_id.is_empty() {
            self.id()
        } else {
            call_id
        }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_ref().map_or("", Text::as_str)
    }

    /// Whether it says that the model or its provider refused.
    pub(super) fn is_refused(&self) -> bool {
        self.content.iter().flatten().any(|text| {
            text.refusal
                .as_ref()
                .is_some_and(|text| !text.as_str().is_empty())
        })
    }

    /// Whether a service that stores nothing can make anything of it when it comes back.
    pub(super) fn has_thoughts(&self) -> bool {
        self.encrypted_content
            .as_ref()
            .is_some_and(|text| !text.as_str().is_empty())
            || self.content.as_ref().is_some_and(|list| !list.is_empty())
    }

    /// All texts of the item, each with its place among those of its voice.
    pub(super) fn texts(&self, kind: ItemKind) -> Vec<(Voice, u64, Cow<'_, str>)> {
        match kind {
            ItemKind::Message => numbered(Voice::Text, self.content.as_deref()).collect(),
            ItemKind::Reasoning => numbered(Voice::Summary, self.summary.as_deref())
                .chain(numbered(Voice::Thought, self.content.as_deref()))
                .collect(),
            ItemKind::Call => vec![(Voice::Arguments, 0, json_text(self.arguments))],
        }
    }
}

fn numbered<'a>(
    voice: Voice,
    list: Option<&'a [ItemText<'a>]>,
) -> impl Iterator<Item = (Voice, u64, Cow<'a, str>)> {
    (0..)
        .zip(list.unwrap_or_default())
        .map(move |(place, piece)| {
            let text = piece.text.as_ref().or(piece.refusal.as_ref());
            (voice, place, Cow::Borrowed(text.map_or("", Text::as_str)))
        })
}

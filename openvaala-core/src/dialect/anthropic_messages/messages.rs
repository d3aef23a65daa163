//! The messages of a request, as strictly as this API wants them.
//!
//! They alternate and the user begins and ends; the results of tools stand first in the message behind their calls;
//! no text is blank; ids have no other characters than the API takes.

use std::borrow::Cow;

use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::item::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::tool_id::tool_id;
use crate::dialect::wire::NO_IMAGE;
use crate::model::{AssistantPart, Message, Messages, ModelError, ModelErrorKind, ToolAnswer};

/// What stands in the place of an image of another kind.
const WRONG_IMAGE: &str = "[an image of a kind that the model cannot see]";
/// What the user says if the model is the first to speak.
const BEGINNING: &str = "[the conversation begins here]";
/// What the user says if the model was the last to speak: newer models refuse to go on with their own words.
const CONTINUE: &str = "Continue.";
/// The kinds of images that the API takes.
const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// How many messages of the user have a mark for the cache.
const CACHED_MESSAGES: usize = 2;

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    User,
    Assistant,
}

/// All that one side says before the other goes on.
#[derive(Debug, Serialize)]
pub(super) struct WireMessage<'a> {
    pub(super) role: Role,
    pub(super) content: Vec<Block<'a>>,
}

/// The mark that everything up to here shall be cached.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    /// For as long as the provider keeps it by default: five minutes after the last use.
    pub(super) const EPHEMERAL: Self = Self {
        r#type: "ephemeral",
    };
}

/// A piece of a message. The mark is the last field, so that the bytes before it are the same with and without.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub(super) enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Self>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    /// A thought exactly as it came.
    #[serde(untagged)]
    Thinking(&'a RawValue),
}

#[derive(Debug, Serialize)]
pub(super) struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Block<'_> {
    const fn is_result(&self) -> bool {
        matches!(self, Self::ToolResult { .. })
    }

    const fn mark(&mut self) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => {
                *cache_control = Some(CacheControl::EPHEMERAL);
            }
            // Neither is ever the last block of a message of the user.
            Self::ToolUse { .. } | Self::Thinking(_) => {}
        }
    }
}

impl WireMessage<'_> {
    /// Whether the model thought before it spoke.
    pub(super) fn begins_with_thinking(&self) -> bool {
        matches!(self.content.first(), Some(Block::Thinking(_)))
    }

    /// Whether it brings the results of tools.
    pub(super) fn has_results(&self) -> bool {
        self.content.first().is_some_and(Block::is_result)
    }
}

/// The messages as the API wants them.
///
/// The last blocks of the last two messages of the user are marked for the cache. The last one is what the next
/// request finds again, where it is the last but one: so the mark that was written to is there once more, however
/// many blocks have come in between (the API looks back over 20 only).
///
/// # Errors
/// [`ModelErrorKind::BadRequest`] if the arguments of a call are no JSON object.
pub(super) fn messages(messages: &Messages) -> Result<Vec<WireMessage<'_>>, ModelError> {
    let mut wire = Vec::new();
    for message in messages {
        match message {
            Message::User(content) => {
                add(
                    &mut wire,
                    Role::User,
                    content.iter().filter_map(piece).collect(),
                );
            }
            Message::Assistant(parts) => {
                let blocks = parts.iter().filter_map(|part| spoken(part).transpose());
                add(
                    &mut wire,
                    Role::Assistant,
                    blocks.collect::<Result<_, _>>()?,
                );
            }
            Message::ToolResults(answers) => add_results(&mut wire, answers),
        }
    }
    if wire
        .last()
        .is_some_and(|message| message.role == Role::Assistant)
    {
        add(&mut wire, Role::User, vec![text(CONTINUE)]);
    }
    let of_user = wire
        .iter_mut()
        .rev()
        .filter(|message| message.role == Role::User);
    let last_blocks = of_user.filter_map(|message| message.content.last_mut());
    last_blocks.take(CACHED_MESSAGES).for_each(Block::mark);
    Ok(wire)
}

/// Adds blocks to what that side is saying.
fn add<'a>(wire: &mut Vec<WireMessage<'a>>, role: Role, blocks: Vec<Block<'a>>) {
    if blocks.is_empty() {
        return;
    }
    if wire.is_empty() && role == Role::Assistant {
        add(wire, Role::User, vec![text(BEGINNING)]);
    }
    match wire.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        _ => wire.push(WireMessage {
            role,
            content: blocks,
        }),
    }
}

/// Adds results, before whatever else the user says in that message.
fn add_results<'a>(wire: &mut Vec<WireMessage<'a>>, answers: &'a [ToolAnswer]) {
    let results = answers.iter().map(|answer| Block::ToolResult {
        tool_use_id: tool_id(&answer.call_id),
        content: answer.content.iter().filter_map(piece).collect(),
        is_error: answer.failed,
        cache_control: None,
    });
    match wire.last_mut() {
        Some(last) if last.role == Role::User => {
            let place = last
                .content
                .iter()
                .take_while(|block| block.is_result())
                .count();
            last.content.splice(place..place, results);
        }
        _ => add(wire, Role::User, results.collect()),
    }
}

const fn text(text: &str) -> Block<'_> {
    Block::Text {
        text,
        cache_control: None,
    }
}

/// A piece of content; `None` for a text with nothing in it, which the API refuses.
fn piece(content: &Content) -> Option<Block<'_>> {
    match content {
        Content::Text { text: said } => (!said.trim().is_empty()).then(|| text(said)),
        Content::Image {
            media_type,
            data: ImageData::Base64(data),
        } if IMAGE_TYPES.contains(&media_type.as_str()) => Some(Block::Image {
            source: ImageSource {
                r#type: "base64",
                media_type,
                data,
            },
            cache_control: None,
        }),
        Content::Image {
            data: ImageData::Base64(_),
            ..
        } => Some(text(WRONG_IMAGE)),
        _ => Some(text(NO_IMAGE)),
    }
}

fn spoken(part: &AssistantPart) -> Result<Option<Block<'_>>, ModelError> {
    Ok(match part {
        AssistantPart::Text(said) => (!said.trim().is_empty()).then(|| text(said)),
        AssistantPart::Reasoning { opaque, .. } => {
            is_thought(opaque).then_some(Block::Thinking(&opaque.data))
        }
        AssistantPart::ToolCall {
            id,
            name,
            arguments,
        } => Some(Block::ToolUse {
            id: tool_id(id),
            name,
            input: object(arguments).ok_or_else(|| {
                let message = format!("the arguments of the call {id:?} are no JSON object");
                ModelError::new(ModelErrorKind::BadRequest, message)
            })?,
        }),
    })
}

fn object(arguments: &str) -> Option<&RawValue> {
    let input: &RawValue = serde_json::from_str(arguments).ok()?;
    input.get().starts_with('{').then_some(input)
}

/// Whether it is a thought of this API, which it takes back.
fn is_thought(opaque: &Opaque) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case", tag = "type")]
    enum Thought {
        Thinking { signature: String },
        RedactedThinking {},
    }
    match serde_json::from_str(opaque.data.get()) {
        // Services that are only compatible do not sign, and the API refuses what is not signed.
        Ok(Thought::Thinking { signature }) => !signature.is_empty(),
        Ok(Thought::RedactedThinking {}) => true,
        Err(_) => false,
    }
}

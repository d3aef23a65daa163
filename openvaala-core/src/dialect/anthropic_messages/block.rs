//! One block of an answer while it grows.

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};

use super::event::{Delta, StartedBlock};
use crate::model::{ModelEvent, PartKind};

/// A block that has begun.
#[derive(Debug)]
pub(super) enum OpenBlock {
    /// Text, which becomes a part once there is some.
    Text { part: Option<u32> },
    /// A thought, which is given back as a whole.
    Thinking {
        part: u32,
        thinking: String,
        signature: String,
    },
    /// A thought that nobody may read.
    Redacted { part: u32, data: String },
    /// A tool that is asked for.
    ToolUse {
        part: u32,
        /// Arguments that came with the beginning; pieces win over them.
        input: String,
        arguments: String,
    },
    /// Something of a kind that nobody asked for.
    Skipped,
}

impl OpenBlock {
    /// Begins a block; all kinds but text are announced at once.
    pub(super) fn begin(
        start: StartedBlock<'_>,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) -> Self {
        match start.kind.as_str() {
            "text" => {
                let mut block = Self::Text { part: None };
                let text = start.text.unwrap_or_default();
                block.grow(&Delta::Text { text }, next_part, events);
                block
            }
            "thinking" => {
                let part = announce(PartKind::Reasoning, next_part, events);
                let thinking = start.thinking.unwrap_or_default();
                more(part, &thinking, events);
                Self::Thinking {
                    part,
                    thinking,
                    signature: start.signature.unwrap_or_default(),
                }
            }
            "redacted_thinking" => Self::Redacted {
                part: announce(PartKind::Reasoning, next_part, events),
                data: start.data.unwrap_or_default(),
            },
            "tool_use" => {
                let id = start.id.unwrap_or_default();
                let name = start.name.unwrap_or_default();
                Self::ToolUse {
                    part: announce(PartKind::ToolCall { id, name }, next_part, events),
                    input: start.input.map(whole_input).unwrap_or_default(),
                    arguments: String::new(),
                }
            }
            _ => Self::Skipped,
        }
    }

    /// Adds to the block; `false` if that is nothing that such a block could have.
    pub(super) fn grow(
        &mut self,
        delta: &Delta,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) -> bool {
        match (self, delta) {
            (Self::Text { part }, Delta::Text { text }) => {
                if !text.is_empty() {
                    let part =
                        *part.get_or_insert_with(|| announce(PartKind::Text, next_part, events));
                    more(part, text, events);
                }
            }
            (Self::Thinking { part, thinking, .. }, Delta::Thinking { thinking: text }) => {
                thinking.push_str(text);
                more(*part, text, events);
            }
            (Self::Thinking { signature, .. }, Delta::Signature { signature: text }) => {
                signature.push_str(text);
            }
            (
                Self::ToolUse {
                    part, arguments, ..
                },
                Delta::InputJson { partial_json },
            ) => {
                arguments.push_str(partial_json);
                more(*part, partial_json, events);
            }
            (Self::Skipped, _) | (_, Delta::Other) => {}
            _ => return false,
        }
        true
    }

    /// Ends the block; `true` if it is a call whose arguments stop in the middle.
    pub(super) fn end(self, events: &mut Vec<ModelEvent>) -> bool {
        let mut is_cut = false;
        let (part, opaque) = match self {
            Self::Text { part: Some(part) } => (part, None),
            Self::Text { part: None } | Self::Skipped => return false,
            Self::Thinking {
                part,
                thinking,
                signature,
            } => (part, thought(&thinking, &signature)),
            Self::Redacted { part, data } => {
                (part, opaque(&Thought::RedactedThinking { data: &data }))
            }
            Self::ToolUse {
                part,
                input,
                arguments,
            } => {
                if arguments.is_empty() {
                    more(part, &input, events);
                }
                is_cut = stops_in_the_middle(&arguments);
                (part, None)
            }
        };
        events.push(ModelEvent::Ended { part, opaque });
        is_cut
    }

    /// How many bytes are kept for it.
    pub(super) const fn bytes(&self) -> usize {
        match self {
            Self::Text { .. } | Self::Skipped => 0,
            Self::Thinking {
                thinking,
                signature,
                ..
            } => thinking.len() + signature.len(),
            Self::Redacted { data, .. } => data.len(),
            Self::ToolUse {
                input, arguments, ..
            } => input.len() + arguments.len(),
        }
    }
}

fn announce(kind: PartKind, next_part: &mut u32, events: &mut Vec<ModelEvent>) -> u32 {
    let part = *next_part;
    *next_part += 1;
    events.push(ModelEvent::Started { part, kind });
    part
}

fn more(part: u32, text: &str, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        let text = text.to_owned();
        events.push(ModelEvent::Delta { part, text });
    }
}

/// Arguments that are there from the beginning; an empty object only announces those that follow.
fn whole_input(input: &RawValue) -> String {
    let is_announcement = input.get().split_whitespace().collect::<String>() == "{}";
    let is_object = input.get().starts_with('{') && !is_announcement;
    if is_object {
        input.get().to_owned()
    } else {
        String::new()
    }
}

fn stops_in_the_middle(arguments: &str) -> bool {
    let read = serde_json::from_str::<IgnoredAny>(arguments);
    !arguments.trim().is_empty() && read.is_err_and(|error| error.is_eof())
}

/// A thought in the shape in which it came, and in which it goes back.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum Thought<'a> {
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
}

/// The thought if it is signed: without that nobody takes it back.
fn thought(thinking: &str, signature: &str) -> Option<Box<RawValue>> {
    if signature.is_empty() {
        return None;
    }
    opaque(&Thought::Thinking {
        thinking,
        signature,
    })
}

fn opaque(thought: &Thought<'_>) -> Option<Box<RawValue>> {
    to_raw_value(thought).ok()
}

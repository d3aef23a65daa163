//! The body of a request. Its messages are the same bytes in every request that they are part of.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::{Content, ImageData, joined_text};
use openvaala_protocol::item::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dialect::wire::{NO_IMAGE, data_url, encode};
use crate::model::{AssistantPart, Message, ModelError, ModelRequest, ToolAnswer};

/// The request as JSON.
pub(super) fn body(request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
    let body = Body {
        model: &request.model,
        messages: messages(request),
        tools: request.tools.iter().map(Tool::new).collect(),
        reasoning_effort: request.effort.as_deref(),
        response_format: request
            .output_schema
            .as_ref()
            .map(|schema| ResponseFormat::new(schema.as_raw())),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
    };
    encode(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a RawValue,
}

impl<'a> ResponseFormat<'a> {
    const fn new(schema: &'a RawValue) -> Self {
        Self {
            r#type: "json_schema",
            json_schema: JsonSchema {
                name: "answer",
                strict: true,
                schema,
            },
        }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> Tool<'a> {
    fn new(spec: &'a ToolSpec) -> Self {
        let ToolSpec {
            name,
            description,
            parameters,
            ..
        } = spec;
        Self {
            r#type: "function",
            function: Function {
                name,
                description,
                parameters,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "role")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: WireContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// Plain text wherever that is enough: not every server understands the list of parts.
#[derive(Serialize)]
#[serde(untagged)]
enum WireContent<'a> {
    Text(String),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum WirePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn messages(request: &ModelRequest) -> Vec<WireMessage<'_>> {
    let mut messages = Vec::new();
    if !request.instructions.is_empty() {
        messages.push(WireMessage::System {
            content: &request.instructions,
        });
    }
    for message in &request.messages {
        match message {
            Message::User(content) => messages.push(WireMessage::User {
                content: wire(content),
            }),
            Message::Assistant(parts) => messages.push(assistant(parts)),
            Message::ToolResults(answers) => tool_results(answers, &mut messages),
        }
    }
    messages
}

fn wire(content: &[Content]) -> WireContent<'_> {
    let is_text = content.iter().all(|piece| piece.as_text().is_some());
    if is_text {
        WireContent::Text(joined_text(content))
    } else {
        WireContent::Parts(content.iter().map(part).collect())
    }
}

fn part(content: &Content) -> WirePart<'_> {
    match content {
        Content::Text { text } => WirePart::Text { text },
        Content::Image {
            media_type,
            data: ImageData::Base64(base64),
        } => {
            let url = data_url(media_type, base64);
            WirePart::ImageUrl {
                image_url: ImageUrl { url },
            }
        }
        _ => WirePart::Text { text: NO_IMAGE },
    }
}

fn assistant(parts: &[AssistantPart]) -> WireMessage<'_> {
    let mut texts = Vec::new();
    let mut tool_calls = Vec::new();
    let (mut reasoning_content, mut reasoning) = (None, None);
    for part in parts {
        match part {
            AssistantPart::Text(text) => texts.push(text.as_str()),
            AssistantPart::Reasoning { text, opaque } => match field_of(opaque) {
                Some(Field::ReasoningContent) => append(&mut reasoning_content, text),
                Some(Field::Reasoning) => append(&mut reasoning, text),
                None => {}
            },
            AssistantPart::ToolCall {
                id,
                name,
                arguments,
            } => {
                let function = CalledFunction { name, arguments };
                tool_calls.push(WireCall {
                    id,
                    r#type: "function",
                    function,
                });
            }
        }
    }
    let content = (!texts.is_empty()).then(|| texts.join("\n"));
    WireMessage::Assistant {
        content,
        reasoning_content,
        reasoning,
        tool_calls,
    }
}

/// Where thoughts came from, and where they go back to.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Field {
    ReasoningContent,
    Reasoning,
}

fn field_of(opaque: &Opaque) -> Option<Field> {
    #[derive(Deserialize)]
    struct Note {
        field: Field,
    }
    serde_json::from_str::<Note>(opaque.data.get())
        .ok()
        .map(|note| note.field)
}

fn append(thoughts: &mut Option<String>, text: &str) {
    match thoughts {
        Some(thoughts) => {
            thoughts.push('\n');
            thoughts.push_str(text);
        }
        None => *thoughts = Some(text.to_owned()),
    }
}

/// Writes the results; their images follow in a message of the user, since a tool message takes text only.
fn tool_results<'a>(answers: &'a [ToolAnswer], messages: &mut Vec<WireMessage<'a>>) {
    let mut images = Vec::new();
    for answer in answers {
        let texts = answer.content.iter().map(|piece| match piece {
            Content::Text { text } => text.as_str(),
            Content::Image {
                data: ImageData::Base64(_),
                ..
            } => {
                images.push(part(piece));
                "[an image: see the next message of the user]"
            }
            _ => NO_IMAGE,
        });
        let content = texts.collect::<Vec<_>>().join("\n");
        messages.push(WireMessage::Tool {
            tool_call_id: &answer.call_id,
            content,
        });
    }
    if !images.is_empty() {
        images.insert(
            0,
            WirePart::Text {
                text: "The images of the tool results, in their order:",
            },
        );
        messages.push(WireMessage::User {
            content: WireContent::Parts(images),
        });
    }
}

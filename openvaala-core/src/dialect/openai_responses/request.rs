//! The body of a request. Its input stands last, so that a request begins with the very bytes of the one before.
//!
//! Items carry no ids, except for thoughts: `store` is false, so the service knows none of them. A message or call
//! with an id is held against the thought that it once followed, and refused if that one is not there any more;
//! without an id it is taken as it is. A thought goes back as the service gave it, with its id: its description
//! asks for one, and its encrypted content makes it whole without a look-up.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::item::Opaque;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::dialect::wire::{NO_IMAGE, data_url, encode};
use crate::model::{AssistantPart, Message, ModelError, ModelRequest, ToolAnswer};

/// The request as JSON.
pub(super) fn body(request: &ModelRequest) -> Result<Vec<u8>, ModelError> {
    let instructions = request.instructions.as_str();
    let body = Body {
        model: &request.model,
        instructions: (!instructions.is_empty()).then_some(instructions),
        tools: request.tools.iter().map(Tool::new).collect(),
        parallel_tool_calls: true,
        reasoning: request.effort.as_deref().map(Reasoning::new),
        text: request
            .output_schema
            .as_ref()
            .map(|schema| TextFormat::new(schema.as_raw())),
        include: ["reasoning.encrypted_content"],
        store: false,
        stream: true,
        input: input(request),
    };
    encode(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    parallel_tool_calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextFormat<'a>>,
    include: [&'static str; 1],
    store: bool,
    stream: bool,
    input: Vec<InputItem<'a>>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    summary: &'static str,
}

impl<'a> Reasoning<'a> {
    const fn new(effort: &'a str) -> Self {
        Self {
            effort,
            summary: "auto",
        }
    }
}

#[derive(Serialize)]
struct TextFormat<'a> {
    format: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: &'a RawValue,
}

impl<'a> TextFormat<'a> {
    const fn new(schema: &'a RawValue) -> Self {
        Self {
            format: JsonSchema {
                r#type: "json_schema",
                name: "answer",
                strict: true,
                schema,
            },
        }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(spec: &'a ToolSpec) -> Self {
        Self {
            r#type: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.parameters,
            // Strict schemas allow no optional parameter.
            strict: false,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'a> {
    Typed(TypedItem<'a>),
    /// As the service gave it.
    Reasoning(&'a RawValue),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum TypedItem<'a> {
    Message {
        role: &'static str,
        content: Vec<Piece<'a>>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum Piece<'a> {
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        image_url: String,
        detail: &'static str,
    },
}

/// Plain text wherever that is enough: not every server understands the list of pieces.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Pieces(Vec<Piece<'a>>),
}

fn input(request: &ModelRequest) -> Vec<InputItem<'_>> {
    let mut items = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(content) => {
                let content = content.iter().map(piece).collect();
                let role = "user";
                items.push(InputItem::Typed(TypedItem::Message { role, content }));
            }
            Message::Assistant(parts) => items.extend(parts.iter().filter_map(said)),
            Message::ToolResults(answers) => items.extend(answers.iter().map(result)),
        }
    }
    items
}

fn piece(content: &Content) -> Piece<'_> {
    match content {
        Content::Text { text } => Piece::InputText { text },
        Content::Image {
            media_type,
            data: ImageData::Base64(base64),
        } => Piece::InputImage {
            image_url: data_url(media_type, base64),
            detail: "auto",
        },
        _ => Piece::InputText { text: NO_IMAGE },
    }
}

fn said(part: &AssistantPart) -> Option<InputItem<'_>> {
    match part {
        AssistantPart::Text(text) => Some(InputItem::Typed(TypedItem::Message {
            role: "assistant",
            content: vec![Piece::OutputText { text }],
        })),
        AssistantPart::Reasoning { opaque, .. } => {
            is_reasoning_item(opaque).then_some(InputItem::Reasoning(&opaque.data))
        }
        AssistantPart::ToolCall {
            id,
            name,
            arguments,
        } => Some(InputItem::Typed(TypedItem::FunctionCall {
            call_id: id,
            name,
            arguments,
        })),
    }
}

/// Whether it came from this API: a provider may have spoken another when the conversation began.
fn is_reasoning_item(opaque: &Opaque) -> bool {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
    }
    serde_json::from_str::<Head>(opaque.data.get()).is_ok_and(|head| head.r#type == "reasoning")
}

fn result(answer: &ToolAnswer) -> InputItem<'_> {
    let has_image = answer.content.iter().any(|content| {
        matches!(
            content,
            Content::Image {
                data: ImageData::Base64(_),
                ..
            }
        )
    });
    let output = if has_image {
        Output::Pieces(answer.content.iter().map(piece).collect())
    } else {
        let texts = answer
            .content
            .iter()
            .map(|content| content.as_text().unwrap_or(NO_IMAGE));
        Output::Text(texts.collect::<Vec<_>>().join("\n"))
    };
    InputItem::Typed(TypedItem::FunctionCallOutput {
        call_id: &answer.call_id,
        output,
    })
}

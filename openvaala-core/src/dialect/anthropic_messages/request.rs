//! The body of a request.
//!
//! The API caches what stands before a mark, in the order tools, system, messages, and compares it byte for byte
//! without the marks. So everything that is the same in all requests of a conversation comes first; a message is
//! written in the same way in every request that it is part of; and a mark is the last field of its block, so that
//! a request without the marks of its messages is the beginning of the next one. There are at most three marks (the
//! API takes four): behind the system prompt, and behind the last two messages of the user.

use openvaala_executor::tool::ToolSpec;
use serde::Serialize;
use serde_json::value::RawValue;

use super::messages::{CacheControl, WireMessage, messages};
use crate::dialect::wire::encode;
use crate::model::{ModelError, ModelErrorKind, ModelRequest, OutputSchema};

/// The smallest budget of thinking tokens that the API takes.
const LEAST_BUDGET: u32 = 1_024;

/// The request as JSON.
///
/// # Errors
/// [`ModelErrorKind::BadRequest`] if the effort is a number that cannot be a budget, or a call has no JSON object.
pub(super) fn body(request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, ModelError> {
    let effort = request
        .effort
        .as_deref()
        .map(|effort| Effort::new(effort, max_tokens));
    let effort = effort.transpose()?;
    let messages = messages(&request.messages)?;
    let body = Body {
        model: &request.model,
        max_tokens,
        stream: true,
        thinking: thinking(&request.model, effort, &messages),
        output_config: OutputConfig::new(effort, request.output_schema.as_ref()),
        tools: request.tools.iter().map(Tool::new).collect(),
        system: System::new(&request.instructions),
        messages,
    };
    encode(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
    messages: Vec<WireMessage<'a>>,
}

/// How hard the model shall think.
#[derive(Clone, Copy)]
enum Effort<'a> {
    /// A word, for models that decide by themselves how long they think.
    Level(&'a str),
    /// How many tokens a model of before Claude 4.6 may think.
    Budget(u32),
}

impl<'a> Effort<'a> {
    fn new(effort: &'a str, max_tokens: u32) -> Result<Self, ModelError> {
        if !effort.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Level(effort));
        }
        match effort.parse() {
            Ok(budget) if budget >= LEAST_BUDGET && budget < max_tokens => Ok(Self::Budget(budget)),
            _ => {
                let message = format!(
                    "the effort {effort:?} is no budget of thinking tokens: expected at least {LEAST_BUDGET} and \
                     less than max_tokens ({max_tokens}), or a word such as low, medium or high"
                );
                Err(ModelError::new(ModelErrorKind::BadRequest, message))
            }
        }
    }
}

fn thinking(
    model: &str,
    effort: Option<Effort<'_>>,
    messages: &[WireMessage<'_>],
) -> Option<Thinking> {
    match effort {
        Some(Effort::Budget(budget_tokens)) => {
            may_think(messages).then_some(Thinking::Enabled { budget_tokens })
        }
        Some(Effort::Level(_)) => Some(Thinking::SHOWN),
        None => thinks_by_itself(model).then_some(Thinking::SHOWN),
    }
}

/// Whether a model thinks although nobody asks it to: every Claude from 5 on, as in `claude-sonnet-5-5`.
///
/// Such a model also writes what it says between its tool calls as a thought, and shows neither unless it is told to.
/// To models before that the same words would mean something else.
fn thinks_by_itself(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else {
        return false;
    };
    let mut numbers = name.split(|c: char| !c.is_ascii_digit());
    let generation = numbers.find(|number| !number.is_empty());
    // A longer number is the date of a model without a generation.
    generation.is_some_and(|number| {
        number.len() <= 2 && number.parse::<u8>().is_ok_and(|number| number >= 5)
    })
}

/// Whether a model with a budget may think now: not while it works with results that it asked for without a thought,
/// as happens when it takes over from another model. The API refuses that.
fn may_think(messages: &[WireMessage<'_>]) -> bool {
    match messages {
        [.., asked, last] => !last.has_results() || asked.begins_with_thinking(),
        _ => true,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
enum Thinking {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u32 },
}

impl Thinking {
    /// As long as the model finds right, and what it thought is shown: newer models keep it to themselves otherwise.
    const SHOWN: Self = Self::Adaptive {
        display: "summarized",
    };
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a RawValue,
}

impl<'a> OutputConfig<'a> {
    fn new(effort: Option<Effort<'a>>, schema: Option<&'a OutputSchema>) -> Option<Self> {
        let effort = match effort {
            Some(Effort::Level(level)) => Some(level),
            Some(Effort::Budget(_)) | None => None,
        };
        let format = schema.map(|schema| Format {
            r#type: "json_schema",
            schema: schema.as_raw(),
        });
        (effort.is_some() || format.is_some()).then_some(Self { effort, format })
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
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
            name,
            description,
            input_schema: parameters,
        }
    }
}

#[derive(Serialize)]
struct System<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

impl<'a> System<'a> {
    fn new(text: &'a str) -> Option<[Self; 1]> {
        let system = Self {
            r#type: "text",
            text,
            cache_control: CacheControl::EPHEMERAL,
        };
        (!text.trim().is_empty()).then_some([system])
    }
}

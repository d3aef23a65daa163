//! A script in the place of a model, so that everything around a model can be tried without one.

mod listing;
mod summary;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::joined_text;
use openvaala_protocol::usage::Usage;
use serde_json::{Map, Value, json};

use self::listing::Listing;
use crate::model::{
    AssistantPart, Message, Messages, ModelError, ModelEvent, ModelProvider, ModelRequest,
    PartKind, StopReason, ToolAnswer,
};

/// How many lines of a file the script reads.
const LINES: u32 = 60;

/// A deterministic script, no AI: it lists the folder, reads the most telling file of it and sums up.
///
/// It only reads. It uses the tools `bash` and `read_file`, and says so where one is not offered. Every message
/// of the user starts the script anew. Token counts are unknown, since there are none.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct DemoProvider {}

impl DemoProvider {
    /// The script.
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }
}

#[async_trait]
impl ModelProvider for DemoProvider {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let answer = answer(&request);
        Ok(stream::iter(events(answer)).map(Ok).boxed())
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

/// What the script says, and the tool that it then asks for.
#[derive(Debug)]
struct Answer {
    text: String,
    call: Option<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool: &'static str,
    arguments: String,
}

impl Answer {
    const fn last(text: String) -> Self {
        Self { text, call: None }
    }
}

fn answer(request: &ModelRequest) -> Answer {
    let done = done_since_last_user_message(&request.messages);
    let script = Script {
        tools: &request.tools,
        number: request.messages.len(),
    };
    match done.as_slice() {
        [] => script.list(),
        [listing] if listing.result.failed => Answer::last(summary::no_listing(&listing.text())),
        [listing] => script.look_closer(&Listing::parse(&listing.text())),
        [listing, second, ..] => {
            let text = second.text();
            let path = second.path();
            let found = (!second.result.failed).then_some(text.as_str());
            Answer::last(summary::summary(
                &Listing::parse(&listing.text()),
                path.as_deref(),
                found,
            ))
        }
    }
}

/// A call with its result.
struct Done<'a> {
    arguments: &'a str,
    result: &'a ToolAnswer,
}

impl Done<'_> {
    fn text(&self) -> String {
        joined_text(&self.result.content)
    }

    /// The file that was read; `None` if it was a command.
    fn path(&self) -> Option<String> {
        let arguments: Value = serde_json::from_str(self.arguments).ok()?;
        Some(arguments.get("path")?.as_str()?.to_owned())
    }
}

fn done_since_last_user_message(messages: &Messages) -> Vec<Done<'_>> {
    let last_user = messages
        .iter()
        .rposition(|message| matches!(message, Message::User(_)));
    let before = last_user.map_or(0, |place| place + 1);
    let recent: Vec<&Message> = messages.iter().skip(before).collect();
    let arguments_of = |wanted: &str| {
        recent.iter().find_map(|message| match message {
            Message::Assistant(parts) => parts.iter().find_map(|part| match part {
                AssistantPart::ToolCall { id, arguments, .. } if id == wanted => {
                    Some(arguments.as_str())
                }
                _ => None,
            }),
            _ => None,
        })
    };
    let results = recent.iter().filter_map(|message| match message {
        Message::ToolResults(results) => Some(results),
        _ => None,
    });
    results
        .flatten()
        .map(|result| Done {
            arguments: arguments_of(&result.call_id).unwrap_or("{}"),
            result,
        })
        .collect()
}

struct Script<'a> {
    tools: &'a [ToolSpec],
    /// The number of messages so far: tells this request's call from those of others.
    number: usize,
}

impl Script<'_> {
    fn list(&self) -> Answer {
        match self.call("bash", &[("command", json!("ls -1Ap"))]) {
            Some(call) => {
                let text = "I will look at what is in this folder first.".to_owned();
                Answer {
                    text,
                    call: Some(call),
                }
            }
            None => Answer::last(summary::no_tool("bash", "look at the folder")),
        }
    }

    fn look_closer(&self, listing: &Listing) -> Answer {
        if let Some(file) = listing.best_file() {
            let arguments = [("path", json!(file)), ("limit", json!(LINES))];
            return match self.call("read_file", &arguments) {
                Some(call) => {
                    let text = format!("Now I will read {file}.");
                    Answer {
                        text,
                        call: Some(call),
                    }
                }
                None => {
                    let cannot = summary::no_tool("read_file", &format!("read {file}"));
                    Answer::last(format!("{}\n\n{cannot}", listing.in_words("This folder")))
                }
            };
        }
        let text = "There is no file here that I could read. Let me see where this is.".to_owned();
        match self.call("bash", &[("command", json!("pwd"))]) {
            Some(call) => Answer {
                text,
                call: Some(call),
            },
            None => Answer::last(summary::summary(listing, None, None)),
        }
    }

    /// A call of that tool, if it is offered.
    fn call(&self, tool: &'static str, arguments: &[(&str, Value)]) -> Option<Call> {
        let spec = self.tools.iter().find(|spec| spec.name == tool)?;
        let mut all: Map<String, Value> = arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        if let Some(executor) = first_executor(spec) {
            all.insert("executor".to_owned(), executor);
        }
        let id = format!("demo_{}", self.number);
        Some(Call {
            id,
            tool,
            arguments: Value::Object(all).to_string(),
        })
    }
}

/// The first executor that the tool can run on, if it wants to be told.
fn first_executor(spec: &ToolSpec) -> Option<Value> {
    let schema: Value = serde_json::from_str(spec.parameters.get()).ok()?;
    let required = schema.get("required")?.as_array()?;
    required
        .iter()
        .any(|name| name == "executor")
        .then_some(())?;
    schema.pointer("/properties/executor/enum/0").cloned()
}

/// The answer word by word, as a model would send it.
fn events(answer: Answer) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Started {
        part: 0,
        kind: PartKind::Text,
    }];
    let words = answer.text.split_inclusive([' ', '\n']);
    events.extend(words.map(|word| ModelEvent::Delta {
        part: 0,
        text: word.to_owned(),
    }));
    events.push(ModelEvent::Ended {
        part: 0,
        opaque: None,
    });
    if let Some(Call {
        id,
        tool,
        arguments,
    }) = answer.call
    {
        let kind = PartKind::ToolCall {
            id,
            name: tool.to_owned(),
        };
        events.push(ModelEvent::Started { part: 1, kind });
        events.push(ModelEvent::Delta {
            part: 1,
            text: arguments,
        });
        events.push(ModelEvent::Ended {
            part: 1,
            opaque: None,
        });
    }
    events.push(ModelEvent::Finished {
        reason: StopReason::Done,
        usage: Usage::default(),
    });
    events
}

//! A model that answers, hangs, breaks and asks for tools as the dice say, and looks at what it is asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use openvaala_core::ModelProvider;
use openvaala_core::model::{
    AssistantPart, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, PartKind,
    StopReason,
};
use openvaala_core::protocol::usage::Usage;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::Shared;

type Events = BoxStream<'static, Result<ModelEvent, ModelError>>;

#[derive(Debug)]
pub(crate) struct Model(pub(crate) Arc<Shared>);

#[async_trait]
impl ModelProvider for Model {
    async fn stream(&self, request: ModelRequest) -> Result<Events, ModelError> {
        if let Err(wrong) = check_history(&request) {
            self.0.known().wrong.push(wrong);
        }
        if self.0.known().is_calm {
            return Ok(said(
                text(0, "done", true),
                Some(finished(StopReason::Done)),
            ));
        }
        sleep(Duration::from_millis(self.0.below(400))).await;
        let failed = |kind, what: &str| Err(ModelError::new(kind, what));
        match self.0.below(100) {
            0..40 => Ok(said(self.words(), Some(finished(StopReason::Done)))),
            40..68 => Ok(said(self.calls(), Some(finished(StopReason::Done)))),
            68..72 => failed(ModelErrorKind::Unavailable, "try again"),
            72..75 => failed(ModelErrorKind::BadRequest, "not like that"),
            75..80 => {
                let reset = ModelError::new(ModelErrorKind::Connection, "reset");
                let broken = stream::once(async { Err(reset) });
                Ok(said(self.words(), None).chain(broken).boxed())
            }
            80..86 => Ok(said(self.words(), None).chain(stream::pending()).boxed()),
            86..89 => Ok(said(self.calls(), None).chain(stream::pending()).boxed()),
            89..92 => Ok(said(self.words(), None)),
            92..95 => Ok(said(self.words(), Some(finished(StopReason::Refused)))),
            95..98 => Ok(said(self.calls(), Some(finished(StopReason::Length)))),
            _ => futures::future::pending().await,
        }
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

impl Model {
    fn words(&self) -> Vec<ModelEvent> {
        let words = "word ".repeat(1 + usize::try_from(self.0.below(5)).unwrap());
        text(0, &words, self.0.percent(80))
    }

    /// Calls with numbers of their own; some for a tool that is not there, some without an id.
    fn calls(&self) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        for part in 0..1 + u32::try_from(self.0.below(3)).unwrap() {
            let number = {
                let mut known = self.0.known();
                known.calls += 1;
                known.calls
            };
            let (name, arguments) = self.call(number);
            let id = if self.0.percent(90) {
                format!("call-{number}")
            } else {
                String::new()
            };
            let kind = PartKind::ToolCall {
                id,
                name: name.to_owned(),
            };
            events.push(ModelEvent::Started { part, kind });
            events.push(ModelEvent::Delta {
                part,
                text: arguments.to_string(),
            });
            events.push(ModelEvent::Ended { part, opaque: None });
        }
        events
    }
}

impl Model {
    /// What is called, most often the tool that works; agents are started in all manners and dealt with by name.
    fn call(&self, number: u64) -> (&'static str, Value) {
        let agent = format!("a{}", 1 + self.0.below(number));
        match self.0.below(100) {
            0..24 => {
                let name = format!("a{number}");
                let context = ["none", "all", "summary"][usize::try_from(self.0.below(3)).unwrap()];
                let is_in_background = self.0.percent(60);
                let call = json!({ "name": name, "task": "go on", "background": is_in_background, "context": context });
                ("spawn_agent", call)
            }
            24..30 => (
                "wait_agent",
                json!({ "timeout_seconds": 1 + self.0.below(20) }),
            ),
            30..34 => {
                let mode = if self.0.percent(50) { "steer" } else { "queue" };
                (
                    "send_message",
                    json!({ "agent": agent, "text": "go on", "mode": mode }),
                )
            }
            34..36 => ("close_agent", json!({ "agent": agent })),
            36..38 => ("interrupt_agent", json!({ "agent": agent })),
            38..40 => ("list_agents", json!({})),
            40..42 => (
                "plan",
                json!({ "steps": [{ "text": "work", "state": "running" }] }),
            ),
            42..46 => ("unknown", json!({ "number": number })),
            _ => ("work", json!({ "number": number })),
        }
    }
}

fn text(part: u32, text: &str, ended: bool) -> Vec<ModelEvent> {
    let kind = PartKind::Text;
    let mut events = vec![ModelEvent::Started { part, kind }];
    let words = text.split_inclusive(' ').map(str::to_owned);
    events.extend(words.map(|text| ModelEvent::Delta { part, text }));
    if ended {
        events.push(ModelEvent::Ended { part, opaque: None });
    }
    events
}

fn finished(reason: StopReason) -> ModelEvent {
    ModelEvent::Finished {
        reason,
        usage: Usage::default(),
    }
}

/// An answer whose pieces come one after the other.
fn said(parts: Vec<ModelEvent>, last: Option<ModelEvent>) -> Events {
    let events = parts.into_iter().chain(last);
    stream::iter(events)
        .then(|event| async {
            sleep(Duration::from_millis(20)).await;
            Ok(event)
        })
        .boxed()
}

/// What every dialect asks of a history: each call is answered by the message after it, once and in order, and nothing else is answered.
fn check_history(request: &ModelRequest) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    for message in &request.messages {
        match message {
            Message::ToolResults(answers) => {
                let answered: Vec<&String> = answers.iter().map(|answer| &answer.call_id).collect();
                if answered != open.iter().collect::<Vec<_>>() {
                    return Err(format!("calls {open:?} are answered by {answered:?}"));
                }
                open.clear();
            }
            _ if !open.is_empty() => {
                return Err(format!(
                    "calls {open:?} have no answer: {:?}",
                    request.messages
                ));
            }
            Message::Assistant(parts) => {
                for part in parts {
                    let AssistantPart::ToolCall { id, arguments, .. } = part else {
                        continue;
                    };
                    if id.is_empty() || !ids.insert(id.clone()) {
                        return Err(format!("the id {id:?} is none, or used twice"));
                    }
                    if !arguments.starts_with('{') {
                        return Err(format!("{arguments:?} is no object"));
                    }
                    open.push(id.clone());
                }
            }
            _ => {}
        }
    }
    match request.messages.last() {
        Some(Message::User(_) | Message::ToolResults(_)) => Ok(()),
        other => Err(format!("a request ends with {other:?}")),
    }
}

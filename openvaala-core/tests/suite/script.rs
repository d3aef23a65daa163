//! A model that follows a script, and helpers to drive a conversation to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::model::{
    ModelError, ModelErrorKind, ModelEvent, ModelRequest, PartKind, StopReason,
};
use openvaala_core::protocol::conversation::Turn;
use openvaala_core::protocol::event::Entry;
use openvaala_core::protocol::id::SessionId;
use openvaala_core::protocol::item::{Item, ItemKind};
use openvaala_core::protocol::rpc::params::session::ItemsOrder;
use openvaala_core::protocol::usage::Usage;
use openvaala_core::{
    ConversationHandle, FeedEvent, ItemsQuery, ModelProvider, RetryPolicy, Runtime, RuntimeBuilder,
    Subscription,
};
use tokio::sync::mpsc;

/// What the model does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Says that, word by word.
    Say(&'static str),
    /// Asks for those tools, all at once.
    Call(Vec<(&'static str, String)>),
    /// Says that, and then nothing any more.
    Stall(&'static str),
    /// Says that, and then the connection breaks.
    Break(&'static str),
    /// Fails before it has said anything: with that status, and how long to wait in milliseconds.
    Fail(u16, u64),
    /// Refuses.
    Refuse,
    /// Has a fault.
    Panic,
    /// Says that, after so many tokens.
    SayAfter(u64, &'static str),
    /// Asks for a tool, after so many tokens.
    CallAfter(u64, (&'static str, String)),
    /// Says that the request is too long.
    TooLong,
}

/// A model that does the steps of its script one after the other, and then says "done" for ever.
#[derive(Debug)]
pub(crate) struct Script {
    steps: Vec<Step>,
    next: AtomicUsize,
    requests: mpsc::UnboundedSender<ModelRequest>,
}

impl Script {
    pub(crate) fn new(steps: Vec<Step>) -> (Arc<Self>, mpsc::UnboundedReceiver<ModelRequest>) {
        let (requests, seen) = mpsc::unbounded_channel();
        (
            Arc::new(Self {
                steps,
                next: AtomicUsize::new(0),
                requests,
            }),
            seen,
        )
    }
}

#[async_trait]
impl ModelProvider for Script {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let _ = self.requests.send(request);
        let step = self.next.fetch_add(1, Ordering::SeqCst);
        let step = self.steps.get(step).cloned();
        step.unwrap_or(Step::Say("done")).act()
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

impl Step {
    /// Does it.
    pub(crate) fn act(
        self,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let finished = |reason| ModelEvent::Finished {
            reason,
            usage: Usage::default(),
        };
        let broken = || ModelError::new(ModelErrorKind::Connection, "connection reset");
        Ok(match self {
            Self::Say(text) => events(text_part(text, true), finished(StopReason::Done)),
            Self::Call(calls) => events(call_parts(calls), finished(StopReason::Done)),
            Self::Stall(text) => {
                let said = stream::iter(text_part(text, false)).map(Ok);
                said.chain(stream::pending()).boxed()
            }
            Self::Break(text) => {
                let said = stream::iter(text_part(text, false)).map(Ok);
                said.chain(stream::once(async move { Err(broken()) }))
                    .boxed()
            }
            Self::Fail(status, wait) => {
                let kind = match status {
                    429 => ModelErrorKind::RateLimited,
                    500.. => ModelErrorKind::Unavailable,
                    _ => ModelErrorKind::BadRequest,
                };
                let wait = (wait > 0).then(|| Duration::from_millis(wait));
                return Err(ModelError::new(kind, format!("HTTP {status}"))
                    .with_status(status)
                    .with_retry_after(wait));
            }
            Self::Refuse => events(text_part("no", true), finished(StopReason::Refused)),
            Self::Panic => panic!("the script has a fault"),
            Self::SayAfter(tokens, text) => events(text_part(text, true), finished_after(tokens)),
            Self::CallAfter(tokens, call) => events(call_parts(vec![call]), finished_after(tokens)),
            Self::TooLong => {
                let kind = ModelErrorKind::ContextTooLong;
                return Err(ModelError::new(kind, "too long").with_status(400));
            }
        })
    }
}

fn finished_after(tokens: u64) -> ModelEvent {
    let mut usage = Usage::default();
    usage.input_tokens = Some(tokens);
    usage.output_tokens = Some(0);
    let reason = StopReason::Done;
    ModelEvent::Finished { reason, usage }
}

fn events(
    parts: Vec<ModelEvent>,
    last: ModelEvent,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    stream::iter(parts.into_iter().chain([last]).map(Ok)).boxed()
}

fn text_part(text: &str, ended: bool) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::Started {
        part: 0,
        kind: PartKind::Text,
    }];
    let words = text.split_inclusive(' ');
    events.extend(words.map(|word| ModelEvent::Delta {
        part: 0,
        text: word.to_owned(),
    }));
    if ended {
        events.push(ModelEvent::Ended {
            part: 0,
            opaque: None,
        });
    }
    events
}

fn call_parts(calls: Vec<(&'static str, String)>) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for (part, (name, arguments)) in (0..).zip(calls) {
        let kind = PartKind::ToolCall {
            id: format!("call-{part}"),
            name: name.to_owned(),
        };
        events.push(ModelEvent::Started { part, kind });
        events.push(ModelEvent::Delta {
            part,
            text: arguments,
        });
        events.push(ModelEvent::Ended { part, opaque: None });
    }
    events
}

/// A shell command as a tool call.
pub(crate) fn bash(command: &str) -> (&'static str, String) {
    (
        "bash",
        serde_json::json!({ "command": command }).to_string(),
    )
}

/// A builder with that model and the local executor.
pub(crate) fn builder(script: Arc<impl ModelProvider>) -> RuntimeBuilder {
    let environment = std::env::var("PATH").map(|path| vec![("PATH".to_owned(), path)]);
    let options = LocalOptions::new(environment.unwrap_or_default());
    Runtime::builder()
        .retry(RetryPolicy::default().with_attempts(1))
        .provider("script", script)
        .executor(Arc::new(LocalExecutor::new(options)))
}

/// Waits for the end of the turn that runs or starts next.
pub(crate) async fn turn_end(events: &mut Subscription) -> Turn {
    loop {
        match events.next().await.expect("the conversation goes on") {
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => return turn.clone(),
                _ => {}
            },
            FeedEvent::Gap { reason } => panic!("{reason}"),
            _ => {}
        }
    }
}

/// All items of the root session in order.
pub(crate) async fn items(conversation: &ConversationHandle) -> Vec<Item> {
    items_of(conversation, None).await
}

/// All items of a session, or of the root one, in order.
pub(crate) async fn items_of(
    conversation: &ConversationHandle,
    session: Option<SessionId>,
) -> Vec<Item> {
    let query = ItemsQuery {
        session_id: session,
        order: ItemsOrder::Ascending,
        limit: 1_000,
        ..Default::default()
    };
    let page = conversation.items(query).await.unwrap();
    let mut items: Vec<Item> = page
        .items
        .into_iter()
        .map(|entry| match entry {
            Entry::Item { item, .. } => item,
            other => panic!("no item: {other:?}"),
        })
        .collect();
    items.sort_by_key(|item| item.head().pos);
    items
}

/// The kinds of all items of the root session in order.
pub(crate) async fn kinds(conversation: &ConversationHandle) -> Vec<ItemKind> {
    items(conversation)
        .await
        .iter()
        .map(|item| item.head().kind.clone())
        .collect()
}

//! A model that plays several agents, each by a script of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use openvaala_core::executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool, typed};
use openvaala_core::model::{ModelError, ModelEvent, ModelRequest};
use openvaala_core::protocol::conversation::{Session, SessionStatus};
use openvaala_core::protocol::event::Entry;
use openvaala_core::{ConversationHandle, FeedEvent, ModelProvider, Subscription};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::script::Step;

/// A request, and the path of the agent that it is of.
pub(crate) type Request = (String, ModelRequest);

#[derive(Debug)]
pub(crate) struct Cast {
    parts: BTreeMap<&'static str, (Vec<Step>, AtomicUsize)>,
    requests: mpsc::UnboundedSender<Request>,
}

impl Cast {
    /// Agents by their paths; one that is not named, and one whose script is over, says "done".
    pub(crate) fn new(
        parts: impl IntoIterator<Item = (&'static str, Vec<Step>)>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Request>) {
        let (requests, seen) = mpsc::unbounded_channel();
        let parts = parts.into_iter();
        let parts = parts.map(|(path, steps)| (path, (steps, AtomicUsize::new(0))));
        let parts = parts.collect();
        (Arc::new(Self { parts, requests }), seen)
    }
}

#[async_trait]
impl ModelProvider for Cast {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let path = path_of(&request);
        let step = self.parts.get(path.as_str()).and_then(|(steps, next)| {
            let next = next.fetch_add(1, Ordering::SeqCst);
            steps.get(next).cloned()
        });
        let _ = self.requests.send((path, request));
        step.unwrap_or(Step::Say("done")).act()
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

/// Which agent asks.
fn path_of(request: &ModelRequest) -> String {
    let told = request.instructions.split_once("You are the agent ");
    let path = told.and_then(|(_, rest)| rest.split_once(','));
    path.map_or("main", |(path, _)| path).to_owned()
}

/// A call that starts an agent, with more arguments.
pub(crate) fn spawn(name: &str, more: Value) -> (&'static str, String) {
    let mut arguments = json!({ "name": name, "task": format!("do {name}") });
    let all = arguments.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    ("spawn_agent", arguments.to_string())
}

/// The same for one in the background.
pub(crate) fn background(name: &str) -> (&'static str, String) {
    spawn(name, json!({ "background": true }))
}

/// A tool that waits until the test lets it go on, which it does for all calls of that name.
#[derive(Debug)]
pub(crate) struct Latch {
    open: tokio::sync::watch::Receiver<bool>,
    reached: mpsc::UnboundedSender<()>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[async_trait]
impl TypedTool for Latch {
    type Arguments = Nothing;

    const NAME: &'static str = "latch";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Waits.".to_owned()
    }

    async fn run(&self, context: ToolContext, _: Nothing) -> Result<ToolOutput, ToolError> {
        let _ = self.reached.send(());
        let mut open = self.open.clone();
        tokio::select! {
            _ = open.wait_for(|open| *open) => Ok(ToolOutput::text("opened")),
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
        }
    }
}

/// What a test holds of a latch.
pub(crate) struct Key {
    pub(crate) tool: Arc<dyn openvaala_core::executor::tool::Tool>,
    pub(crate) open: tokio::sync::watch::Sender<bool>,
    pub(crate) reached: mpsc::UnboundedReceiver<()>,
}

pub(crate) fn latch() -> Key {
    let (open, is_open) = tokio::sync::watch::channel(false);
    let (reached, is_reached) = mpsc::unbounded_channel();
    Key {
        tool: typed(Latch {
            open: is_open,
            reached,
        }),
        open,
        reached: is_reached,
    }
}

/// A call of the latch.
pub(crate) fn hold() -> (&'static str, String) {
    ("latch", "{}".to_owned())
}

/// Waits until the sessions are as they are to be.
pub(crate) async fn until(
    conversation: &ConversationHandle,
    events: &mut Subscription,
    is_so: impl Fn(&[Session]) -> bool,
) -> Vec<Session> {
    loop {
        let sessions = conversation.tree().await.unwrap();
        if is_so(&sessions) {
            return sessions;
        }
        loop {
            match events.next().await.expect("the conversation goes on") {
                FeedEvent::Entry { entry, .. } if matches!(*entry, Entry::Session { .. }) => break,
                FeedEvent::Gap { reason } => panic!("{reason}"),
                _ => {}
            }
        }
    }
}

/// Whether nothing runs and nothing waits.
pub(crate) fn at_rest(sessions: &[Session]) -> bool {
    let is_idle = |session: &Session| {
        session.status == SessionStatus::Idle && (session.pending.is_empty() || session.held)
    };
    sessions.iter().all(is_idle)
}

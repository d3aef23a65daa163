//! A model that answers at once and asks for as many commands as it is told to.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use openvaala_core::ModelProvider;
use openvaala_core::model::{
    Message, Messages, ModelError, ModelEvent, ModelRequest, PartKind, StopReason,
};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::usage::Usage;
use tokio::sync::mpsc;

/// Asks for `bash -c true` as many times as the last thing the user said tells, then says a few words.
#[derive(Debug)]
pub(crate) struct Script {
    asked: mpsc::UnboundedSender<Instant>,
}

impl Script {
    /// Also gives the time of each request.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Instant>) {
        let (asked, times) = mpsc::unbounded_channel();
        (Arc::new(Self { asked }), times)
    }
}

#[async_trait]
impl ModelProvider for Script {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        // Whoever does not measure steps has let go of the other end.
        let _ = self.asked.send(Instant::now());
        let (done, wanted) = progress(&request.messages);
        let (kind, text) = if done < wanted {
            let (id, name) = (format!("call-{done}"), "bash".to_owned());
            let arguments = r#"{"command":"true"}"#;
            (PartKind::ToolCall { id, name }, arguments)
        } else {
            (PartKind::Text, "All of it is done.")
        };
        let text = text.to_owned();
        let events = [
            ModelEvent::Started { part: 0, kind },
            ModelEvent::Delta { part: 0, text },
            ModelEvent::Ended {
                part: 0,
                opaque: None,
            },
            ModelEvent::Finished {
                reason: StopReason::Done,
                usage: Usage::default(),
            },
        ];
        Ok(stream::iter(events.map(Ok)).boxed())
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

/// Steps done since the user last said something, and steps that were asked for.
fn progress(messages: &Messages) -> (usize, usize) {
    let mut done = 0;
    for message in messages.iter().rev() {
        match message {
            Message::User(content) => return (done, joined_text(content).parse().unwrap_or(0)),
            Message::ToolResults(_) => done += 1,
            _ => {}
        }
    }
    (done, 0)
}

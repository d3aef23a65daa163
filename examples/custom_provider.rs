//! A model provider of your own: anything that can answer in a stream.
//!
//! Run it with `cargo run -p openvaala-examples --example custom_provider`.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use openvaala_core::model::{
    Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, PartKind, StopReason,
};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::event::{Entry, Live};
use openvaala_core::protocol::usage::Usage;
use openvaala_core::{FeedEvent, Input, ModelProvider, NewConversation, Runtime};

/// Says everything back, word by word.
#[derive(Debug)]
struct Echo;

#[async_trait]
impl ModelProvider for Echo {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let Some(Message::User(content)) = request.messages.last() else {
            return Err(ModelError::new(
                ModelErrorKind::BadRequest,
                "there is nothing to echo",
            ));
        };
        let said = joined_text(content);
        let words: Vec<String> = said.split_inclusive(' ').map(str::to_owned).collect();
        let start = stream::iter([ModelEvent::Started {
            part: 0,
            kind: PartKind::Text,
        }]);
        let deltas = stream::iter(words).map(|text| ModelEvent::Delta { part: 0, text });
        let end = stream::iter([
            ModelEvent::Ended {
                part: 0,
                opaque: None,
            },
            ModelEvent::Finished {
                reason: StopReason::Done,
                usage: Usage::default(),
            },
        ]);
        Ok(start.chain(deltas).chain(end).map(Ok).boxed())
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder()
        .in_memory()
        .provider("echo", Arc::new(Echo))
        .build()
        .await?;
    let conversation = runtime.create(NewConversation::default()).await?;
    let mut events = conversation.subscribe(None).await?;
    conversation
        .send(Input::text("hello from the far side"))
        .await?;
    while let Some(event) = events.next().await {
        match event {
            FeedEvent::Live(live) => {
                if let Live::Delta(delta) = &*live {
                    print!("{}", delta.text);
                }
            }
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
                _ => {}
            },
            _ => break,
        }
    }
    println!();
    Ok(())
}

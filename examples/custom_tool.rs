//! A tool of your own, with a schema made from its argument type.
//!
//! Run it with `cargo run -p openvaala-examples --example custom_tool`.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use openvaala_core::executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool, typed};
use openvaala_core::model::{ModelError, ModelEvent, ModelRequest, PartKind, StopReason};
use openvaala_core::protocol::usage::Usage;
use openvaala_core::protocol::{content::joined_text, event::Entry, item::ToolResult};
use openvaala_core::{FeedEvent, Input, ModelProvider, NewConversation, Runtime};
use schemars::JsonSchema;
use serde::Deserialize;

/// Rolls dice. A fair die would make this example hard to test.
#[derive(Debug)]
struct Dice;

/// The model sees these names and these comments.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// How many sides each of them has.
    sides: u32,
    /// How many to roll; one if left out.
    count: Option<u32>,
}

#[async_trait]
impl TypedTool for Dice {
    type Arguments = Arguments;
    const NAME: &'static str = "roll_dice";

    fn description(&self) -> String {
        "Rolls dice and tells the sum.".to_owned()
    }

    async fn run(&self, _: ToolContext, roll: Arguments) -> Result<ToolOutput, ToolError> {
        let sum = roll.sides.checked_mul(roll.count.unwrap_or(1));
        let sum = sum.ok_or_else(|| ToolError::failed("so many dice do not fit: take fewer"))?;
        Ok(ToolOutput::text(format!("the sum is {}", sum / 2)))
    }
}

/// Stands in for a model: asks for the dice once, then reports.
#[derive(Debug)]
struct Gambler;

#[async_trait]
impl ModelProvider for Gambler {
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        let (id, name) = ("roll-1".to_owned(), Dice::NAME.to_owned());
        let (kind, text) = match request.messages.len() {
            1 => (PartKind::ToolCall { id, name }, r#"{"sides":6,"count":3}"#),
            _ => (PartKind::Text, "I have rolled."),
        };
        let (part, text, opaque) = (0, text.to_owned(), None);
        let (reason, usage) = (StopReason::Done, Usage::default());
        let events = [
            ModelEvent::Started { part, kind },
            ModelEvent::Delta { part, text },
            ModelEvent::Ended { part, opaque },
            ModelEvent::Finished { reason, usage },
        ];
        Ok(stream::iter(events.map(Ok)).boxed())
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Runtime::builder().in_memory().tool(typed(Dice));
    let runtime = builder
        .provider("gambler", Arc::new(Gambler))
        .build()
        .await?;
    let conversation = runtime.create(NewConversation::default()).await?;
    let mut events = conversation.subscribe(None).await?;
    conversation.send(Input::text("roll three dice")).await?;
    while let Some(event) = events.next().await {
        let FeedEvent::Entry { entry, .. } = event else {
            continue;
        };
        if let Entry::Item { item, .. } = &*entry
            && let Some(result) = item.body::<ToolResult>()
        {
            println!("{}", joined_text(&result?.content));
            break;
        }
    }
    Ok(())
}

//! A tool of your own, with a schema made from its argument type.
//!
//! Run it with `cargo run -p openvaala-examples --example custom_tool`.

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_core::executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool, typed};
use openvaala_core::model::{ModelError, ModelEvent, ModelRequest, PartKind, StopReason};
use openvaala_core::protocol::item::ToolResult;
use openvaala_core::protocol::usage::Usage;
use openvaala_core::{FeedEvent, Input, ModelProvider, NewConversation, Runtime, protocol};
use protocol::event::Entry;
use schemars::JsonSchema;
use serde::Deserialize;

/// Rolls dice.
#[derive(Debug)]
struct Dice;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Arguments {
    /// How many sides each of them has.
    sides: u32,
    /// How many to roll.
    count: u32,
}

#[async_trait]
impl TypedTool for Dice {
    type Arguments = Arguments;

    const NAME: &'static str = "roll_dice";

    fn description(&self) -> String {
        "Rolls dice and tells the sum.".to_owned()
    }

    async fn run(&self, _: ToolContext, roll: Arguments) -> Result<ToolOutput, ToolError> {
        // A fair die would make this example hard to test.
        Ok(ToolOutput::text(format!(
            "the sum is {}",
            roll.count * roll.sides / 2
        )))
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
    ) -> Result<futures::stream::BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError>
    {
        let rolled = request.messages.len() > 1;
        let (kind, text) = if rolled {
            (PartKind::Text, "I have rolled.".to_owned())
        } else {
            let (id, name) = ("roll-1".to_owned(), Dice::NAME.to_owned());
            (
                PartKind::ToolCall { id, name },
                r#"{"sides":6,"count":3}"#.to_owned(),
            )
        };
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
        Ok(Box::pin(futures::stream::iter(events.map(Ok))))
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Runtime::builder().in_memory();
    let runtime = builder
        .provider("gambler", Arc::new(Gambler))
        .tool(typed(Dice))
        .build()
        .await?;
    let conversation = runtime.create(NewConversation::default()).await?;
    let mut events = conversation.subscribe(None).await?;
    conversation.send(Input::text("roll three dice")).await?;
    while let Some(event) = events.next().await {
        let FeedEvent::Entry { entry, .. } = event else {
            continue;
        };
        match &*entry {
            Entry::Item { item, .. } => {
                if let Some(result) = item.body::<ToolResult>() {
                    println!("{}", protocol::content::joined_text(&result?.content));
                }
            }
            Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
            _ => {}
        }
    }
    Ok(())
}

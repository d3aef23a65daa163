//! A conversation in your own program: one crate, no server.
//!
//! Run it with `cargo run -p openvaala-examples --example embed_minimal`.

use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::protocol::event::Entry;
use openvaala_core::{FeedEvent, Input, NewConversation, Runtime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .data_dir(data.path())
        .provider("demo", Arc::new(DemoProvider::new()))
        .executor(Arc::new(LocalExecutor::new(LocalOptions::new(
            std::env::vars(),
        ))))
        .build()
        .await?;
    let conversation = runtime
        .create(NewConversation::in_folder(std::env::current_dir()?))
        .await?;
    let mut events = conversation.subscribe(None).await?;
    conversation
        .send(Input::text("look around this folder"))
        .await?;
    while let Some(event) = events.next().await {
        let FeedEvent::Entry { entry, .. } = event else {
            continue;
        };
        match &*entry {
            Entry::Item { item, .. } => println!("{}: {}", item.head().kind, item.raw_body()?),
            Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
            _ => {}
        }
    }
    runtime.shutdown().await;
    Ok(())
}

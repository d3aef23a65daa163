//! Nothing touches the disk: conversations live and end with the program.
//!
//! Run it with `cargo run -p openvaala-examples --example in_memory`.

use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::protocol::event::Entry;
use openvaala_core::{FeedEvent, Input, ItemsQuery, ListConversations, NewConversation, Runtime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let demo = Arc::new(DemoProvider::new());
    let runtime = Runtime::builder()
        .in_memory()
        .provider("demo", demo)
        .build()
        .await?;
    let conversation = runtime.create(NewConversation::default()).await?;
    let mut events = conversation.subscribe(None).await?;
    for question in ["what can you do?", "and without tools?"] {
        conversation.send(Input::text(question)).await?;
        while let Some(event) = events.next().await {
            let FeedEvent::Entry { entry, .. } = event else {
                continue;
            };
            if matches!(&*entry, Entry::Turn { turn, .. } if turn.ended_at.is_some()) {
                break;
            }
        }
    }
    let page = conversation.items(ItemsQuery::default()).await?;
    println!("{} items, the newest first:", page.items.len());
    for entry in &page.items {
        if let Entry::Item { item, .. } = entry {
            println!("{:>4}  {}", item.head().pos, item.head().kind);
        }
    }
    let listed = runtime.list(ListConversations::default()).await?;
    println!(
        "in the list: {:?}",
        listed
            .conversations
            .first()
            .and_then(|c| c.title.as_deref())
    );
    Ok(())
}

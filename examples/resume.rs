//! A conversation that goes on where it was, however the program ended before.
//!
//! Run it twice with `cargo run -p openvaala-examples --example resume -- /tmp/my-conversations`, or kill it in
//! between.

use std::env;
use std::error::Error;
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::event::Entry;
use openvaala_core::protocol::item::{AssistantMessage, Item, UserMessage};
use openvaala_core::protocol::rpc::params::session::ItemsOrder;
use openvaala_core::{
    ConversationHandle, FeedEvent, Input, ItemsQuery, ListConversations, NewConversation, Runtime,
};

/// What people and models said; everything else of the log is left out here.
fn said(item: &Item) -> Option<String> {
    if let Some(Ok(message)) = item.body::<UserMessage>() {
        return Some(format!("you: {}", joined_text(&message.content)));
    }
    let message = item.body::<AssistantMessage>()?.ok()?;
    Some(format!("it: {}", message.text))
}

/// Shows the whole history, a page after the other: it may be longer than memory.
async fn show_history(conversation: &ConversationHandle) -> Result<(), Box<dyn Error>> {
    let mut query = ItemsQuery {
        order: ItemsOrder::Ascending,
        ..ItemsQuery::default()
    };
    loop {
        let page = conversation.items(query).await?;
        for entry in &page.items {
            if let Entry::Item { item, .. } = entry {
                said(item).iter().for_each(|line| println!("{line}"));
            }
        }
        let Some(next) = page.next else { return Ok(()) };
        query.cursor = next;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("say in which folder")?;
    // Whoever opens a data directory has it alone: a second program is told who has it.
    let runtime = Runtime::builder()
        .data_dir(folder)
        .provider("demo", Arc::new(DemoProvider::new()))
        .executor(Arc::new(LocalExecutor::new(LocalOptions::new(env::vars()))))
        .build()
        .await?;
    let known = runtime.list(ListConversations::default()).await?;
    let conversation = match known.conversations.first() {
        Some(last) => runtime.open(last.id).await?,
        None => {
            let new = NewConversation::in_folder(env::current_dir()?);
            runtime.create(new).await?
        }
    };
    println!("conversation {}", conversation.id());
    show_history(&conversation).await?;
    for turn in conversation.details().await?.turns {
        println!("turn: {:?}", turn.status);
    }

    println!("--- now");
    let mut events = conversation.subscribe(None).await?;
    let input = Input::text("look around this folder");
    conversation.send(input).await?;
    // It is on disk: a kill from here on ends the turn, but loses nothing that was said.
    println!("sent");
    while let Some(event) = events.next().await {
        let FeedEvent::Entry { entry, .. } = event else {
            continue;
        };
        match &*entry {
            Entry::Item { item, .. } => said(item).iter().for_each(|line| println!("{line}")),
            Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
            _ => {}
        }
    }
    runtime.shutdown().await;
    Ok(())
}

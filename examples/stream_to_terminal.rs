//! A conversation on the terminal as it comes: words, tool calls, their output, their results.
//!
//! Run it with `cargo run -p openvaala-examples --example stream_to_terminal -- "look around this folder"`.
//! With `OPENAI_API_KEY` set a model answers, else the demo script, which needs no network.

use std::collections::{HashMap, HashSet};
use std::env;
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::dialect::http::{HttpOptions, Secret, default_client};
use openvaala_core::dialect::openai_chat::{OpenAiChat, OpenAiChatOptions};
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::event::{Entry, Live};
use openvaala_core::protocol::id::ItemId;
use openvaala_core::protocol::item::ToolResult;
use openvaala_core::{FeedEvent, Input, NewConversation, Runtime, RuntimeBuilder};

/// What is on the screen so far.
#[derive(Default)]
struct Screen {
    titles: HashMap<ItemId, String>,
    printed: HashSet<ItemId>,
    /// Whose text came last: tools that run at the same time also write at the same time.
    last: Option<ItemId>,
}

impl Screen {
    /// Live text is shown at once and is on no disk yet; the entry that follows has all of it again.
    fn live(&mut self, live: &Live) {
        match live {
            Live::Started(item) => {
                let label = item.label.as_deref().unwrap_or_default();
                let title = format!("{} {label}", item.kind.as_str());
                self.titles
                    .insert(item.item_id, title.trim_end().to_owned());
            }
            Live::Delta(delta) => self.print(delta.item_id, &delta.text),
            _ => {}
        }
    }

    fn print(&mut self, item: ItemId, text: &str) {
        if self.last.replace(item) != Some(item) {
            let title = self.titles.get(&item).map_or("more", String::as_str);
            print!("\n--- {title}\n");
        }
        self.printed.insert(item);
        print!("{text}");
        // Without a line break nothing would show yet. A terminal that has gone is no reason to stop.
        let _ = std::io::stdout().flush();
    }

    /// A result shows how the call ended, and what the model sees if the tool wrote nothing meanwhile.
    fn result(&mut self, item: ItemId, result: &ToolResult) {
        if !self.printed.contains(&item) {
            self.print(item, &joined_text(&result.content));
        }
        println!("\n(the call ended: {:?})", result.status);
        self.last = None;
    }
}

fn with_model(builder: RuntimeBuilder) -> Result<RuntimeBuilder, Box<dyn Error>> {
    let Ok(key) = env::var("OPENAI_API_KEY") else {
        return Ok(builder.provider("demo", Arc::new(DemoProvider::new())));
    };
    let http = HttpOptions::new(default_client()?, "https://api.openai.com/v1");
    let options = OpenAiChatOptions::new(http.with_api_key(Secret::new(key)));
    let provider = Arc::new(OpenAiChat::new(options)?);
    let builder = builder.provider("openai", provider);
    Ok(builder.default_model("openai", "gpt-5.4-mini"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let prompt = env::args().nth(1);
    let prompt = prompt.unwrap_or_else(|| "look around this folder".to_owned());
    let local = LocalExecutor::new(LocalOptions::new(env::vars()));
    let builder = Runtime::builder().in_memory().executor(Arc::new(local));
    let runtime = with_model(builder)?.build().await?;
    let new = NewConversation::in_folder(env::current_dir()?);
    let conversation = runtime.create(new).await?;
    let mut events = conversation.subscribe(None).await?;
    conversation.send(Input::text(prompt)).await?;
    let mut screen = Screen::default();
    while let Some(event) = events.next().await {
        match event {
            FeedEvent::Live(live) => screen.live(&live),
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Item { item, .. } => {
                    if let Some(result) = item.body::<ToolResult>() {
                        screen.result(item.head().id, &result?);
                    }
                }
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
                _ => {}
            },
            // Too slow a reader misses text: subscribe again with the cursor of the last entry.
            _ => break,
        }
    }
    println!();
    runtime.shutdown().await;
    Ok(())
}

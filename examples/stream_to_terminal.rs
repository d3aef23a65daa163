//! A conversation on the terminal as it comes: words, tool calls, their output, their results.
//!
//! Run it with `cargo run -p openvaala-examples --example stream_to_terminal -- "look around this folder"`.
//! With `OPENAI_API_KEY` set a model answers, else the demo script, which needs no network.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::dialect::http::{HttpOptions, Secret, default_client};
use openvaala_core::dialect::openai_chat::{OpenAiChat, OpenAiChatOptions};
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::event::{Entry, Live};
use openvaala_core::protocol::id::ItemId;
use openvaala_core::protocol::item::{Item, ToolResult};
use openvaala_core::{FeedEvent, Input, NewConversation, Runtime, RuntimeBuilder};

/// The items that show, each with its title.
#[derive(Default)]
struct Screen {
    titles: HashMap<ItemId, String>,
    /// Whose text came last: tools that run at the same time also write at the same time.
    last: Option<ItemId>,
}

impl Screen {
    /// Live text is shown at once and is on no disk yet; the entry that follows has all of it again.
    fn live(&mut self, live: &Live) -> io::Result<()> {
        match live {
            Live::Started(item) => {
                let label = item.label.as_deref().unwrap_or_default();
                let title = format!("{} {label}", item.kind.as_str());
                self.titles.insert(item.item_id, title);
            }
            Live::Delta(delta) => self.print(delta.item_id, &delta.text)?,
            _ => {}
        }
        Ok(())
    }

    fn print(&mut self, item: ItemId, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.last.replace(item) != Some(item) {
            let title = self.titles.get(&item).map_or("", String::as_str);
            writeln!(out, "\n--- {}", title.trim_end())?;
        }
        write!(out, "{text}")?;
        out.flush()
    }

    /// Shows what the model sees of a result: head and tail of the output.
    fn item(&mut self, item: &Item) -> Result<(), Box<dyn Error>> {
        let Some(result) = item.body::<ToolResult>().transpose()? else {
            return Ok(());
        };
        let (status, text) = (result.status, joined_text(&result.content));
        Ok(self.print(item.head().id, &format!("\n({status:?}) {text}\n"))?)
    }
}

fn with_model(builder: RuntimeBuilder) -> Result<RuntimeBuilder, Box<dyn Error>> {
    let Ok(key) = env::var("OPENAI_API_KEY") else {
        return Ok(builder.provider("demo", Arc::new(DemoProvider::new())));
    };
    let http = HttpOptions::new(default_client()?, "https://api.openai.com/v1");
    let options = OpenAiChatOptions::new(http.with_api_key(Secret::new(key)));
    let builder = builder.provider("openai", Arc::new(OpenAiChat::new(options)?));
    Ok(builder.default_model("openai", "gpt-5.4-mini"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let local = Arc::new(LocalExecutor::new(LocalOptions::new(env::vars())));
    let builder = with_model(Runtime::builder().in_memory().executor(local))?;
    let runtime = builder.build().await?;
    let here = NewConversation::in_folder(env::current_dir()?);
    let conversation = runtime.create(here).await?;
    let mut events = conversation.subscribe(None).await?;
    let prompt = env::args().nth(1).ok_or("say what to do")?;
    conversation.send(Input::text(prompt)).await?;
    let mut screen = Screen::default();
    while let Some(event) = events.next().await {
        match event {
            FeedEvent::Live(live) => screen.live(&live)?,
            FeedEvent::Entry { entry, .. } => match &*entry {
                Entry::Item { item, .. } => screen.item(item)?,
                Entry::Turn { turn, .. } if turn.ended_at.is_some() => break,
                _ => {}
            },
            _ => break,
        }
    }
    runtime.shutdown().await;
    Ok(())
}

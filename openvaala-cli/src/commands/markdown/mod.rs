//! A conversation as a Markdown document.
//!
//! Whatever was said or printed, each item stays within its own section: outputs stand in fences that are longer than
//! any in them, and messages that could reach beyond their end stand in block quotes.

mod contain;

use openvaala_protocol::conversation::Conversation;
use openvaala_protocol::item::{
    AssistantMessage, Interruption, Item, ItemBody, ItemKind, ModelError, Reasoning, ToolCall,
    ToolResult, UserMessage,
};
use serde::Deserialize;

use self::contain::{code, fence, message, plain, quote};
use super::describe::{cause, clean, content, status};
use crate::output::one_line;

/// The arguments of a tool that takes a command and nothing else was said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandOnly {
    command: String,
}

/// What stands above the items.
pub(super) fn head(conversation: &Conversation) -> String {
    let title = conversation.title.as_deref().unwrap_or("Conversation");
    let mut head = format!(
        "# {}\n\n- conversation {}\n",
        plain(&one_line(title, 200)),
        code(&conversation.id.to_string())
    );
    for location in &conversation.executors {
        let (root, executor) = (code(&location.root), code(location.executor.as_str()));
        head.push_str(&format!("- works in {root} on {executor}\n"));
    }
    head.push_str(&format!("- begun {}\n", conversation.created_at));
    head
}

/// The section of one item, with an empty line before it.
pub(super) fn item(item: &Item) -> String {
    let section = match &item.head().kind {
        ItemKind::UserMessage => body(item, |body: UserMessage| {
            let heading = if body.steer {
                "User, meanwhile"
            } else {
                "User"
            };
            format!("## {heading}\n\n{}", quote(&content(&body.content)))
        }),
        ItemKind::AssistantMessage => body(item, |body: AssistantMessage| {
            let heading = cut("## Assistant", body.cut);
            format!("{heading}\n\n{}", message(&clean(&body.text)))
        }),
        ItemKind::Reasoning => body(item, |body: Reasoning| {
            let heading = cut("### Reasoning", body.cut);
            format!("{heading}\n\n{}", quote(&clean(&body.text)))
        }),
        ItemKind::ToolCall => body(item, |body: ToolCall| tool_call(&body)),
        ItemKind::ToolResult => body(item, |body: ToolResult| tool_result(&body)),
        ItemKind::ModelError => body(item, |body: ModelError| {
            format!("### The model failed\n\n{}", quote(&clean(&body.message)))
        }),
        ItemKind::Interruption => body(item, |body: Interruption| {
            format!("### Interrupted\n\n{}\n", cause(body.cause))
        }),
        _ => None,
    };
    format!("\n{}", section.unwrap_or_else(|| of_other_kind(item)))
}

fn body<B: ItemBody>(item: &Item, show: impl FnOnce(B) -> String) -> Option<String> {
    item.body::<B>()?.ok().map(show)
}

fn cut(heading: &str, cut: bool) -> String {
    format!("{heading}{}", if cut { ", cut off" } else { "" })
}

fn tool_call(call: &ToolCall) -> String {
    let mut heading = format!("### Tool call {}", code(&call.tool));
    if let Some(executor) = call.executor.as_ref().filter(|id| id.as_str() != "local") {
        heading.push_str(&format!(" on {}", code(executor.as_str())));
    }
    let arguments = match serde_json::from_str::<CommandOnly>(&call.arguments) {
        Ok(only) => fence("sh", &clean(&only.command)),
        Err(_) => fence("json", &clean(&call.arguments)),
    };
    format!("{}\n\n{arguments}", cut(&heading, call.cut))
}

fn tool_result(result: &ToolResult) -> String {
    let whole = result.output.as_ref().map_or_else(String::new, |output| {
        format!(" (the whole output has {} bytes)", output.bytes)
    });
    let said = fence("", &content(&result.content));
    format!("### Result: {}{whole}\n\n{said}", status(result))
}

/// What this version has no words for, as it is stored.
fn of_other_kind(item: &Item) -> String {
    let heading = format!("### {}", code(item.head().kind.as_str()));
    let body = item.raw_body().map(|body| clean(body.get()));
    format!("{heading}\n\n{}", fence("json", &body.unwrap_or_default()))
}

#[cfg(test)]
mod tests;

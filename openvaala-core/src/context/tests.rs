mod growing;
mod history;
mod prompt;
mod random;
mod summary;

use std::collections::HashMap;

use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId};
use openvaala_protocol::item::{
    AssistantMessage, Item, ItemBody, ItemHead, Opaque, Reasoning, ToolCall, ToolResult,
    ToolResultStatus, UserMessage,
};
use openvaala_protocol::time::Timestamp;
use serde_json::value::to_raw_value;
use uuid::Uuid;

use super::{AssembleOptions, assemble, check_pairing};
use crate::model::{AssistantPart, Message, Messages, ToolAnswer};

/// The id of the item at that place, unless a test gives it another.
fn id(pos: u64) -> ItemId {
    ItemId::from_uuid(Uuid::from_u128(u128::from(pos)))
}

fn item<B: ItemBody>(pos: u64, body: &B) -> Item {
    item_with_id(id(pos), pos, body)
}

fn item_with_id<B: ItemBody>(id: ItemId, pos: u64, body: &B) -> Item {
    let time = Timestamp::from_millis(0);
    Item::new(ItemHead::new(id, B::KIND, None, pos, time, time), body).unwrap()
}

fn user(pos: u64, text: &str) -> Item {
    item(pos, &UserMessage::new(vec![Content::text(text)], false))
}

fn said(pos: u64, text: &str) -> Item {
    item(pos, &AssistantMessage::new(text.to_owned(), false))
}

fn thought(pos: u64, opaque: Option<Opaque>) -> Item {
    item(pos, &Reasoning::new("hm".to_owned(), opaque, false))
}

fn opaque(provider: &str, model: &str, account: Option<&str>) -> Opaque {
    let data = to_raw_value(&1).unwrap();
    Opaque::new(
        provider.to_owned(),
        model.to_owned(),
        account.map(str::to_owned),
        data,
    )
}

fn call(pos: u64, call_id: &str) -> Item {
    item(
        pos,
        &ToolCall::new(call_id.to_owned(), "f".to_owned(), "{\"x\":1}".to_owned()),
    )
}

/// A result of the call at place `of`.
fn result(pos: u64, of: u64, call_id: &str, text: &str) -> Item {
    let content = vec![Content::text(text)];
    item(
        pos,
        &ToolResult::new(id(of), call_id.to_owned(), ToolResultStatus::Ok, content),
    )
}

fn target() -> ModelRef {
    ModelRef {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        effort: None,
    }
}

fn messages(items: &[Item]) -> Messages {
    messages_with(items, &HashMap::new(), None)
}

fn messages_with(
    items: &[Item],
    blobs: &HashMap<BlobId, String>,
    account: Option<&str>,
) -> Messages {
    let target = target();
    let mut options = AssembleOptions::new(items, &target, blobs);
    options.account = account;
    let messages = assemble(options);
    assert_eq!(check_pairing(&messages), Ok(()), "{messages:#?}");
    messages
}

/// The messages as a text that is easy to compare, a message a line.
fn shown(messages: &Messages) -> String {
    let lines = messages.iter().map(|message| match message {
        Message::User(content) => format!("user: {}", content_shown(content)),
        Message::Assistant(parts) => {
            let parts: Vec<String> = parts.iter().map(part_shown).collect();
            format!("assistant: {}", parts.join(" | "))
        }
        Message::ToolResults(answers) => {
            let answers: Vec<String> = answers.iter().map(answer_shown).collect();
            format!("results: {}", answers.join(" | "))
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn part_shown(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(text) => text.clone(),
        AssistantPart::Reasoning { text, opaque } => format!("({text} {})", opaque.data),
        AssistantPart::ToolCall {
            id,
            name,
            arguments,
        } => format!("{name}#{id} {arguments}"),
    }
}

fn answer_shown(answer: &ToolAnswer) -> String {
    let failed = if answer.failed { " failed" } else { "" };
    format!(
        "{}#{}{failed}: {}",
        answer.name,
        answer.call_id,
        content_shown(&answer.content)
    )
}

fn content_shown(content: &[Content]) -> String {
    let pieces = content.iter().map(|piece| match piece {
        Content::Image {
            media_type,
            data: ImageData::Base64(base64),
        } => {
            format!("<{media_type} {base64}>")
        }
        other => other
            .as_text()
            .unwrap_or("<something else>")
            .replace('\n', "/"),
    });
    pieces.collect::<Vec<_>>().join(" + ")
}

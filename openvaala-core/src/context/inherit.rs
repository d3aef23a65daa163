//! What an agent is given of what the one knows that starts it.

use std::collections::{HashMap, HashSet};

use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{
    AgentMessage, AssistantMessage, ContextSummary, Item, ItemBody, ItemHead, ItemKind, Reasoning,
    Skill, ToolCall, ToolResult, UserMessage,
};

/// Copies what a request of one session is made from for the log of another one.
///
/// The copies belong to no turn and have ids of their own. Calls without a result are left out, among them the one that starts the
/// new session; so is what the new session reads for itself, and large images, which lie in the log of the old one.
pub(crate) fn inherited(items: Vec<Item>, new_id: &mut dyn FnMut() -> ItemId) -> Vec<Item> {
    let answered: HashSet<ItemId> = items
        .iter()
        .filter_map(|item| item.body::<ToolResult>()?.ok())
        .map(|result| result.call)
        .collect();
    let mut calls = HashMap::new();
    // A summary stands for what came before all else.
    let (summaries, rest): (Vec<Item>, Vec<Item>) = items
        .into_iter()
        .partition(|item| item.head().kind == ItemKind::ContextSummary);
    let mut copies = Vec::new();
    for item in summaries.iter().rev().take(1).chain(&rest) {
        let pos = copies.len() as u64 + 1;
        let copy = match item.head().kind {
            ItemKind::ToolCall if !answered.contains(&item.head().id) => None,
            ItemKind::ToolCall => {
                let id = new_id();
                calls.insert(item.head().id, id);
                copy::<ToolCall>(item, id, pos, |_| {})
            }
            ItemKind::ToolResult => {
                let call = item.body::<ToolResult>().and_then(Result::ok);
                let call = call.and_then(|result| calls.get(&result.call).copied());
                call.and_then(|call| {
                    copy::<ToolResult>(item, new_id(), pos, |result| {
                        (result.call, result.output) = (call, None);
                        result.messages.clear();
                        small(&mut result.content);
                    })
                })
            }
            ItemKind::UserMessage => copy::<UserMessage>(item, new_id(), pos, |message| {
                small(&mut message.content);
            }),
            ItemKind::AgentMessage => copy::<AgentMessage>(item, new_id(), pos, |message| {
                small(&mut message.content);
            }),
            ItemKind::ContextSummary => copy::<ContextSummary>(item, new_id(), pos, |summary| {
                summary.up_to = 0;
                for message in &mut summary.messages {
                    small(&mut message.content);
                }
            }),
            ItemKind::AssistantMessage => copy::<AssistantMessage>(item, new_id(), pos, |_| {}),
            ItemKind::Reasoning => copy::<Reasoning>(item, new_id(), pos, |_| {}),
            ItemKind::Skill => copy::<Skill>(item, new_id(), pos, |_| {}),
            _ => None,
        };
        copies.extend(copy);
    }
    copies
}

fn copy<B: ItemBody>(
    item: &Item,
    id: ItemId,
    pos: u64,
    change: impl FnOnce(&mut B),
) -> Option<Item> {
    let mut body = item.body::<B>()?.ok()?;
    change(&mut body);
    let head = item.head();
    let head = ItemHead::new(id, B::KIND, None, pos, head.started_at, head.ended_at);
    Item::new(head, &body).ok()
}

/// Puts a word in the place of each image that lies in another log.
fn small(content: &mut [Content]) {
    for piece in content {
        if let Content::Image {
            data: ImageData::Blob(blob),
            ..
        } = piece
        {
            let bytes = blob.bytes;
            *piece = Content::text(format!("[an image of {bytes} bytes, not passed on]"));
        }
    }
}

//! Reads what a session's requests are made from, when the first of its turns begins.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::{ContextSummary, Item, ToolResult, UserMessage};
use openvaala_storage::Error;

use super::run::Surroundings;
use crate::dao::{blob, tail};

/// The largest image that is brought back into memory for requests.
const MAX_IMAGE: usize = 32 << 20;

/// What requests are made from, as the log has it.
#[derive(Debug)]
pub(super) struct LoadedContext {
    /// The last summary and what came after it, by `pos`.
    pub(super) items: Vec<Item>,
    /// The large images in them, in base64.
    pub(super) images: HashMap<BlobId, String>,
}

/// Reads a session's log backwards to its last summary, or to its beginning.
pub(super) async fn load_context(around: &Surroundings) -> Result<LoadedContext, Error> {
    let (log, id) = (&around.writer.log, around.writer.conversation);
    let items = tail::context(log, id, around.session).await?;
    let mut images = HashMap::new();
    for content in items.iter().flat_map(content_of) {
        let Content::Image {
            data: ImageData::Blob(reference),
            ..
        } = content
        else {
            continue;
        };
        let read = blob::read(log, id, around.session, reference, 0, MAX_IMAGE).await;
        match read {
            Ok((_, bytes)) => {
                images.insert(reference.id, STANDARD.encode(bytes));
            }
            // Without its bytes the model is told that an image is missing.
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(LoadedContext { items, images })
}

/// The large images in that item.
pub(super) fn images_of(item: &Item) -> impl Iterator<Item = BlobId> {
    content_of(item)
        .into_iter()
        .filter_map(|content| match content {
            Content::Image {
                data: ImageData::Blob(reference),
                ..
            } => Some(reference.id),
            _ => None,
        })
}

fn content_of(item: &Item) -> Vec<Content> {
    if let Some(Ok(message)) = item.body::<UserMessage>() {
        return message.content;
    }
    if let Some(Ok(summary)) = item.body::<ContextSummary>() {
        let messages = summary.messages.into_iter();
        return messages.flat_map(|message| message.content).collect();
    }
    match item.body::<ToolResult>() {
        Some(Ok(result)) => result.content,
        _ => Vec::new(),
    }
}

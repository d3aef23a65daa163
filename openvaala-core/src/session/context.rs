//! Reads what a session's requests are made from, when the first of its turns begins.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::{Item, ToolResult, UserMessage};
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

fn content_of(item: &Item) -> Vec<Content> {
    if let Some(Ok(message)) = item.body::<UserMessage>() {
        return message.content;
    }
    match item.body::<ToolResult>() {
        Some(Ok(result)) => result.content,
        _ => Vec::new(),
    }
}

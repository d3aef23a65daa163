//! What a message or a tool result carries: text, images, and references to large bytes.

use serde::{Deserialize, Serialize};

use crate::id::BlobId;

/// One piece of a message or of a tool result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// The text, valid UTF-8.
        text: String,
    },
    /// A picture.
    Image {
        /// Its kind: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// Its bytes, or where they are.
        data: ImageData,
    },
}

impl Content {
    /// A piece of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of this piece, if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } => None,
        }
    }
}

/// The bytes of an image.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ImageData {
    /// Standard base64 with padding.
    Base64(String),
    /// In the blob stream of the session that the item belongs to.
    Blob(BlobRef),
}

/// Where a large text or attachment lies in its session's blob stream.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[non_exhaustive]
pub struct BlobRef {
    /// Which blob: chunks of several may lie between each other.
    pub id: BlobId,
    /// Sequence number of its first chunk.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub first: u64,
    /// Sequence number of its last chunk; 0 if it was still being written when this was noted.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub last: u64,
    /// Length of the whole in bytes; of what there was by then if it was still being written. Of a very long output the
    /// middle is not kept.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub bytes: u64,
}

impl BlobRef {
    /// A reference to the chunks from `first` to `last`.
    #[must_use]
    pub const fn new(id: BlobId, first: u64, last: u64, bytes: u64) -> Self {
        Self {
            id,
            first,
            last,
            bytes,
        }
    }
}

/// Joins the text pieces of some content with line breaks.
#[must_use]
pub fn joined_text(content: &[Content]) -> String {
    content
        .iter()
        .filter_map(Content::as_text)
        .collect::<Vec<_>>()
        .join("\n")
}

//! Large texts and attachments: chunks of 64 KiB in the session's blob stream.
//!
//! An entry is `{"blob":"<id>","index":n,"base64":"…"}`. Chunks of several blobs may lie between each other; an
//! item refers to a blob by its id and the numbers of its first and last chunk.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::content::BlobRef;
use openvaala_protocol::id::{BlobId, ConversationId, SessionId};
use openvaala_storage::{EntryData, Error, LogStorage, NewEntry, ReadOptions};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use super::blobs_key;
use crate::environment::Clock;

/// Bytes of a chunk; the last one of a blob may have fewer.
pub(crate) const CHUNK: usize = 64 << 10;
/// Chunks that are appended, and flushed, together.
const BATCH: usize = 16;

#[derive(Deserialize, Serialize)]
struct Chunk {
    blob: BlobId,
    index: u64,
    base64: String,
}

/// Writes one blob as its bytes come.
#[derive(Debug)]
pub(crate) struct BlobWriter {
    conversation: ConversationId,
    session: SessionId,
    log: Arc<dyn LogStorage>,
    clock: Arc<dyn Clock>,
    id: BlobId,
    rest: Vec<u8>,
    index: u64,
    written: Option<(u64, u64)>,
    bytes: u64,
}

impl BlobWriter {
    pub(crate) const fn new(
        conversation: ConversationId,
        session: SessionId,
        log: Arc<dyn LogStorage>,
        clock: Arc<dyn Clock>,
        id: BlobId,
    ) -> Self {
        Self {
            conversation,
            session,
            log,
            clock,
            id,
            rest: Vec::new(),
            index: 0,
            written: None,
            bytes: 0,
        }
    }

    /// Whether anything has been given to it.
    pub(crate) const fn is_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Adds bytes; whole batches go to the log at once.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.rest.extend_from_slice(bytes);
        while self.rest.len() >= CHUNK * BATCH {
            let batch: Vec<u8> = self.rest.drain(..CHUNK * BATCH).collect();
            self.append(&batch).await?;
        }
        Ok(())
    }

    /// Writes what is left; the reference is good when this returns.
    pub(crate) async fn finish(mut self) -> Result<Option<BlobRef>, Error> {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.append(&rest).await?;
        }
        let (id, bytes) = (self.id, self.bytes);
        Ok(self
            .written
            .map(|(first, last)| BlobRef::new(id, first, last, bytes)))
    }

    async fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let time = self.clock.now().as_millis();
        let mut entries = Vec::new();
        for chunk in bytes.chunks(CHUNK) {
            let chunk = Chunk {
                blob: self.id,
                index: self.index,
                base64: STANDARD.encode(chunk),
            };
            self.index += 1;
            let data = to_raw_value(&chunk).map_err(|source| Error::Backend {
                backend: "dao",
                source: Box::new(source),
            })?;
            entries.push(NewEntry::new(time, data));
        }
        let key = blobs_key(self.conversation, self.session)?;
        let appended = self.log.append(&key, entries).await?;
        let first = self.written.map_or(appended.first, |(first, _)| first);
        self.written = Some((first, appended.last));
        Ok(())
    }
}

/// The bytes of an image as a client or tool gave it; what is no base64 is kept as no bytes at all.
pub(crate) fn decode(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap_or_default()
}

/// Reads a blob from `offset` on: at most `limit` bytes, rounded to chunks.
///
/// Gives the offset of the first byte that it has; damaged chunks are left out.
pub(crate) async fn read(
    log: &Arc<dyn LogStorage>,
    conversation: ConversationId,
    session: SessionId,
    blob: BlobRef,
    offset: u64,
    limit: usize,
) -> Result<(u64, Vec<u8>), Error> {
    let key = blobs_key(conversation, session)?;
    let skip = offset / CHUNK as u64;
    let mut bytes = Vec::new();
    let mut cursor = blob.first.saturating_sub(1);
    while cursor < blob.last && bytes.len() < limit {
        let options = ReadOptions::default().cursor(cursor).limit(64);
        let page = log.read(&key, options).await?;
        for entry in page.entries {
            if entry.seq > blob.last || bytes.len() >= limit {
                return Ok((skip * CHUNK as u64, bytes));
            }
            cursor = entry.seq;
            let EntryData::Json(data) = &entry.data else {
                continue;
            };
            let Ok(chunk) = serde_json::from_str::<Chunk>(data.get()) else {
                continue;
            };
            if chunk.blob == blob.id && chunk.index >= skip {
                bytes.extend(STANDARD.decode(chunk.base64).unwrap_or_default());
            }
        }
        if page.next.is_none() {
            break;
        }
    }
    Ok((skip * CHUNK as u64, bytes))
}

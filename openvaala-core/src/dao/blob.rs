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

/// What comes behind this many bytes of one output is not kept, but for the last of it.
pub(crate) const HEAD: u64 = 255 << 20;

#[derive(Deserialize, Serialize)]
struct Chunk {
    blob: BlobId,
    index: u64,
    /// The offset of its first byte in the blob; without it all chunks before are full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
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
    /// Where the rest begins: all before it is in the log.
    end: u64,
    index: u64,
    written: Option<(u64, u64)>,
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
            end: 0,
            index: 0,
            written: None,
        }
    }

    /// Whether anything has been given to it.
    pub(crate) const fn is_begun(&self) -> bool {
        self.end > 0 || !self.rest.is_empty()
    }

    /// Adds bytes; whole batches go to the log at once.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.rest.extend_from_slice(bytes);
        while self.rest.len() >= CHUNK * BATCH {
            let batch: Vec<u8> = self.rest.drain(..CHUNK * BATCH).collect();
            self.append(self.end, &batch).await?;
        }
        Ok(())
    }

    /// Writes what is left to the log.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return Ok(());
        }
        self.append(self.end, &rest).await
    }

    /// Writes what lies behind a hole to the log; nothing else is added afterwards.
    pub(crate) async fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.append(at, bytes).await
    }

    /// The reference to what is in the log by now, to a blob of `bytes` bytes as a whole.
    pub(crate) fn reference(&self, bytes: u64) -> Option<BlobRef> {
        let id = self.id;
        self.written
            .map(|(first, last)| BlobRef::new(id, first, last, bytes))
    }

    /// Writes what is left; the reference is good when this returns.
    pub(crate) async fn finish(mut self) -> Result<Option<BlobRef>, Error> {
        self.flush().await?;
        Ok(self.reference(self.end))
    }

    /// Reads what was given to it, in the log or not: at most `limit` bytes from the first one at `offset` or behind it.
    pub(crate) async fn read(&self, offset: u64, limit: usize) -> Result<(u64, Vec<u8>), Error> {
        if let Some(reference) = self.reference(self.end).filter(|_| offset < self.end) {
            let (log, conversation) = (&self.log, self.conversation);
            return read(log, conversation, self.session, reference, offset, limit).await;
        }
        let skip = usize::try_from(offset.saturating_sub(self.end)).unwrap_or(usize::MAX);
        let rest = self.rest.get(skip..).unwrap_or_default();
        Ok((offset, rest[..rest.len().min(limit)].to_vec()))
    }

    async fn append(&mut self, mut at: u64, bytes: &[u8]) -> Result<(), Error> {
        let time = self.clock.now().as_millis();
        let mut entries = Vec::new();
        for bytes in bytes.chunks(CHUNK) {
            let chunk = Chunk {
                blob: self.id,
                index: self.index,
                at: Some(at),
                base64: STANDARD.encode(bytes),
            };
            self.index += 1;
            at += bytes.len() as u64;
            let data = to_raw_value(&chunk).map_err(|source| Error::Backend {
                backend: "dao",
                source: Box::new(source),
            })?;
            entries.push(NewEntry::new(time, data));
        }
        let key = blobs_key(self.conversation, self.session)?;
        let appended = self.log.append(&key, entries).await?;
        self.end = at;
        let first = self.written.map_or(appended.first, |(first, _)| first);
        self.written = Some((first, appended.last));
        Ok(())
    }
}

/// The bytes of an image as a client or tool gave it; what is no base64 is kept as no bytes at all.
pub(crate) fn decode(base64: &str) -> Vec<u8> {
    STANDARD.decode(base64).unwrap_or_default()
}

/// Reads a blob: at most `limit` bytes, and the offset of the first of them, which is `offset` or behind it.
///
/// What is not kept or damaged is passed over at the beginning and ends the piece elsewhere. A reference whose last
/// chunk is 0 was made while the blob was being written: all that is there by now is read.
pub(crate) async fn read(
    log: &Arc<dyn LogStorage>,
    conversation: ConversationId,
    session: SessionId,
    blob: BlobRef,
    offset: u64,
    limit: usize,
) -> Result<(u64, Vec<u8>), Error> {
    let key = blobs_key(conversation, session)?;
    let last = if blob.last == 0 { u64::MAX } else { blob.last };
    // No chunk is larger than that, so as many lie before the one that is looked for.
    let before = offset.min(HEAD) / CHUNK as u64;
    let mut cursor = (blob.first + before).saturating_sub(1);
    let mut piece = Piece::new(offset, limit);
    while cursor < last {
        let options = ReadOptions::default().cursor(cursor).limit(64);
        let page = log.read(&key, options).await?;
        for entry in page.entries {
            cursor = entry.seq;
            if entry.seq > last {
                return Ok(piece.finish());
            }
            let EntryData::Json(data) = &entry.data else {
                continue;
            };
            let chunk = serde_json::from_str::<Chunk>(data.get());
            if let Some(chunk) = chunk.ok().filter(|chunk| chunk.blob == blob.id)
                && !piece.take(&chunk)
            {
                return Ok(piece.finish());
            }
        }
        if page.next.is_none() {
            break;
        }
    }
    Ok(piece.finish())
}

/// A piece of a blob that is being read.
struct Piece {
    offset: u64,
    limit: usize,
    bytes: Vec<u8>,
}

impl Piece {
    const fn new(offset: u64, limit: usize) -> Self {
        let bytes = Vec::new();
        Self {
            offset,
            limit,
            bytes,
        }
    }

    /// Takes the next chunk; says whether more is wanted.
    fn take(&mut self, chunk: &Chunk) -> bool {
        let at = chunk.at.unwrap_or(chunk.index * CHUNK as u64);
        let bytes = STANDARD.decode(&chunk.base64).unwrap_or_default();
        let wanted = self.offset + self.bytes.len() as u64;
        if at + bytes.len() as u64 <= wanted {
            return true;
        }
        if self.bytes.is_empty() {
            self.offset = self.offset.max(at);
        } else if at > wanted {
            return false;
        }
        let skip = usize::try_from(self.offset.saturating_sub(at)).unwrap_or(0);
        let skip = if self.bytes.is_empty() { skip } else { 0 };
        self.bytes.extend_from_slice(&bytes[skip..]);
        self.bytes.len() < self.limit
    }

    fn finish(mut self) -> (u64, Vec<u8>) {
        self.bytes.truncate(self.limit);
        (self.offset, self.bytes)
    }
}

//! What a tool says while it runs: live text for clients, and the whole of it for the blob stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use openvaala_executor::tool::{Kept, OutputSink};
use openvaala_protocol::content::BlobRef;
use openvaala_protocol::event::{Delta, Live};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_storage::Error;
use tokio::sync::mpsc;

use crate::conversation::FeedSender;
use crate::dao::blob::BlobWriter;

/// How much output of one call is kept; what comes after it is counted and left out.
pub(crate) const MAX_OUTPUT: u64 = 64 << 20;
/// Output up to this size waits in memory for the end of the call: the model may see all of it anyway.
const SMALL: usize = 64 << 10;

/// The tool's end of a spool.
#[derive(Debug)]
pub(crate) struct SpoolSink {
    sender: mpsc::UnboundedSender<Message>,
    written: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Bytes(Bytes),
    End,
}

impl SpoolSink {
    /// Nothing more is taken, even if the tool keeps its end.
    pub(crate) fn end(&self) {
        let _ = self.sender.send(Message::End);
    }

    /// Bytes that the tool wrote, kept or not.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl OutputSink for SpoolSink {
    async fn write(&self, mut bytes: Bytes) {
        let before = self
            .written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let room = usize::try_from(MAX_OUTPUT.saturating_sub(before)).unwrap_or(usize::MAX);
        bytes.truncate(room);
        if !bytes.is_empty() {
            let _ = self.sender.send(Message::Bytes(bytes));
        }
    }

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

/// The other end: forwards and keeps.
pub(crate) struct Spool {
    receiver: mpsc::UnboundedReceiver<Message>,
    feed: FeedSender,
    session: SessionId,
    item: ItemId,
    decoder: Decoder,
    offset: u64,
    small: Vec<u8>,
    blob: BlobWriter,
    failed: Option<Error>,
}

/// What a spool has kept.
pub(crate) struct Spooled {
    small: Vec<u8>,
    blob: BlobWriter,
    failed: Option<Error>,
}

/// Makes the two ends of a spool for the result `item`.
pub(crate) fn spool(
    feed: FeedSender,
    session: SessionId,
    item: ItemId,
    blob: BlobWriter,
) -> (Arc<SpoolSink>, Spool) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let sink = SpoolSink {
        sender,
        written: AtomicU64::new(0),
    };
    let (small, decoder) = (Vec::new(), Decoder::default());
    let (offset, failed) = (0, None);
    let spool = Spool {
        receiver,
        feed,
        session,
        item,
        decoder,
        offset,
        small,
        blob,
        failed,
    };
    (Arc::new(sink), spool)
}

impl Spool {
    /// Takes all that comes until the end is told or the tool's end is dropped.
    pub(crate) async fn run(mut self) -> Spooled {
        while let Some(Message::Bytes(bytes)) = self.receiver.recv().await {
            let text = self.decoder.push(&bytes);
            self.show(text).await;
            self.keep(&bytes).await;
        }
        let rest = self.decoder.finish();
        self.show(rest).await;
        Spooled {
            small: self.small,
            blob: self.blob,
            failed: self.failed,
        }
    }

    async fn show(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let (session_id, item_id, offset) = (self.session, self.item, self.offset);
        self.offset += text.len() as u64;
        self.feed
            .live(Live::Delta(Delta {
                session_id,
                item_id,
                offset,
                text,
            }))
            .await;
    }

    async fn keep(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.small.extend_from_slice(bytes);
        if self.small.len() > SMALL {
            let bytes = std::mem::take(&mut self.small);
            self.failed = self.blob.push(&bytes).await.err();
        }
    }
}

impl Spooled {
    /// Adds text that did not come through the sink.
    pub(crate) fn add(&mut self, text: &str) {
        self.small.extend_from_slice(text.as_bytes());
    }

    /// Keeps the whole output on disk; it is flushed when this returns.
    pub(crate) async fn store(mut self) -> Result<Option<BlobRef>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.blob.push(&self.small).await?;
        self.blob.finish().await
    }

    /// Ends a blob that was begun; writes nothing if there is none.
    pub(crate) async fn finish(self) -> Result<Option<BlobRef>, Error> {
        if self.blob.is_begun() {
            self.store().await
        } else {
            Ok(None)
        }
    }
}

/// Turns bytes into text as they come; a character cut between two pieces waits for its rest.
#[derive(Debug, Default)]
struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.rest.len());
        let mut used = 0;
        loop {
            match std::str::from_utf8(&self.rest[used..]) {
                Ok(good) => {
                    text.push_str(good);
                    self.rest.clear();
                    return text;
                }
                Err(error) => {
                    let good = used + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.rest[used..good]));
                    let Some(bad) = error.error_len() else {
                        self.rest.drain(..good);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    used = good + bad;
                }
            }
        }
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_the_same_however_its_bytes_are_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(0xE4u8), Just(0xBD), Just(0xA0), Just(0xF0), any::<u8>()], 0..64),
            cuts in proptest::collection::vec(0usize..64, 0..8),
        ) {
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut text = String::new();
            for pair in cuts.windows(2) {
                text.push_str(&decoder.push(&bytes[pair[0]..pair[1]]));
            }
            text.push_str(&decoder.finish());
            prop_assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_character_waits_for_its_rest() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(&[0xE4, 0xBD]), "");
        assert_eq!(decoder.push(&[0xA0, b'!']), "你!");
    }
}

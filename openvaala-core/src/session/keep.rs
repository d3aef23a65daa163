//! Keeps the output of a call: small ones in memory, long ones in the blob stream, the end of very long ones.

use std::collections::VecDeque;

use openvaala_protocol::content::BlobRef;
use openvaala_storage::Error;

use crate::dao::blob::{BlobWriter, CHUNK, HEAD};

/// Output up to this size waits in memory for the end of the call: the model may see all of it anyway.
const SMALL: usize = 64 << 10;
/// How many chunks of the end are kept behind the head: 1 MiB, so that with the head it makes 256 MiB.
const TAIL_CHUNKS: usize = 16;

/// The output of one call.
#[derive(Debug)]
pub(super) struct Keeper {
    blob: BlobWriter,
    small: Vec<u8>,
    tail: Tail,
    bytes: u64,
}

impl Keeper {
    pub(super) fn new(blob: BlobWriter) -> Self {
        Self {
            blob,
            small: Vec::new(),
            tail: Tail::new(HEAD),
            bytes: 0,
        }
    }

    /// How many bytes were written.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of them, between head and tail, are not kept.
    pub(super) const fn lost(&self) -> u64 {
        self.tail.at.saturating_sub(HEAD)
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let room = usize::try_from(HEAD.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let (head, tail) = bytes.split_at(room.min(bytes.len()));
        self.bytes += bytes.len() as u64;
        self.tail.push(tail);
        if self.blob.is_begun() {
            return self.blob.push(head).await;
        }
        self.small.extend_from_slice(head);
        if self.small.len() > SMALL {
            self.begin().await?;
        }
        Ok(())
    }

    /// Moves what waits in memory to the blob.
    async fn begin(&mut self) -> Result<(), Error> {
        let small = std::mem::take(&mut self.small);
        self.blob.push(&small).await
    }

    /// Writes to the log what there is by now; the reference is one of a blob that is being written.
    pub(super) async fn open(&mut self) -> Result<Option<BlobRef>, Error> {
        self.begin().await?;
        self.blob.flush().await?;
        Ok(self.blob.reference(self.bytes).map(|mut blob| {
            blob.last = 0;
            blob
        }))
    }

    /// Writes all of it to the log; flushed when this returns. Nothing may be added afterwards.
    pub(super) async fn close(&mut self) -> Result<Option<BlobRef>, Error> {
        self.begin().await?;
        self.blob.flush().await?;
        let tail = self.tail.take();
        for (at, bytes) in tail {
            self.blob.put(at, &bytes).await?;
        }
        Ok(self.blob.reference(self.bytes))
    }

    /// The same if some of it is in the log already; writes nothing if all of it is in memory.
    pub(super) async fn close_if_begun(&mut self) -> Result<Option<BlobRef>, Error> {
        if self.blob.is_begun() {
            self.close().await
        } else {
            Ok(None)
        }
    }

    /// Reads at most `limit` bytes from the first one at `offset` or behind it that is kept.
    pub(super) async fn read(&self, offset: u64, limit: usize) -> Result<(u64, Vec<u8>), Error> {
        if !self.blob.is_begun() {
            let skip = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = self.small.get(skip..).unwrap_or_default();
            return Ok((offset, rest[..rest.len().min(limit)].to_vec()));
        }
        let (at, bytes) = self.blob.read(offset, limit).await?;
        if !bytes.is_empty() {
            return Ok((at, bytes));
        }
        Ok(self
            .tail
            .read(offset, limit)
            .unwrap_or((offset, Vec::new())))
    }
}

/// The last bytes of an output, in chunks.
#[derive(Debug)]
struct Tail {
    /// The offset of the first byte of the first chunk.
    at: u64,
    chunks: VecDeque<Vec<u8>>,
}

impl Tail {
    const fn new(at: u64) -> Self {
        let chunks = VecDeque::new();
        Self { at, chunks }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.chunks.back().is_none_or(|last| last.len() == CHUNK) {
                let fresh = self.fresh();
                self.chunks.push_back(fresh);
            }
            let Some(last) = self.chunks.back_mut() else {
                return;
            };
            let (taken, rest) = bytes.split_at(bytes.len().min(CHUNK - last.len()));
            last.extend_from_slice(taken);
            bytes = rest;
        }
    }

    /// An empty chunk: that of the oldest bytes if there are enough.
    fn fresh(&mut self) -> Vec<u8> {
        if self.chunks.len() < TAIL_CHUNKS {
            return Vec::with_capacity(CHUNK);
        }
        let mut oldest = self.chunks.pop_front().unwrap_or_default();
        self.at += oldest.len() as u64;
        oldest.clear();
        oldest
    }

    /// Gives all chunks with their offsets away.
    fn take(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut at = self.at;
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        chunks
            .map(|bytes| {
                let begin = at;
                at += bytes.len() as u64;
                (begin, bytes)
            })
            .collect()
    }

    fn read(&self, offset: u64, limit: usize) -> Option<(u64, Vec<u8>)> {
        let mut at = self.at;
        for chunk in &self.chunks {
            let end = at + chunk.len() as u64;
            if offset < end {
                let begin = offset.max(at);
                let skip = usize::try_from(begin - at).unwrap_or(0);
                let rest = &chunk[skip..];
                return Some((begin, rest[..rest.len().min(limit)].to_vec()));
            }
            at = end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_tail_has_the_last_bytes_at_their_places(
            pieces in proptest::collection::vec(1usize..200_000, 1..40),
            offset in 0u64..3_000_000,
        ) {
            let all: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|n| (n % 251) as u8).collect();
            let mut tail = Tail::new(0);
            let mut from = 0;
            for len in pieces {
                tail.push(&all[from..from + len]);
                from += len;
            }
            let kept = all.len() - usize::try_from(tail.at).unwrap();
            prop_assert!(kept == all.len() || kept > CHUNK * (TAIL_CHUNKS - 1), "{kept}");
            let expected = usize::try_from(offset.max(tail.at)).unwrap();
            match tail.read(offset, 1_000) {
                Some((at, bytes)) => {
                    prop_assert_eq!(at, expected as u64);
                    prop_assert_eq!(&bytes[..], &all[expected..expected + bytes.len()]);
                }
                None => prop_assert!(expected >= all.len()),
            }
            let whole: Vec<u8> = tail.take().into_iter().flat_map(|(_, bytes)| bytes).collect();
            prop_assert_eq!(&whole[..], &all[all.len() - kept..]);
        }
    }

    #[test]
    fn the_tail_uses_no_more_memory_than_it_keeps() {
        let mut tail = Tail::new(0);
        for _ in 0..1_000 {
            tail.push(&[7; 100_000]);
        }
        let capacity: usize = tail.chunks.iter().map(Vec::capacity).sum();
        assert_eq!(capacity, CHUNK * TAIL_CHUNKS);
    }
}

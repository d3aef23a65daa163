//! Output kept in memory.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::tool::{Kept, OutputSink};

/// Keeps the head and the tail of an output in memory, for embedders and tests.
///
/// ```
/// use openvaala_executor::output::MemoryOutput;
/// use openvaala_executor::tool::OutputSink;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let output = MemoryOutput::new(8);
/// output.write("0123456789".into()).await;
/// let head = output.read(0, 100).await.unwrap();
/// assert_eq!((head.offset, &head.bytes[..]), (0, &b"0123"[..]));
/// let tail = output.read(head.next(), 100).await.unwrap();
/// assert_eq!((tail.offset, &tail.bytes[..]), (6, &b"6789"[..]));
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryOutput {
    cap: usize,
    /// Writer and readers are different tasks; held for a copy, never over an await.
    ends: Mutex<Ends>,
}

#[derive(Debug, Default)]
struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl MemoryOutput {
    /// A sink that keeps at most `cap` bytes: half of it the first ones, the rest the last ones.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            ends: Mutex::default(),
        }
    }

    /// The number of bytes that were written, kept or not.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.ends().total
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ends {
    fn push(&mut self, bytes: &[u8], cap: usize) {
        self.total += bytes.len() as u64;
        let (head_cap, tail_cap) = (cap / 2, cap - cap / 2);
        let (head, rest) = bytes.split_at(bytes.len().min(head_cap - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    fn read(&self, offset: u64, limit: usize) -> Kept {
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        if at < self.head.len() {
            let end = self.head.len().min(at.saturating_add(limit));
            return Kept::new(offset, Bytes::copy_from_slice(&self.head[at..end]));
        }
        let tail_start = self.total - self.tail.len() as u64;
        let start = offset.clamp(tail_start, self.total);
        let skip = usize::try_from(start - tail_start).unwrap_or(usize::MAX);
        let bytes = self.tail.iter().skip(skip).take(limit).copied().collect();
        Kept::new(start.max(offset), bytes)
    }
}

#[async_trait]
impl OutputSink for MemoryOutput {
    async fn write(&self, bytes: Bytes) {
        self.ends().push(&bytes, self.cap);
    }

    async fn read(&self, offset: u64, limit: usize) -> Option<Kept> {
        Some(self.ends().read(offset, limit))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn all(output: &MemoryOutput, limit: usize) -> Vec<(u64, Bytes)> {
        let (mut pieces, mut offset) = (Vec::new(), 0);
        loop {
            let kept = output.read(offset, limit).now_or_never().unwrap().unwrap();
            if kept.bytes.is_empty() {
                return pieces;
            }
            offset = kept.next();
            pieces.push((kept.offset, kept.bytes));
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_stands_where_it_was_written(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..10),
            cap in 1usize..60,
            limit in 1usize..30,
        ) {
            let output = MemoryOutput::new(cap);
            let whole = pieces.concat();
            for piece in pieces {
                output.write(piece.into()).now_or_never().unwrap();
            }
            let mut kept = 0;
            for (offset, bytes) in all(&output, limit) {
                let offset = usize::try_from(offset).unwrap();
                prop_assert_eq!(&whole[offset..offset + bytes.len()], &bytes[..]);
                kept += bytes.len();
            }
            prop_assert_eq!(kept, whole.len().min(cap));
            prop_assert_eq!(output.written(), whole.len() as u64);
        }
    }

    #[test]
    fn a_read_behind_the_end_gives_nothing() {
        let output = MemoryOutput::new(10);
        output.write("abc".into()).now_or_never().unwrap();
        let kept = output.read(7, 10).now_or_never().unwrap();
        assert_eq!(kept, Some(Kept::new(7, Bytes::new())));
    }
}

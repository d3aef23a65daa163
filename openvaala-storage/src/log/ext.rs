//! Conveniences for callers of every `LogStorage`.

use std::collections::VecDeque;
use std::future::Future;

use futures::stream::{self, BoxStream, StreamExt};
use serde::Serialize;
use serde_json::value;

use crate::error::{Error, Result};
use crate::log::{Appended, Entry, LogStorage, NewEntry, Page, ReadOptions, StreamKey};

const READ_ALL_PAGE: usize = 1000;

/// Conveniences over [`LogStorage`], implemented for every storage.
pub trait LogStorageExt: LogStorage {
    /// Writes values as JSON and appends them as one batch with the same time.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] when a value can't be JSON (nothing is appended then), and those of [`LogStorage::append`].
    fn append_json<T: Serialize + Sync>(
        &self,
        key: &StreamKey,
        time: i64,
        values: &[T],
    ) -> impl Future<Output = Result<Appended>> + Send {
        let batch: Result<Vec<NewEntry>> = values
            .iter()
            .map(|value| match value::to_raw_value(value) {
                Ok(data) => Ok(NewEntry::new(time, data)),
                Err(source) => Err(Error::Encode { source }),
            })
            .collect();
        async move { self.append(key, batch?).await }
    }

    /// Reads a whole stream, ascending, into memory.
    ///
    /// # Errors
    ///
    /// Those of [`LogStorage::read`].
    fn read_all(&self, key: &StreamKey) -> impl Future<Output = Result<Vec<Entry>>> + Send {
        async move {
            let mut entries = Vec::new();
            let mut options = ReadOptions::ascending().limit(READ_ALL_PAGE);
            loop {
                let page = self.read(key, options).await?;
                entries.extend(page.entries);
                match page.next {
                    Some(next) => options.cursor = next,
                    None => return Ok(entries),
                }
            }
        }
    }

    /// Reads a stream entry by entry; `options.limit` is the size of the pages read underneath, not the end.
    ///
    /// The stream ends after its first error.
    fn stream<'a>(
        &'a self,
        key: &'a StreamKey,
        options: ReadOptions,
    ) -> BoxStream<'a, Result<Entry>> {
        let start = Walk {
            buffered: VecDeque::new(),
            next: Some(options),
        };
        stream::unfold(start, move |mut walk| async move {
            loop {
                if let Some(entry) = walk.buffered.pop_front() {
                    return Some((Ok(entry), walk));
                }
                match self.read(key, walk.next.take()?).await {
                    Ok(page) => walk.take(page, options),
                    Err(error) => return Some((Err(error), walk)),
                }
            }
        })
        .boxed()
    }
}

impl<S: LogStorage + ?Sized> LogStorageExt for S {}

struct Walk {
    buffered: VecDeque<Entry>,
    next: Option<ReadOptions>,
}

impl Walk {
    fn take(&mut self, page: Page, options: ReadOptions) {
        self.buffered = page.entries.into();
        self.next = page.next.map(|cursor| options.cursor(cursor));
    }
}

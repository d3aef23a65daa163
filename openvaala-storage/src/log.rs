//! Append-only streams of JSON entries: the trait, its values and its options.

mod ext;
mod id;

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use serde_json::value::RawValue;

pub use self::ext::LogStorageExt;
pub use self::id::{LogPath, StreamId, StreamKey};
use crate::error::{Error, Result};

/// The largest payload that a back end must accept, in bytes: 128 MiB.
pub const MAX_ENTRY_BYTES: u64 = 128 * 1024 * 1024;

/// The payload bytes after which a page ends, though its limit is not reached: 64 MiB.
pub const MAX_PAGE_BYTES: usize = 64 * 1024 * 1024;

/// How many fingerprints are asked for at the same time where there is no better way.
const FINGERPRINTS: usize = 64;

/// Append-only streams of JSON entries, addressed by path and stream id.
///
/// # Numbers and order
///
/// The entries of a stream are numbered 1, 2, 3 … without a gap, in the order in which they lie in the stream. A
/// batch is contiguous. Two appends that overlap in time may land in either order; an append that begins after
/// another one was acknowledged comes after it. There is no order between streams.
///
/// # Atomicity and durability
///
/// An append is acknowledged when it returns `Ok`: then all its entries are flushed to disk and survive a crash of
/// the process and of the machine, byte for byte. Of a batch that was not acknowledged nothing may be there, or whole
/// entries that are a prefix of the batch; never half an entry, and never an entry without those before it (what a power cut
/// took from the middle of such a batch is served as damaged). After an error the stream is usable again, unless the cause lasts. Readers never see an entry that is not acknowledged, except
/// that after a crash a surviving prefix counts as acknowledged.
///
/// # Cancellation
///
/// Dropping the future of [`append`](Self::append) does not take the append back: it may still happen, whole,
/// or not at all. Dropping any other future has no effect, except that a deletion may still happen.
///
/// # Damage
///
/// A damaged place in the middle of a stream is served as [`EntryData::Damaged`] with its number; what lies before and
/// after is served as ever, and both directions agree. (Where another program has moved or doubled whole entries, they agree from the
/// read on that met the first of them, and which of the doubles counts may change with the next append.) A damaged place never makes another stream fail.
///
/// # Payloads
///
/// A payload comes back as the same text: spacing, key order, duplicate keys, big integers and escapes are kept.
/// The only change allowed is that raw line breaks between tokens become spaces.
///
/// # Wrappers
///
/// A storage that wraps another one forwards every method; write its impl under
/// `#[deny(clippy::missing_trait_methods)]`. The one default method, [`fingerprints`](Self::fingerprints), only calls the storage's own
/// [`fingerprint`](Self::fingerprint), so that a wrapper that forgets it is slow and not wrong: conveniences are in [`LogStorageExt`].
#[async_trait]
pub trait LogStorage: Debug + Send + Sync + 'static {
    /// Appends a batch to a stream, which is created if needed, and returns once it is flushed.
    ///
    /// # Errors
    ///
    /// [`EmptyBatch`](crate::Error::EmptyBatch), [`EntryTooLarge`](crate::Error::EntryTooLarge) over [`MAX_ENTRY_BYTES`], and
    /// whatever the back end reports; no entry of the batch is acknowledged then.
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended>;

    /// Reads one page of a stream.
    ///
    /// A limit of 0 counts as 1. A page may be shorter than the limit though there is more, when its payloads exceed
    /// [`MAX_PAGE_BYTES`]: only [`Page::next`] tells.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::Error::NotFound) for an unknown stream; [`InvalidCursor`](crate::Error::InvalidCursor)
    /// for a cursor beyond the stream's last entry (descending: beyond the number after it), as happens when the stream was
    /// deleted and begun anew.
    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page>;

    /// Returns a value that changes with every append; `None` when there is no such stream.
    ///
    /// It never opens the stream, so it is cheap enough to compare thousands at start.
    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>>;

    /// Returns what [`fingerprint`](Self::fingerprint) says of each of these streams, in their order: as many results as keys.
    ///
    /// One that fails does not keep the others from their answers. They need not be of the same moment. A few hundred at once are a
    /// good number. By default each is asked for by itself, 64 at the same time; a back end that can look at many in one go
    /// does so.
    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        let mut each = Vec::with_capacity(keys.len());
        for key in keys {
            each.push(self.fingerprint(key));
        }
        stream::iter(each).buffered(FINGERPRINTS).collect().await
    }

    /// Returns the last number and the fingerprint of a stream; `None` when there is no such stream.
    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>>;

    /// Lists what lies directly under a path, or under the root for `None`; nothing there is an empty listing.
    async fn list(&self, path: Option<&LogPath>) -> Result<Listing>;

    /// Deletes a stream and returns whether it existed.
    ///
    /// After a crash the stream is whole or gone. A stream of the same name begins again at 1. An append that arrives while the
    /// deletion runs fails with [`Deleted`](crate::Error::Deleted) or comes after it.
    async fn delete(&self, key: &StreamKey) -> Result<bool>;

    /// Deletes all streams at and below a path and returns whether there was one.
    ///
    /// `conversations/ab` never touches `conversations/abc`. The rules of [`delete`](Self::delete) hold for each stream.
    async fn delete_path(&self, path: &LogPath) -> Result<bool>;

    /// Moves all streams at and below a path to another path, and returns whether there was something to move.
    ///
    /// Whole or not at all, also across a crash; flushed when it returns. Numbers, cursors and fingerprints stay. An append that arrives
    /// meanwhile for either path fails with [`Deleted`](crate::Error::Deleted), or comes before or after the move. After an
    /// error everything is at one of the two paths.
    ///
    /// # Errors
    ///
    /// [`PathExists`](crate::Error::PathExists) when there is anything at or below `to`; [`InvalidRename`](crate::Error::InvalidRename)
    /// when one path contains the other, or `to` lies deeper than `from`; whatever the back end reports.
    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool>;
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: LogStorage + ?Sized> LogStorage for Arc<S> {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        (**self).append(key, batch).await
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        (**self).read(key, options).await
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        (**self).fingerprint(key).await
    }

    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        (**self).fingerprints(keys).await
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        (**self).info(key).await
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        (**self).list(path).await
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        (**self).delete(key).await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        (**self).delete_path(path).await
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        (**self).rename_path(from, to).await
    }
}

/// An entry to append.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// When it happened, in milliseconds since the epoch, by the caller's clock.
    pub time: i64,
    /// The payload.
    pub data: Box<RawValue>,
}

impl NewEntry {
    /// Makes an entry of a time in milliseconds since the epoch and a payload.
    pub fn new(time: i64, data: Box<RawValue>) -> Self {
        Self { time, data }
    }
}

/// An entry of a stream.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number in the stream, from 1.
    pub seq: u64,
    /// The time it was given, in milliseconds since the epoch; 0 for a damaged entry.
    pub time: i64,
    /// The payload, or what is left of it.
    pub data: EntryData,
}

impl Entry {
    /// Returns the payload; `None` when the entry is damaged.
    pub fn json(&self) -> Option<&RawValue> {
        match &self.data {
            EntryData::Json(data) => Some(data),
            EntryData::Damaged(_) => None,
        }
    }
}

/// The payload of an entry as it was found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EntryData {
    /// The place is damaged: the entry is lost, its neighbours are not.
    Damaged(Damage),
    /// The payload as it was appended.
    Json(Box<RawValue>),
}

/// A damaged place in a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damage {
    /// Where it begins, in bytes from the start of the stream.
    pub offset: u64,
    /// How many bytes it has; 0 when an entry is missing altogether.
    pub length: u64,
    /// What is wrong there.
    pub reason: String,
}

/// The direction of a read or a listing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Order {
    /// From the first to the last.
    #[default]
    Ascending,
    /// From the last to the first.
    Descending,
}

/// Which entries [`LogStorage::read`] returns; by default the first 100, ascending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadOptions {
    /// The direction.
    pub order: Order,
    /// 0 = the beginning in that direction, otherwise strictly after the entry with this number.
    pub cursor: u64,
    /// The most entries in the page; 0 counts as 1.
    pub limit: usize,
}

impl ReadOptions {
    /// Reads from the first entry on.
    pub fn ascending() -> Self {
        Self::default()
    }

    /// Reads from the last entry backwards.
    pub fn descending() -> Self {
        Self::default().order(Order::Descending)
    }

    /// Sets the direction.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Sets the number after which, in the direction of the read, the page begins; 0 = the beginning.
    #[must_use]
    pub fn cursor(mut self, cursor: u64) -> Self {
        self.cursor = cursor;
        self
    }

    /// Sets the most entries in the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            order: Order::Ascending,
            cursor: 0,
            limit: 100,
        }
    }
}

/// What every back end has to do alike.
impl ReadOptions {
    /// Refuses a cursor that a stream with this last number never gave out.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidCursor`].
    pub fn check_cursor(&self, last: u64) -> Result<()> {
        let allowed = match self.order {
            Order::Ascending => last,
            Order::Descending => last + 1,
        };
        if self.cursor <= allowed {
            return Ok(());
        }
        Err(Error::InvalidCursor {
            cursor: self.cursor.to_string(),
            reason: "the stream does not reach so far; it was deleted and begun anew, or cut back",
        })
    }

    /// Makes the page of the entries that were found, given the number of the stream's last entry.
    pub fn page(&self, entries: Vec<Entry>, last: u64) -> Page {
        let end = match self.order {
            Order::Ascending => last,
            Order::Descending => 1,
        };
        let next = entries
            .last()
            .map(|entry| entry.seq)
            .filter(|seq| *seq != end);
        Page { entries, next }
    }
}

/// Refuses a batch that no storage takes.
///
/// # Errors
///
/// [`Error::EmptyBatch`]; [`Error::EntryTooLarge`] for a payload over [`MAX_ENTRY_BYTES`].
pub fn check_batch(batch: &[NewEntry]) -> Result<()> {
    if batch.is_empty() {
        return Err(Error::EmptyBatch);
    }
    let sizes = batch.iter().map(|entry| entry.data.get().len() as u64);
    match sizes.max() {
        Some(size) if size > MAX_ENTRY_BYTES => Err(Error::EntryTooLarge {
            size,
            limit: MAX_ENTRY_BYTES,
        }),
        _ => Ok(()),
    }
}

/// Refuses a move that no storage makes.
///
/// # Errors
///
/// [`Error::InvalidRename`].
pub fn check_rename(from: &LogPath, to: &LogPath) -> Result<()> {
    let reason = if from.contains(to) || to.contains(from) {
        "one of the two contains the other"
    } else if to.segments().count() > from.segments().count() {
        "the new path must not lie deeper than the old one"
    } else {
        return Ok(());
    };
    Err(Error::InvalidRename {
        from: from.clone(),
        to: to.clone(),
        reason,
    })
}

/// One page of a stream.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The entries in the direction of the read.
    pub entries: Vec<Entry>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<u64>,
}

/// What an acknowledged append did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Appended {
    /// The number of the batch's first entry.
    pub first: u64,
    /// The number of the batch's last entry.
    pub last: u64,
    /// The stream's fingerprint after the append (and those that shared its flush).
    pub fingerprint: Fingerprint,
}

/// An opaque state of a stream: two equal ones mean that nothing was appended or replaced in between.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Takes the text that a back end makes, or that [`as_str`](Self::as_str) returned earlier.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, to be stored and compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamInfo {
    /// The number of the last entry; 0 for an empty stream.
    pub last: u64,
    /// The fingerprint that belongs to it.
    pub fingerprint: Fingerprint,
}

/// What lies directly under a path, sorted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Listing {
    /// The paths one segment below.
    pub paths: Vec<LogPath>,
    /// The streams at the path itself.
    pub streams: Vec<StreamId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_35_an_entry_over_128_mib_is_refused_with_the_limit() {
        let mut text = "1".repeat(MAX_ENTRY_BYTES as usize);
        let entry = |text: String| NewEntry::new(0, RawValue::from_string(text).unwrap());
        check_batch(&[entry(text.clone())]).unwrap();
        text.push('1');
        let error = check_batch(&[entry(text)]).unwrap_err();
        assert!(
            matches!(error, Error::EntryTooLarge { size, limit } if size == limit + 1),
            "{error}"
        );
    }
}

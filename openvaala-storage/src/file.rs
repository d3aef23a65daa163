//! Logs as JSON Lines files: one directory per path, one file per stream.
//!
//! ```text
//! <root>/openvaala.lock                          taken while the storage is open
//! <root>/conversations/0192f3/metadata.jsonl     the stream `metadata` at `conversations/0192f3`
//! <root>/conversations/0192f3/metadata.torn-1    bytes that were cut from its end, kept to look at
//! <root>/conversations/0192f3/metadata.offsets   the places of some of its entries, once it has a MiB; may be deleted at any time
//! ```
//!
//! A line is an entry: `{"seq":7,"time":1700000000000,"crc":"f79b01f4","data":{"text":"hi"}}`. `crc` is the CRC32C, as 8 lower-case
//! hex digits, of the bytes `7,1700000000000,{"text":"hi"}`: number and time as written in the line, each followed by a comma,
//! then the payload as written in the line. Reading tolerates blank lines, a byte order mark and Windows line ends.
//!
//! # Threads
//!
//! A coordinator thread owns the table of streams. Each append moves its stream's file to one of at most 16 threads, which writes and
//! flushes all batches that wait for the stream at once, and gives it back. Pages are read on 4 more threads. No lock
//! is held anywhere. Dropping the storage waits for what has begun and ends the threads.
//!
//! # Reading
//!
//! No read needs the whole file. The place of a number is found by halving the file with a few short reads; a stream of a MiB or more
//! also has a side file with some places, which shortens the way. It is made and brought up to date in the background after appends and
//! first reads, and never believed: each place counts once the line that is there tells the number. A wrong, old, newer or missing
//! side file costs time, never an answer. A storage that is open for reading only doesn't write it.
//!
//! # Recovery
//!
//! The first use of a stream looks at its last lines only. What follows the last sound line (half a line, zeros after a power
//! cut) is not served; the first append cuts it, after copying it to a side file, and adds a [`Report`]. Damage in the middle is never cut.
//! Where a power cut has kept the end of an unacknowledged batch but lost its beginning, the lost entries are served as damaged: nobody can tell
//! that from damage of acknowledged ones.
//! When the disk refuses to flush, the append fails with [`Error::Poisoned`] and is cut back; the next one opens the file
//! anew and cuts it back to the last acknowledged entry first, for the cut may have failed as well.

mod commit;
mod coordinator;
mod create;
mod layout;
mod line;
mod lock;
mod long;
mod look;
mod offsets;
mod place;
mod pool;
mod read;
mod recover;
mod remove;
mod rename;
mod scan;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use async_trait::async_trait;
use tokio::sync::oneshot;

use self::commit::Batch;
use self::coordinator::{Coordinator, Message, Request};
use self::layout::Layout;
use self::lock::Lock;
use self::look::{Look, Seen};
use self::remove::Target;
use crate::error::{Error, Result};
use crate::fs::{Fs, RealFs};
use crate::log::{
    Appended, Fingerprint, Listing, LogPath, LogStorage, NewEntry, Page, ReadOptions, StreamInfo,
    StreamKey, check_batch, check_rename,
};

/// How a file storage is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileOptions {
    /// The directory that holds everything; created with the mode 0700 if needed.
    pub root: PathBuf,
    /// The file system; that of this machine by default.
    pub fs: Arc<dyn Fs>,
    /// The time of opening for the lock file, in milliseconds since the epoch.
    pub started_at: Option<i64>,
    /// How many streams are flushed at the same time; 16 by default, at least 1.
    pub flush_threads: usize,
    /// How many files stay open between appends; 192 by default.
    pub open_files: usize,
}

impl FileOptions {
    /// Opens a directory with the defaults.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            fs: Arc::new(RealFs::default()),
            started_at: None,
            flush_threads: 16,
            open_files: 192,
        }
    }

    /// Sets the file system.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// Sets the time of opening, in milliseconds since the epoch.
    #[must_use]
    pub fn started_at(mut self, time: i64) -> Self {
        self.started_at = Some(time);
        self
    }

    /// Sets how many streams are flushed at the same time.
    #[must_use]
    pub fn flush_threads(mut self, threads: usize) -> Self {
        self.flush_threads = threads;
        self
    }

    /// Sets how many files stay open between appends.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files;
        self
    }
}

/// Bytes that were cut from the end of a stream because they were no whole entries.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The stream.
    pub key: StreamKey,
    /// Where the cut bytes began.
    pub offset: u64,
    /// How many bytes were cut.
    pub length: u64,
    /// The file that keeps them.
    pub side_file: PathBuf,
}

/// Bytes at the end of a stream that are no whole entries; nobody is served them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TornTail {
    /// Where they begin.
    pub offset: u64,
    /// How many they are.
    pub length: u64,
}

/// What a file storage has had to suffer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// What was cut from streams since the storage was opened, at most the newest 1000 cuts.
    pub cuts: Vec<Report>,
    /// Streams that a failed write or flush has spoiled and that nobody has used since, sorted: their next append recovers them.
    pub poisoned: Vec<StreamKey>,
    /// The stream whose last append found the disk full, until any append works again.
    pub full: Option<StreamKey>,
}

/// Logs as JSON Lines files below one directory.
///
/// Besides the contract of [`LogStorage`]: a stream that another program changes is read anew; one that it writes to at the very moment of an
/// append makes the append fail.
#[derive(Debug)]
pub struct FileStorage {
    inbox: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl FileStorage {
    /// Opens a directory and takes its exclusive lock; blocks while it does.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] when another storage owns the directory, in this process or another one;
    /// [`Error::NewerFormat`]; [`Error::Io`] naming the path, also when the file system can't lock.
    pub fn open(options: FileOptions) -> Result<Self> {
        let lock = Lock::take(&*options.fs, &options.root, options.started_at)?;
        Self::start(options, Some(lock))
    }

    /// Opens an existing directory without a lock; everything that writes fails with [`Error::ReadOnly`].
    ///
    /// While another process owns the directory, the newest entries may be seen before they are acknowledged there.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when there is no such directory.
    pub fn open_read_only(options: FileOptions) -> Result<Self> {
        let root = options.fs.list(&options.root);
        root.map_err(|source| Error::io("open", &options.root, source))?;
        Self::start(options, None)
    }

    /// Writes the address of the server into the lock file, for whoever is refused; blocks shortly.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Io`].
    pub fn announce(&self, address: &str) -> Result<()> {
        let (reply, result) = mpsc::channel();
        self.send(Request::Announce(address.to_owned(), reply))?;
        result.recv().map_err(|_| Error::Closed)?
    }

    /// Returns what was cut from streams since the storage was opened, at most the newest 1000 cuts; blocks shortly.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn reports(&self) -> Result<Vec<Report>> {
        let (reply, result) = mpsc::channel();
        self.send(Request::Reports(reply))?;
        result.recv().map_err(|_| Error::Closed)
    }

    /// Returns what does not work as it should.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub async fn health(&self) -> Result<Health> {
        let (reply, result) = oneshot::channel();
        self.send(Request::Health(reply))?;
        result.await.map_err(|_| Error::Closed)
    }

    /// Returns the bytes at the end of a stream that are no whole entries; `None` when there are none, or no such stream.
    ///
    /// In a storage that is open for reading they may be an append that the owner of the directory is writing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub async fn torn_tail(&self, key: &StreamKey) -> Result<Option<TornTail>> {
        self.ask(|reply| Request::Look(key.clone(), Look::Torn { reply }))
            .await
    }

    /// Cuts such bytes, after copying them to a side file, as the next append would; returns whether there were any.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Io`], [`Error::Poisoned`].
    pub async fn cut_torn_tail(&self, key: &StreamKey) -> Result<bool> {
        if self.torn_tail(key).await?.is_none() {
            return Ok(false);
        }
        let entries = Vec::new();
        self.ask(|reply| Request::Append(key.clone(), Batch { entries, reply }))
            .await?;
        Ok(true)
    }

    fn start(options: FileOptions, lock: Option<Lock>) -> Result<Self> {
        let failed = |source| Error::io("start a thread for", &options.root, source);
        let layout = Layout {
            fs: Arc::clone(&options.fs),
            root: options.root.as_path().into(),
        };
        let (inbox, messages) = mpsc::channel();
        let mut coordinator = Coordinator::new(layout, &options, lock, &inbox).map_err(failed)?;
        let thread = Builder::new()
            .name("openvaala-storage".to_owned())
            .spawn(move || coordinator.run(&messages))
            .map_err(failed)?;
        Ok(Self {
            inbox,
            thread: Some(thread),
        })
    }

    fn send(&self, request: Request) -> Result<()> {
        let sent = self.inbox.send(Message::Request(request));
        sent.map_err(|_| Error::Closed)
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T>>) -> Request + Send,
    ) -> Result<T> {
        let (reply, result) = oneshot::channel();
        self.send(request(reply))?;
        result.await.unwrap_or(Err(Error::Closed))
    }
}

impl Drop for FileStorage {
    fn drop(&mut self) {
        // The coordinator can be gone only by a panic, then there is nothing to stop.
        let _ = self.inbox.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl LogStorage for FileStorage {
    async fn append(&self, key: &StreamKey, entries: Vec<NewEntry>) -> Result<Appended> {
        check_batch(&entries)?;
        self.ask(|reply| Request::Append(key.clone(), Batch { entries, reply }))
            .await
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        self.ask(|reply| Request::Look(key.clone(), Look::Read { options, reply }))
            .await
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        self.ask(|reply| Request::Look(key.clone(), Look::Fingerprint { reply }))
            .await
    }

    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        let (reply, result) = oneshot::channel();
        let sent = self.send(Request::Glance(keys.to_vec(), reply));
        let seen = match sent {
            Ok(()) => result.await.ok(),
            Err(_) => None,
        };
        let seen = seen.unwrap_or_else(|| vec![Seen::Unsure; keys.len()]);
        let mut found = Vec::with_capacity(keys.len());
        for (key, seen) in keys.iter().zip(seen) {
            found.push(match seen {
                Seen::Absent => Ok(None),
                Seen::File(fingerprint) => Ok(Some(fingerprint)),
                Seen::Unsure => self.fingerprint(key).await,
            });
        }
        found
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        self.ask(|reply| Request::Look(key.clone(), Look::Info { reply }))
            .await
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        self.ask(|reply| Request::List(path.cloned(), reply)).await
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        self.ask(|reply| Request::Remove(Target::Stream(key.clone()), reply))
            .await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        self.ask(|reply| Request::Remove(Target::Path(path.clone()), reply))
            .await
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        check_rename(from, to)?;
        let (from, to) = (from.clone(), to.clone());
        self.ask(|reply| Request::Remove(Target::Move { from, to }, reply))
            .await
    }
}

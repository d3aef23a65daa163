//! Logs that are in memory until they are promoted.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::log::{
    Appended, Entry, EntryData, Fingerprint, Listing, LogPath, LogStorage, LogStorageExt, NewEntry,
    Page, ReadOptions, StreamId, StreamInfo, StreamKey, check_rename,
};
use crate::sqlite::SqliteLogStorage;

/// The most entries that one append of a promotion carries.
const COPY_ENTRIES: usize = 256;

/// A log storage in which whole paths can be kept in memory at first.
///
/// A staged path, and everything below it, is read and written in memory; every other path in the real storage. A listing shows
/// both. Deleting a path leaves it staged. What is staged is lost with the process.
#[derive(Debug)]
pub struct StagedLogStorage {
    real: Arc<dyn LogStorage>,
    memory: SqliteLogStorage,
    staged: ArcSwap<BTreeSet<LogPath>>,
}

impl StagedLogStorage {
    /// Puts a storage in memory in front of a real one.
    pub fn new(real: Arc<dyn LogStorage>, memory: SqliteLogStorage) -> Self {
        Self {
            real,
            memory,
            staged: ArcSwap::default(),
        }
    }

    /// Keeps a path and everything below it in memory from now on; what the real storage has there is hidden until then.
    pub fn stage(&self, path: &LogPath) {
        self.change(|staged| staged.insert(path.clone()));
    }

    /// Tells whether exactly this path was staged and is neither promoted nor discarded.
    pub fn is_staged(&self, path: &LogPath) -> bool {
        self.staged.load().contains(path)
    }

    /// Copies all streams of a staged path to the real storage and uses that from now on.
    ///
    /// The stream `last` at the path itself is copied after all others, in one append: it is the moment at which the
    /// path exists in the real storage. Numbers, times and cursors stay; fingerprints change. What an earlier
    /// promotion has left half copied, which has no stream `last`, is removed first.
    ///
    /// The caller makes sure that nothing is appended to the path meanwhile. Dropping the future leaves the path staged; call it
    /// again.
    ///
    /// # Errors
    ///
    /// [`Error::NotStaged`]; [`Error::NotFound`] when there is no stream `last`; [`Error::AlreadyExists`] when the real storage
    /// has one; what the real storage reports. On each of them the path stays staged, and what was copied is removed if
    /// that is possible.
    pub async fn promote(&self, path: &LogPath, last: &StreamId) -> Result<()> {
        if !self.is_staged(path) {
            return Err(Error::NotStaged { path: path.clone() });
        }
        let last = StreamKey::new(path.clone(), last.clone());
        let mut streams = self.memory.streams_under(path).await?;
        streams.retain(|key| *key != last);
        if self.memory.info(&last).await?.is_none() {
            return Err(Error::NotFound { key: last });
        }
        if self
            .real
            .info(&last)
            .await?
            .is_some_and(|info| info.last > 0)
        {
            return Err(Error::AlreadyExists { path: path.clone() });
        }
        self.real.delete_path(path).await?;
        if let Err(error) = self.copy(&streams, &last).await {
            if let Err(left) = self.real.delete_path(path).await {
                tracing::warn!(%path, error = %left, "a half copy is left; the next promotion removes it");
            }
            return Err(error);
        }
        self.change(|staged| staged.remove(path));
        if let Err(error) = self.memory.delete_path(path).await {
            tracing::warn!(%path, %error, "promoted streams are left in memory");
        }
        Ok(())
    }

    /// Forgets a staged path and all its streams; returns whether it was staged.
    pub async fn discard(&self, path: &LogPath) -> Result<bool> {
        if !self.is_staged(path) {
            return Ok(false);
        }
        self.memory.delete_path(path).await?;
        self.change(|staged| staged.remove(path));
        Ok(true)
    }

    async fn copy(&self, streams: &[StreamKey], last: &StreamKey) -> Result<()> {
        for key in streams {
            let mut options = ReadOptions::ascending().limit(COPY_ENTRIES);
            loop {
                let page = self.memory.read(key, options).await?;
                let batch = page
                    .entries
                    .into_iter()
                    .map(copied)
                    .collect::<Result<_>>()?;
                self.put(key, batch, options.cursor + 1).await?;
                match page.next {
                    Some(next) => options.cursor = next,
                    None => break,
                }
            }
        }
        let entries = self.memory.read_all(last).await?;
        let batch = entries.into_iter().map(copied).collect::<Result<_>>()?;
        self.put(last, batch, 1).await
    }

    async fn put(&self, key: &StreamKey, batch: Vec<NewEntry>, first: u64) -> Result<()> {
        let appended = self.real.append(key, batch).await?;
        if appended.first == first {
            return Ok(());
        }
        let message = format!("{key} was changed while it was promoted");
        Err(Error::backend("staged", message))
    }

    /// Moves a path that no staged path contains but itself: what of it is staged within the memory, the rest within the real storage.
    async fn rename_whole(
        &self,
        from: &LogPath,
        to: &LogPath,
        staged: &BTreeSet<LogPath>,
    ) -> Result<bool> {
        let is_there = |listing: Listing| !listing.paths.is_empty() || !listing.streams.is_empty();
        let exists = || Error::PathExists { path: to.clone() };
        if !is_there(self.list(Some(from)).await?) {
            return Ok(false);
        }
        if staged.iter().any(|path| to.contains(path))
            || is_there(self.memory.list(Some(to)).await?)
        {
            return Err(exists());
        }
        if staged.contains(from) {
            if is_there(self.real.list(Some(to)).await?) {
                return Err(exists());
            }
            let moved = self.memory.rename_path(from, to).await?;
            self.change(|staged| staged.remove(from) && staged.insert(to.clone()));
            return Ok(moved);
        }
        // The real storage first: it is the one that can refuse.
        let real = self.real.rename_path(from, to).await?;
        let memory = self.memory.rename_path(from, to).await?;
        let below: Vec<&LogPath> = staged.iter().filter(|path| from.contains(path)).collect();
        self.change(|staged| {
            for old in &below {
                staged.remove(*old);
                let moved = format!("{to}{}", &old.as_str()[from.as_str().len()..]);
                staged.extend(moved.parse::<LogPath>().ok());
            }
            true
        });
        Ok(real || memory)
    }

    fn change(&self, change: impl Fn(&mut BTreeSet<LogPath>) -> bool) {
        self.staged.rcu(|staged| {
            let mut staged = BTreeSet::clone(staged);
            change(&mut staged);
            staged
        });
    }

    fn storage(&self, path: &LogPath) -> &dyn LogStorage {
        let staged = self.staged.load();
        if staged.iter().any(|staged| staged.contains(path)) {
            &self.memory
        } else {
            &*self.real
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LogStorage for StagedLogStorage {
    async fn append(&self, key: &StreamKey, batch: Vec<NewEntry>) -> Result<Appended> {
        self.storage(&key.path).append(key, batch).await
    }

    async fn read(&self, key: &StreamKey, options: ReadOptions) -> Result<Page> {
        self.storage(&key.path).read(key, options).await
    }

    async fn fingerprint(&self, key: &StreamKey) -> Result<Option<Fingerprint>> {
        self.storage(&key.path).fingerprint(key).await
    }

    async fn fingerprints(&self, keys: &[StreamKey]) -> Vec<Result<Option<Fingerprint>>> {
        let staged = self.staged.load_full();
        let is_staged = |key: &StreamKey| staged.iter().any(|it| it.contains(&key.path));
        let (memory, real): (Vec<_>, Vec<_>) = keys.iter().cloned().partition(is_staged);
        let mut memory = self.memory.fingerprints(&memory).await.into_iter();
        let mut real = self.real.fingerprints(&real).await.into_iter();
        let next = |key| {
            if is_staged(key) {
                memory.next()
            } else {
                real.next()
            }
        };
        keys.iter().map_while(next).collect()
    }

    async fn info(&self, key: &StreamKey) -> Result<Option<StreamInfo>> {
        self.storage(&key.path).info(key).await
    }

    async fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        let staged = self.memory.list(path).await?;
        let covered = |path: &LogPath| self.staged.load().iter().any(|it| it.contains(path));
        if path.is_some_and(covered) {
            return Ok(staged);
        }
        let real = self.real.list(path).await?;
        let paths: BTreeSet<LogPath> = real.paths.into_iter().chain(staged.paths).collect();
        Ok(Listing {
            paths: paths.into_iter().collect(),
            streams: real.streams,
        })
    }

    async fn delete(&self, key: &StreamKey) -> Result<bool> {
        self.storage(&key.path).delete(key).await
    }

    async fn delete_path(&self, path: &LogPath) -> Result<bool> {
        let staged = self.memory.delete_path(path).await?;
        if self.staged.load().iter().any(|it| it.contains(path)) {
            return Ok(staged);
        }
        Ok(self.real.delete_path(path).await? || staged)
    }

    async fn rename_path(&self, from: &LogPath, to: &LogPath) -> Result<bool> {
        check_rename(from, to)?;
        let staged = self.staged.load_full();
        let strictly = |path: &LogPath| staged.iter().any(|it| it.contains(path) && it != path);
        if strictly(from) && strictly(to) {
            return self.memory.rename_path(from, to).await;
        }
        if strictly(from) || strictly(to) {
            return Err(Error::InvalidRename {
                from: from.clone(),
                to: to.clone(),
                reason: "only one of the two lies within a path that is staged",
            });
        }
        self.rename_whole(from, to, &staged).await
    }
}

fn copied(entry: Entry) -> Result<NewEntry> {
    match entry.data {
        EntryData::Json(data) => Ok(NewEntry::new(entry.time, data)),
        EntryData::Damaged(damage) => Err(Error::backend(
            "staged",
            format!("entry {} is damaged: {}", entry.seq, damage.reason),
        )),
    }
}

//! Which file holds what.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::log::{Listing, LogPath, StreamId, StreamKey};

const LOG_SUFFIX: &str = ".jsonl";
const OFFSETS_SUFFIX: &str = ".offsets";
const TRASH_PREFIX: &str = ".trash-";

/// The directory that holds everything, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) root: Arc<Path>,
}

impl Layout {
    pub(super) fn directory(&self, path: &LogPath) -> PathBuf {
        self.root.join(path.as_str())
    }

    pub(super) fn file(&self, key: &StreamKey) -> PathBuf {
        self.directory(&key.path)
            .join(format!("{}{LOG_SUFFIX}", key.stream))
    }

    /// Returns the file with some places of a long stream.
    pub(super) fn offsets(&self, key: &StreamKey) -> PathBuf {
        self.directory(&key.path)
            .join(format!("{}{OFFSETS_SUFFIX}", key.stream))
    }

    pub(super) fn trash(&self, n: u64) -> PathBuf {
        self.root.join(format!("{TRASH_PREFIX}{n}"))
    }

    /// Returns what deletions that did not finish have left.
    pub(super) fn leftovers(&self) -> io::Result<Vec<(PathBuf, bool)>> {
        let entries = self.fs.list(&self.root)?.into_iter();
        let trash = entries.filter(|entry| entry.name.starts_with(TRASH_PREFIX));
        Ok(trash
            .map(|entry| (self.root.join(entry.name), entry.is_dir))
            .collect())
    }

    /// Lists the paths and streams directly under a path.
    pub(super) fn list(&self, path: Option<&LogPath>) -> Result<Listing> {
        let directory = path.map_or_else(|| self.root.to_path_buf(), |path| self.directory(path));
        let entries = match self.fs.list(&directory) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Listing::default()),
            Err(source) => return Err(Error::io("list", directory, source)),
        };
        let mut listing = Listing::default();
        for entry in entries {
            // Names that are no ids belong to somebody else.
            if entry.is_dir {
                let child = path.map_or_else(|| entry.name.parse(), |path| path.join(&entry.name));
                listing.paths.extend(child.ok());
            } else if let Some(name) = entry.name.strip_suffix(LOG_SUFFIX) {
                // There are no streams at the root itself: a stream has a path.
                listing
                    .streams
                    .extend(path.and_then(|_| name.parse::<StreamId>().ok()));
            }
        }
        listing.paths.sort();
        listing.streams.sort();
        Ok(listing)
    }

    /// Removes a file, or a directory with all that is in it; what is gone already is fine.
    pub(super) fn remove_all(&self, path: &Path, is_dir: bool) -> io::Result<()> {
        if !is_dir {
            return present(self.fs.unlink(path)).map(drop);
        }
        for entry in present(self.fs.list(path))?.unwrap_or_default() {
            self.remove_all(&path.join(entry.name), entry.is_dir)?;
        }
        present(self.fs.remove_dir(path)).map(drop)
    }
}

/// Turns the error for something that is not there into `None`.
pub(super) fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    // A file where a directory is expected means as well that nothing can be there.
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

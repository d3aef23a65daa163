//! Deleting: a rename is the moment at which a stream or a path is gone, the rest is cleaning.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::file::create::prune;
use crate::file::layout::{Layout, present};
use crate::log::{LogPath, StreamKey};

/// What a deletion covers.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Path(LogPath),
    Stream(StreamKey),
}

impl Target {
    pub(super) fn covers(&self, key: &StreamKey) -> bool {
        match self {
            Self::Path(path) => path.contains(&key.path),
            Self::Stream(stream) => stream == key,
        }
    }

    /// Returns the path at or in which it is.
    pub(super) fn path(&self) -> &LogPath {
        match self {
            Self::Path(path) => path,
            Self::Stream(key) => &key.path,
        }
    }

    /// Returns the file or directory that holds it.
    pub(super) fn place(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Path(path) => layout.directory(path),
            Self::Stream(key) => layout.file(key),
        }
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Path(one), Self::Path(two)) => one.contains(two) || two.contains(one),
            (_, Self::Stream(key)) => self.covers(key),
            (Self::Stream(key), _) => other.covers(key),
        }
    }
}

/// Deletes a stream or a subtree; returns whether it existed.
pub(super) fn remove(layout: &Layout, target: &Target, trash: u64) -> Result<bool> {
    let path = target.place(layout);
    let failed = |source| Error::io("delete", &path, source);
    let stamp = present(layout.fs.metadata(&path)).map_err(failed)?;
    if stamp.is_none() {
        flush_absence(layout, &path).map_err(failed)?;
    }
    // Anything else of that name belongs to somebody else.
    let is_dir = matches!(target, Target::Path(_));
    if stamp.is_none_or(|stamp| stamp.is_dir != is_dir) {
        return Ok(false);
    }
    let trash = layout.trash(trash);
    let parent = path.parent().unwrap_or(&layout.root);
    layout.fs.rename(&path, &trash).map_err(failed)?;
    layout.fs.sync_dir(parent).map_err(failed)?;
    layout.fs.sync_dir(&layout.root).map_err(failed)?;
    let mut cleaned = layout.remove_all(&trash, is_dir);
    if let Target::Stream(key) = target {
        cleaned = cleaned.and_then(|()| remove_side_files(layout, key, parent));
    }
    if let Err(error) = cleaned {
        tracing::warn!(path = %trash.display(), %error, "a deletion is not cleaned up yet; the next start does it");
    }
    prune(layout, parent);
    Ok(true)
}

/// Makes it durable that nothing is there: a deletion or an append that failed may have left it to chance.
fn flush_absence(layout: &Layout, path: &Path) -> io::Result<()> {
    let above = path.ancestors().skip(1);
    for directory in above.take_while(|directory| directory.starts_with(&layout.root)) {
        if present(layout.fs.sync_dir(directory))?.is_some() {
            break;
        }
    }
    Ok(())
}

/// Finishes the deletions that a crash has interrupted.
pub(super) fn finish(layout: &Layout, leftovers: &[(PathBuf, bool)]) {
    // Whoever has renamed them may not have come to flush it: a power cut must not bring back what is half removed.
    let cleaned = layout.fs.sync_dir(&layout.root).and_then(|()| {
        let mut leftovers = leftovers.iter();
        leftovers.try_for_each(|(path, is_dir)| layout.remove_all(path, *is_dir))
    });
    if let Err(error) = cleaned {
        tracing::warn!(root = %layout.root.display(), %error, "old deletions are not cleaned up yet; the next start tries again");
    }
}

/// Removes the places of a stream, and the bytes that were cut from it: they are a part of what shall be gone.
fn remove_side_files(layout: &Layout, key: &StreamKey, directory: &Path) -> io::Result<()> {
    present(layout.fs.unlink(&layout.offsets(key)))?;
    let prefix = format!("{}.torn-", key.stream);
    for entry in layout.fs.list(directory)? {
        let number = entry.name.strip_prefix(&prefix);
        if number.is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit())) {
            layout.fs.unlink(&directory.join(entry.name))?;
        }
    }
    Ok(())
}

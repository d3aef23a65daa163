//! Moving a path: one rename of its directory, between two places whose parents are flushed.

use std::io;

use crate::error::{Error, Result};
use crate::file::create::prune;
use crate::file::layout::{Layout, present};
use crate::log::LogPath;

const ATTEMPTS: usize = 8;

/// Moves what is at and below a path; returns whether there was something.
pub(super) fn rename(layout: &Layout, from: &LogPath, to: &LogPath) -> Result<bool> {
    let (old, new) = (layout.directory(from), layout.directory(to));
    let failed = |source| Error::io("move", &old, source);
    let stamp = present(layout.fs.metadata(&old)).map_err(failed)?;
    // Anything else of that name belongs to somebody else.
    if stamp.is_none_or(|stamp| !stamp.is_dir) {
        return Ok(false);
    }
    make_room(layout, to)?;
    let mut attempt = 0;
    loop {
        attempt += 1;
        let renamed = parents(layout, to).and_then(|()| present(layout.fs.rename(&old, &new)));
        match renamed.map_err(failed)? {
            Some(()) => break,
            // Somebody removed the empty directory above in between.
            None if attempt < ATTEMPTS => {}
            None => return Err(failed(io::ErrorKind::NotFound.into())),
        }
    }
    let old_parent = old.parent().unwrap_or(&layout.root);
    let new_parent = new.parent().unwrap_or(&layout.root);
    layout.fs.sync_dir(new_parent).map_err(failed)?;
    layout.fs.sync_dir(old_parent).map_err(failed)?;
    prune(layout, old_parent);
    Ok(true)
}

/// Makes sure that nothing is at a path; an empty directory, left by a crash, is removed.
fn make_room(layout: &Layout, path: &LogPath) -> Result<()> {
    let place = layout.directory(path);
    let stamp = present(layout.fs.metadata(&place));
    match stamp.map_err(|source| Error::io("look at", &place, source))? {
        None => Ok(()),
        Some(stamp) if stamp.is_dir && layout.fs.remove_dir(&place).is_ok() => Ok(()),
        Some(_) => Err(Error::PathExists { path: path.clone() }),
    }
}

/// Creates and flushes the directories above a path.
fn parents(layout: &Layout, path: &LogPath) -> io::Result<()> {
    let mut directory = layout.root.to_path_buf();
    for segment in path.segments().take(path.segments().count() - 1) {
        let parent = directory.clone();
        directory.push(segment);
        match layout.fs.create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Also one that is there already: whoever made it may not have flushed it yet.
        layout.fs.sync_dir(&parent)?;
    }
    Ok(())
}

//! Creating a stream and the directories above it, so that they survive a crash of the machine.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::layout::Layout;
use crate::fs::{FsFile, Open};
use crate::log::StreamKey;

const ATTEMPTS: usize = 8;

/// What was created for a stream.
#[derive(Debug)]
pub(super) struct Created {
    file: PathBuf,
    /// The new directories, the outermost first.
    directories: Vec<PathBuf>,
}

impl Created {
    /// Removes what was created, as far as nobody else uses it by now; returns whether the file is gone.
    pub(super) fn undo(&self, layout: &Layout) -> bool {
        let mut undone = layout.fs.unlink(&self.file);
        let is_gone = undone.is_ok();
        for directory in self.directories.iter().rev() {
            undone = undone.and_then(|()| layout.fs.remove_dir(directory));
        }
        if let Err(error) = undone {
            tracing::debug!(path = %self.file.display(), %error, "a half-made stream was left");
        }
        is_gone
    }
}

/// Creates the file of a stream and the directories that are missing.
pub(super) fn stream(layout: &Layout, key: &StreamKey) -> io::Result<(Box<dyn FsFile>, Created)> {
    let mut created = Created {
        file: layout.file(key),
        directories: Vec::new(),
    };
    let mut attempt = 0;
    let opened = loop {
        attempt += 1;
        let opened = directories(layout, key, &mut created.directories)
            .and_then(|()| layout.fs.open(&created.file, Open::CreateNew));
        match opened {
            // Somebody removed the empty directory in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {}
            opened => break opened,
        }
    };
    match opened {
        Ok(file) => Ok((file, created)),
        Err(error) => {
            for directory in created.directories.iter().rev() {
                // Not empty when somebody else uses it by now.
                let _ = layout.fs.remove_dir(directory);
            }
            Err(error)
        }
    }
}

/// Flushes the directory of a stream and those above it that are not known to be flushed.
pub(super) fn sync_directories(
    layout: &Layout,
    key: &StreamKey,
    durable: usize,
    created: Option<&Created>,
) -> io::Result<()> {
    let mut directory = layout.root.to_path_buf();
    for (level, segment) in key.path.segments().enumerate() {
        let child = directory.join(segment);
        let is_new = created.is_some_and(|created| created.directories.contains(&child));
        if is_new || level >= durable {
            layout.fs.sync_dir(&directory)?;
        }
        directory = child;
    }
    layout.fs.sync_dir(&directory)
}

/// Removes the directories of a path from the innermost outwards while they are empty.
pub(super) fn prune(layout: &Layout, mut directory: &Path) {
    while directory != &*layout.root && layout.fs.remove_dir(directory).is_ok() {
        match directory.parent() {
            Some(parent) => directory = parent,
            None => break,
        }
    }
}

fn directories(layout: &Layout, key: &StreamKey, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut directory = layout.root.to_path_buf();
    for segment in key.path.segments() {
        directory.push(segment);
        match layout.fs.create_dir(&directory) {
            Ok(()) => made.push(directory.clone()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

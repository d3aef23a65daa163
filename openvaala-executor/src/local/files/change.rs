//! Changes of several files, made whole or not at all.

mod target;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process;

use tracing::warn;

use self::target::Target;
use crate::error::ExecutorError;
use crate::file::FileChange;
use crate::path::resolve;

/// How many names are tried for a temporary file.
const ATTEMPTS: u32 = 10_000;

pub(super) fn change(root: &str, changes: Vec<FileChange>) -> Result<(), ExecutorError> {
    let mut targets = Vec::with_capacity(changes.len());
    let mut seen = HashSet::new();
    for change in changes {
        let target = Target::find(root, change)?;
        if !seen.insert(target.real.clone()) {
            return Err(ExecutorError::InvalidPath {
                path: target.path,
                reason: "it is changed twice at once; change a file once".to_owned(),
            });
        }
        targets.push(target);
    }
    // Files go last, when nothing else can fail.
    targets.sort_by_key(|target| target.content.is_none());
    let mut transaction = Transaction::default();
    let result = transaction
        .stage(root, &targets)
        .and_then(|()| transaction.commit(&targets));
    match result {
        Ok(()) => {
            transaction.finish();
            Ok(())
        }
        Err(error) => Err(transaction.undo(error, &targets)),
    }
}

/// What was done on the disk by now.
#[derive(Debug, Default)]
struct Transaction {
    /// Directories that were made, the outer ones first.
    directories: Vec<PathBuf>,
    /// For each target the file with its new content, until it is in its place.
    staged: Vec<Option<PathBuf>>,
    done: Vec<Done>,
}

/// A target that was changed, by its index, with the file that was there.
#[derive(Debug)]
struct Done {
    target: usize,
    backup: Option<PathBuf>,
}

impl Transaction {
    /// Stores the new contents beside their files.
    fn stage(&mut self, root: &str, targets: &[Target]) -> Result<(), ExecutorError> {
        for target in targets {
            let staged = match &target.content {
                Some(content) => Some(self.stage_one(root, target, content)?),
                None => None,
            };
            self.staged.push(staged);
        }
        Ok(())
    }

    fn stage_one(
        &mut self,
        root: &str,
        target: &Target,
        content: &[u8],
    ) -> Result<PathBuf, ExecutorError> {
        let folder = target.folder();
        let failed = |error| ExecutorError::from_io("write", &target.path, error);
        self.make_directories(folder).map_err(failed)?;
        let like = match (&target.permissions_of, &target.existing) {
            (Some(path), _) => {
                let path = resolve(root, path)?;
                let metadata = fs::metadata(&path);
                Some(metadata.map_err(|e| ExecutorError::from_io("look at", &path, e))?)
            }
            (None, Some(existing)) => Some(existing.clone()),
            (None, None) => None,
        };
        // Nobody may read a private file while it is written.
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let (file, temporary) = new_beside(folder, mode).map_err(failed)?;
        let written = write(file, content, like.as_ref());
        written.map_err(|error| {
            discard(&temporary);
            failed(error)
        })?;
        Ok(temporary)
    }

    fn make_directories(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|path| !path.exists())
            .collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.directories.push(path.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn commit(&mut self, targets: &[Target]) -> Result<(), ExecutorError> {
        for target in targets {
            target.check()?;
        }
        for (index, target) in targets.iter().enumerate() {
            target.check()?;
            let staged = self.staged.get_mut(index).and_then(Option::take);
            let result = self.replace(index, target, staged.as_deref());
            if result.is_err()
                && let Some(staged) = staged
            {
                discard(&staged);
            }
            let operation = if target.content.is_some() {
                "write"
            } else {
                "remove"
            };
            result.map_err(|error| ExecutorError::from_io(operation, &target.path, error))?;
        }
        Ok(())
    }

    fn replace(&mut self, index: usize, target: &Target, new: Option<&Path>) -> io::Result<()> {
        let mut backup = None;
        if target.existing.is_some() {
            let name = free_name(target.folder())?;
            // A link leaves the file in its place until it is replaced; not every file system
            // has links.
            if new.is_none() || fs::hard_link(&target.real, &name).is_err() {
                fs::rename(&target.real, &name)?;
            }
            backup = Some(name);
        }
        self.done.push(Done {
            target: index,
            backup,
        });
        new.map_or(Ok(()), |new| fs::rename(new, &target.real))
    }

    /// Drops what was kept for undoing.
    fn finish(self) {
        for backup in self.done.iter().filter_map(|done| done.backup.as_ref()) {
            discard(backup);
        }
    }

    /// Puts everything back as it was, and says what could not be put back.
    fn undo(self, error: ExecutorError, targets: &[Target]) -> ExecutorError {
        let mut stuck = HashSet::new();
        for done in self.done.iter().rev() {
            let Some(target) = targets.get(done.target) else {
                continue;
            };
            let undone = match &done.backup {
                Some(backup) => restore(backup, &target.real),
                None => remove_if_there(&target.real),
            };
            if let Err(error) = undone {
                warn!(path = target.path, %error, "could not undo a change");
                stuck.insert(done.target);
            }
        }
        for staged in self.staged.iter().flatten() {
            discard(staged);
        }
        for directory in self.directories.iter().rev() {
            // Somebody else may have put something there.
            let _ = fs::remove_dir(directory);
        }
        if stuck.is_empty() {
            return error;
        }
        let paths = |is_stuck: bool| {
            let with_index = targets.iter().enumerate();
            let those = with_index.filter(|(index, _)| stuck.contains(index) == is_stuck);
            those.map(|(_, target)| target.path.clone()).collect()
        };
        ExecutorError::HalfChanged {
            changed: paths(true),
            unchanged: paths(false),
            source: Box::new(error),
        }
    }
}

/// Puts a backup back. A rename between two names of one file does nothing, so the name goes.
fn restore(backup: &Path, real: &Path) -> io::Result<()> {
    fs::rename(backup, real)?;
    remove_if_there(backup)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn discard(path: &Path) {
    if let Err(error) = remove_if_there(path) {
        warn!(path = %path.display(), %error, "could not remove a temporary file");
    }
}

fn write(mut file: File, content: &[u8], like: Option<&fs::Metadata>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(like) = like {
        keep_owner(&file, like)?;
        // Bits that give the rights of the owner away are lost by writing, as ever.
        file.set_permissions(fs::Permissions::from_mode(
            like.permissions().mode() & 0o1777,
        ))?;
    }
    Ok(())
}

/// Only the superuser may give a file away; anybody may give it to a group of their own.
fn keep_owner(file: &File, like: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    if fchown(file, Some(like.uid()), Some(like.gid())).is_err() {
        let _ = fchown(file, None, Some(like.gid()));
    }
    Ok(())
}

/// Makes an empty file with a free name.
fn new_beside(folder: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    for name in names(folder) {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        match options.open(&name) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn free_name(folder: &Path) -> io::Result<PathBuf> {
    let mut names = names(folder);
    let free = names.find(|name| fs::symlink_metadata(name).is_err());
    free.ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let process = process::id();
    (0..ATTEMPTS).map(move |n| folder.join(format!(".openvaala-{process}-{n}")))
}

#[cfg(test)]
mod tests;

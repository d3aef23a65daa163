//! A file that is to be changed, as it was found.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{Access, access};

use crate::error::ExecutorError;
use crate::file::{Expected, FileChange};
use crate::local::files::require_regular;
use crate::path::resolve;

/// How much is compared at once.
const PIECE: usize = 64 * 1024;

/// A file that is to be changed, as it was found.
#[derive(Debug)]
pub(super) struct Target {
    /// The path as it was resolved.
    pub(super) path: String,
    /// The path that is replaced or removed, behind all links.
    pub(super) real: PathBuf,
    /// What is there; nothing if the file is new.
    pub(super) existing: Option<Metadata>,
    pub(super) content: Option<Bytes>,
    pub(super) permissions_of: Option<String>,
    expected: Expected,
}

impl Target {
    pub(super) fn find(root: &str, change: FileChange) -> Result<Self, ExecutorError> {
        let path = resolve(root, &change.path)?;
        let (real, existing) = match change.content {
            Some(_) => find_written(&path)?,
            None => find_removed(&path)?,
        };
        Ok(Self {
            path,
            real,
            existing,
            content: change.content,
            permissions_of: change.permissions_of,
            expected: change.expected,
        })
    }

    /// The directory that it is in.
    pub(super) fn folder(&self) -> &Path {
        self.real.parent().unwrap_or_else(|| Path::new("/"))
    }

    /// Tells whether it is still what it was when it was found, and what it should be.
    pub(super) fn check(&self) -> Result<(), ExecutorError> {
        let changed = || ExecutorError::Changed {
            path: self.path.clone(),
        };
        let failed = |error| ExecutorError::from_io("look at", &self.path, error);
        let now = match fs::symlink_metadata(&self.real) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let (Some(now), Some(before)) = (&now, &self.existing) else {
            let is_expected = !matches!(self.expected, Expected::Content(_));
            let is_same = now.is_none() && self.existing.is_none() && is_expected;
            return if is_same { Ok(()) } else { Err(changed()) };
        };
        let is_same = match &self.expected {
            Expected::Nothing => false,
            Expected::Content(content) => has_content(&self.real, content).map_err(failed)?,
            Expected::Anything => true,
        };
        // The times are compared too: what is removed or replaced unread must be what was found.
        let version = |metadata: &Metadata| {
            let inode = (metadata.dev(), metadata.ino(), metadata.len());
            (inode, metadata.mtime(), metadata.mtime_nsec())
        };
        if is_same && version(now) == version(before) {
            return Ok(());
        }
        Err(changed())
    }
}

/// Where a write ends up: links are followed.
fn find_written(path: &str) -> Result<(PathBuf, Option<Metadata>), ExecutorError> {
    let failed = |error| ExecutorError::from_io("write", path, error);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Ok(leads_to) = fs::read_link(path) {
                return Err(ExecutorError::InvalidPath {
                    path: path.to_owned(),
                    reason: format!("it is a symbolic link to {leads_to:?}, where nothing is"),
                });
            }
            return Ok((PathBuf::from(path), None));
        }
        Err(error) => return Err(failed(error)),
    };
    require_regular(path, metadata.file_type())?;
    if metadata.nlink() > 1 {
        return Err(ExecutorError::HardLinked {
            path: path.to_owned(),
            links: metadata.nlink(),
        });
    }
    // A rename needs no right to write the file, but who took that right away meant it.
    access(path, Access::WRITE_OK).map_err(|error| failed(error.into()))?;
    let real = fs::canonicalize(path).map_err(failed)?;
    Ok((real, Some(metadata)))
}

/// What a removal removes: a link itself, not what it leads to.
fn find_removed(path: &str) -> Result<(PathBuf, Option<Metadata>), ExecutorError> {
    let failed = |error| ExecutorError::from_io("remove", path, error);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_symlink() {
        require_regular(path, metadata.file_type())?;
    }
    let whole = Path::new(path);
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(ExecutorError::IsADirectory {
            path: path.to_owned(),
        });
    };
    let folder = fs::canonicalize(folder).map_err(failed)?;
    Ok((folder.join(name), Some(metadata)))
}

fn has_content(path: &Path, content: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let (mut piece, mut rest) = (vec![0; PIECE], content);
    loop {
        let length = match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            length => length?,
        };
        match rest.split_at_checked(length) {
            _ if length == 0 => return Ok(rest.is_empty()),
            Some((expected, behind)) if expected == &piece[..length] => rest = behind,
            _ => return Ok(false),
        }
    }
}

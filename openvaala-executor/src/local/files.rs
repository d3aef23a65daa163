//! The file system of this machine.

mod change;

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::OFlags;

use super::blocking;
use crate::error::ExecutorError;
use crate::file::{DirEntry, FileChange, FileKind, FileMetadata, Files};
use crate::path::resolve;

#[derive(Debug)]
pub(super) struct LocalFiles {
    root: String,
}

impl LocalFiles {
    pub(super) const fn new(root: String) -> Self {
        Self { root }
    }
}

#[async_trait]
impl Files for LocalFiles {
    fn root(&self) -> &str {
        &self.root
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata, ExecutorError> {
        let path = resolve(&self.root, path)?;
        blocking("look at", path.clone(), move || {
            let metadata = fs::metadata(&path);
            let metadata = metadata.map_err(|e| ExecutorError::from_io("look at", &path, e))?;
            Ok(FileMetadata::new(
                kind(metadata.file_type()),
                metadata.len(),
            ))
        })
        .await
    }

    async fn read(&self, path: &str, offset: u64, limit: usize) -> Result<Bytes, ExecutorError> {
        let path = resolve(&self.root, path)?;
        blocking("read", path.clone(), move || {
            let (file, metadata) = open_regular(&path)?;
            read_range(file, &metadata, offset, limit)
                .map_err(|error| ExecutorError::from_io("read", &path, error))
        })
        .await
    }

    async fn list(&self, path: &str) -> Result<Vec<DirEntry>, ExecutorError> {
        let path = resolve(&self.root, path)?;
        blocking("list", path.clone(), move || {
            list(&path).map_err(|error| ExecutorError::from_io("list", &path, error))
        })
        .await
    }

    async fn change(&self, changes: Vec<FileChange>) -> Result<(), ExecutorError> {
        let root = self.root.clone();
        // The thread goes on when the caller drops the future, so nothing is left half done.
        blocking("change files in", root.clone(), move || {
            change::change(&root, changes)
        })
        .await
    }
}

/// Opens a regular file and nothing else, without waiting and without effects.
///
/// The kind is looked at before, since opening alone may have effects on a device, and after,
/// since the path may lead elsewhere by then.
fn open_regular(path: &str) -> Result<(File, Metadata), ExecutorError> {
    let failed = |error: io::Error| ExecutorError::from_io("read", path, error);
    require_regular(path, fs::metadata(path).map_err(failed)?.file_type())?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    require_regular(path, metadata.file_type())?;
    Ok((file, metadata))
}

fn require_regular(path: &str, file_type: FileType) -> Result<(), ExecutorError> {
    let path = path.to_owned();
    match kind(file_type) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(ExecutorError::IsADirectory { path }),
        kind => Err(ExecutorError::NotRegular { path, kind }),
    }
}

fn read_range(mut file: File, metadata: &Metadata, offset: u64, limit: usize) -> io::Result<Bytes> {
    file.seek(SeekFrom::Start(offset))?;
    let expected = usize::try_from(metadata.len().saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(expected.min(limit));
    file.take(u64::try_from(limit).unwrap_or(u64::MAX))
        .read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

fn list(path: &str) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(DirEntry::new(
            name,
            entry.file_type().map_or(FileKind::Other, kind),
        ));
    }
    entries.sort();
    Ok(entries)
}

fn kind(file_type: FileType) -> FileKind {
    let kinds = [
        (file_type.is_file(), FileKind::File),
        (file_type.is_dir(), FileKind::Directory),
        (file_type.is_symlink(), FileKind::Symlink),
        (file_type.is_fifo(), FileKind::Fifo),
        (file_type.is_socket(), FileKind::Socket),
        (file_type.is_char_device(), FileKind::CharDevice),
        (file_type.is_block_device(), FileKind::BlockDevice),
    ];
    kinds
        .into_iter()
        .find(|(is, _)| *is)
        .map_or(FileKind::Other, |(_, kind)| kind)
}

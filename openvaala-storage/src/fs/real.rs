//! The operating system's files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::fs::{DirEntry, Fs, FsFile, Open, Stamp};

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RealFs;

impl Fs for RealFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn FsFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o600);
        match how {
            Open::Append => options.append(true),
            Open::AppendOrCreate => options.append(true).create(true),
            Open::CreateNew => options.append(true).create_new(true),
            Open::Directory | Open::Read => &mut options,
        };
        Ok(Box::new(options.open(path)?))
    }

    fn metadata(&self, path: &Path) -> io::Result<Stamp> {
        Ok(stamp(&fs::metadata(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let is_dir = entry.file_type()?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirEntry { name, is_dir });
            }
        }
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl FsFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn metadata(&self) -> io::Result<Stamp> {
        Ok(stamp(&Self::metadata(self)?))
    }

    fn try_lock(&self) -> io::Result<bool> {
        match Self::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    Stamp {
        inode: metadata.ino(),
        length: metadata.len(),
        modified: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        is_dir: metadata.is_dir(),
    }
}

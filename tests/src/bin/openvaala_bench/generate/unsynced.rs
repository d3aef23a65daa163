//! The operating system's files, without waiting for the disk.

use std::io;
use std::path::Path;

use openvaala_core::storage::fs::{DirEntry, Fs, FsFile, Open, RealFs, Stamp};

/// Flushes nothing: for data that can be made again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnsyncedFs(RealFs);

#[derive(Debug)]
struct UnsyncedFile(Box<dyn FsFile>);

impl Fs for UnsyncedFs {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn FsFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open(path, how)?)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Stamp> {
        self.0.metadata(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.0.unlink(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl FsFile for UnsyncedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }

    fn metadata(&self) -> io::Result<Stamp> {
        self.0.metadata()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

//! The seam between the file back end and the operating system.
//!
//! Everything that the file back end asks of a disk goes through [`Fs`], so that a test can fail the n-th operation. This module is
//! for tests and tools; it is not covered by the promise of stable versions.

mod real;

use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use self::real::RealFs;

/// A file system. All methods block.
pub trait Fs: Debug + Send + Sync + 'static {
    /// Opens a file or a directory; new files have the mode 0600.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn FsFile>>;

    /// Returns what is known about a path.
    fn metadata(&self, path: &Path) -> io::Result<Stamp>;

    /// Creates one directory with the mode 0700.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Lists a directory, in any order.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Renames a file or a directory within the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Flushes the entries of a directory to disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// An open file; dropping it closes it and gives its lock back.
pub trait FsFile: Debug + Send {
    /// Reads at an offset in bytes; returns how many bytes were read, 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at the end; returns how many bytes were written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Flushes the content and the length to disk.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts the file to a length in bytes.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Returns what is known about the open file.
    fn metadata(&self) -> io::Result<Stamp>;

    /// Takes the exclusive lock without waiting; returns whether it was free.
    fn try_lock(&self) -> io::Result<bool>;
}

/// How [`Fs::open`] opens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Open {
    /// An existing file, for reading and for writing at its end.
    Append,
    /// Like `Append`; a missing file is created.
    AppendOrCreate,
    /// A new file, for reading and for writing at its end; an existing one is an error.
    CreateNew,
    /// A directory, to be locked.
    Directory,
    /// An existing file, for reading.
    Read,
}

/// The state of a file as far as it can be known without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    /// Which file it is.
    pub inode: u64,
    /// Its length in bytes.
    pub length: u64,
    /// When its content last changed, in nanoseconds since the epoch.
    pub modified: i128,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// An entry of a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DirEntry {
    /// Its name; one that is not UTF-8 is left out of listings.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
}

//! The file system of a workspace.

use std::fmt::{self, Debug};

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::ExecutorError;

/// The file system of a workspace.
///
/// Paths are absolute, or relative to the root of the workspace. `~`, variables and patterns are
/// not expanded: that is a shell's work.
///
/// # Bounds
///
/// No method waits for a writer or a device: what is neither a regular file nor a directory is
/// refused by [`read`](Self::read). Answers are bounded by the limits of the caller.
///
/// # Cancellation
///
/// All methods only read; dropping a future has no effect but to lose the answer.
#[async_trait]
pub trait Files: Debug + Send + Sync {
    /// Tells what a path leads to; symbolic links are followed.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::NotFound`] with the path as it was resolved, also for a dangling link.
    async fn metadata(&self, path: &str) -> Result<FileMetadata, ExecutorError>;

    /// Reads at most `limit` bytes of a regular file, from byte `offset` on.
    ///
    /// Fewer bytes than `limit` mean that the file ended there; an `offset` behind the end gives
    /// none. A file that grows meanwhile is read as far as the limit.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::IsADirectory`], [`ExecutorError::NotRegular`],
    /// [`ExecutorError::NotFound`], [`ExecutorError::PermissionDenied`].
    async fn read(&self, path: &str, offset: u64, limit: usize) -> Result<Bytes, ExecutorError>;

    /// Lists a directory, sorted by name; without `.` and `..`.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::NotADirectory`], [`ExecutorError::NotFound`],
    /// [`ExecutorError::PermissionDenied`].
    async fn list(&self, path: &str) -> Result<Vec<DirEntry>, ExecutorError>;
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FileMetadata {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes; files made by the kernel say 0 although they have content.
    pub len: u64,
}

impl FileMetadata {
    /// What is known of a file.
    #[must_use]
    pub const fn new(kind: FileKind, len: u64) -> Self {
        Self { kind, len }
    }
}

/// One name in a directory.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct DirEntry {
    /// The name without its directory; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// What it is; symbolic links are not followed.
    pub kind: FileKind,
}

impl DirEntry {
    /// A name in a directory.
    #[must_use]
    pub const fn new(name: String, kind: FileKind) -> Self {
        Self { name, kind }
    }
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum FileKind {
    /// A disk or the like.
    BlockDevice,
    /// A terminal, a random source and the like.
    CharDevice,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A regular file.
    File,
    /// Something that this list does not know.
    Other,
    /// A socket.
    Socket,
    /// A symbolic link that was not followed.
    Symlink,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BlockDevice => "block device",
            Self::CharDevice => "character device",
            Self::Directory => "directory",
            Self::Fifo => "named pipe",
            Self::File => "regular file",
            Self::Other => "special file",
            Self::Socket => "socket",
            Self::Symlink => "symbolic link",
        })
    }
}

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
/// Dropping the future of a method that reads loses the answer, nothing else. A
/// [`change`](Self::change) is still made whole or not at all; which of both is then not known.
#[async_trait]
pub trait Files: Debug + Send + Sync {
    /// The root of the workspace, an absolute path.
    fn root(&self) -> &str;

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

    /// Writes and removes files: all of them, or none.
    ///
    /// Every change is checked, and every new content is stored beside its file, before any file
    /// is touched. Each file then gets its new content at once, so that nobody reads half of it;
    /// files are removed last. What was done is undone when something fails on the way. The
    /// contents need not have reached the disk when this returns.
    ///
    /// - A symbolic link is written through, and stays; removing one leaves what it leads to.
    /// - A file keeps its permissions, and its owner where that is allowed. Missing directories
    ///   of a new file are made.
    /// - The order of `changes` has no meaning, and no file may be changed twice.
    ///
    /// # Errors
    ///
    /// Nothing is changed with any error but the last.
    ///
    /// - [`ExecutorError::Changed`]: a file is not as the change expects.
    /// - [`ExecutorError::NotFound`]: a file to be removed is missing.
    /// - [`ExecutorError::IsADirectory`], [`ExecutorError::NotRegular`],
    ///   [`ExecutorError::HardLinked`]: what must not be replaced.
    /// - [`ExecutorError::InvalidPath`]: a link that leads nowhere, a file named twice.
    /// - [`ExecutorError::NotADirectory`], [`ExecutorError::PermissionDenied`],
    ///   [`ExecutorError::Io`].
    /// - [`ExecutorError::HalfChanged`]: it failed, and so did undoing it; it says which files
    ///   are changed.
    async fn change(&self, changes: Vec<FileChange>) -> Result<(), ExecutorError>;
}

/// One file of a [`Files::change`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FileChange {
    /// The path.
    pub path: String,
    /// What must be there right before the change; default [`Expected::Anything`].
    pub expected: Expected,
    /// The whole new content; `None` removes the file.
    pub content: Option<Bytes>,
    /// Another file whose permissions the file gets; default `None`: it keeps its own, or gets
    /// those of any new file.
    pub permissions_of: Option<String>,
}

impl FileChange {
    /// Gives a file a new content; it may exist or not.
    #[must_use]
    pub const fn write(path: String, content: Bytes) -> Self {
        Self {
            path,
            expected: Expected::Anything,
            content: Some(content),
            permissions_of: None,
        }
    }

    /// Removes a file, or a symbolic link.
    #[must_use]
    pub const fn remove(path: String) -> Self {
        Self {
            path,
            expected: Expected::Anything,
            content: None,
            permissions_of: None,
        }
    }

    /// Says what must be there.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Takes the permissions of another file, as a file does that moves.
    #[must_use]
    pub fn with_permissions_of(mut self, path: String) -> Self {
        self.permissions_of = Some(path);
        self
    }
}

/// What must be at a path for it to be changed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// A regular file, or nothing.
    Anything,
    /// A regular file with exactly this content.
    Content(Bytes),
    /// Nothing.
    Nothing,
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

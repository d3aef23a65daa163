//! What can go wrong in an environment.

use std::error::Error as StdError;
use std::io;

use openvaala_protocol::id::ExecutorId;

use crate::file::FileKind;

/// An error of an executor, of a workspace, or of its files and processes.
///
/// Paths are given as they were resolved, so that the reader sees where the executor looked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// A file is not what it was when the change was made up.
    #[error("{path} was changed by somebody else meanwhile; read it again")]
    Changed {
        /// The path.
        path: String,
    },
    /// The workspace was closed; nothing can be started in it any more.
    #[error("the workspace {root} on {executor} is closed")]
    Closed {
        /// The executor that the workspace was on.
        executor: ExecutorId,
        /// Its working directory.
        root: String,
    },
    /// The environment itself failed: its link, its protocol, its sandbox.
    #[error("executor {executor} could not {operation}")]
    Environment {
        /// The executor.
        executor: ExecutorId,
        /// What was tried, such as `connect`.
        operation: String,
        /// Why it did not work.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Some files of a change have it and some do not, since undoing it failed too.
    #[error(
        "the change failed on the way, and undoing it failed too; changed: {}; not changed: {}",
        listed(changed),
        listed(unchanged)
    )]
    HalfChanged {
        /// The files that have the new content, or are gone.
        changed: Vec<String>,
        /// The files that are as they were.
        unchanged: Vec<String>,
        /// Why it was to be undone.
        source: Box<Self>,
    },
    /// A file that has other names too, which would no longer be the same file.
    #[error(
        "{path} is one of {links} hard links to a file, and replacing it would part them; \
         change it in place, with bash"
    )]
    HardLinked {
        /// The path.
        path: String,
        /// How many names the file has.
        links: u64,
    },
    /// A path that this environment cannot take.
    #[error("the path {path:?} can't be used: {reason}")]
    InvalidPath {
        /// The path as it was given.
        path: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// The operating system refused or failed.
    #[error("could not {operation} {path}")]
    Io {
        /// What was tried, such as `read`.
        operation: &'static str,
        /// The path it was tried on.
        path: String,
        /// Why it did not work.
        source: io::Error,
    },
    /// A folder stands where a file was asked for.
    #[error("{path} is a directory, not a file")]
    IsADirectory {
        /// The path.
        path: String,
    },
    /// A file stands where a folder was asked for.
    #[error("{path} is not a directory")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// Nothing is there.
    #[error("there is no file or directory {path}")]
    NotFound {
        /// The path.
        path: String,
    },
    /// A device, socket or FIFO: reading it could wait for ever or have effects.
    #[error("{path} is a {kind}, not a regular file")]
    NotRegular {
        /// The path.
        path: String,
        /// What it is.
        kind: FileKind,
    },
    /// The user that the executor runs as may not do this.
    #[error("no permission to {operation} {path}")]
    PermissionDenied {
        /// What was tried, such as `read`.
        operation: &'static str,
        /// The path it was tried on.
        path: String,
    },
    /// A process could not be started, waited for or signalled.
    #[error("could not {operation} the command {command:?}")]
    Process {
        /// What was tried, such as `start`.
        operation: &'static str,
        /// The command line, shortened.
        command: String,
        /// Why it did not work.
        source: io::Error,
    },
}

impl ExecutorError {
    /// Sorts an operating system error about `path` into the variant that a caller can branch on.
    #[must_use]
    pub fn from_io(operation: &'static str, path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::IsADirectory => Self::IsADirectory { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { operation, path },
            _ => Self::Io {
                operation,
                path,
                source,
            },
        }
    }
}

fn listed(paths: &[String]) -> String {
    match paths {
        [] => "none".to_owned(),
        paths => paths.join(", "),
    }
}

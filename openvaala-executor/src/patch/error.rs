//! What can be wrong with a patch.

/// Why a patch was not applied.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The text is no patch, whatever the files are.
    #[error("malformed patch, line {line}: {problem}")]
    Malformed {
        /// The line of the patch, from 1; the line `*** Begin Patch` is the first.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// It is a patch, but does not fit the files.
    #[error("the patch does not fit {path} (line {line} of the patch): {problem}")]
    Rejected {
        /// The file, as the patch names it.
        path: String,
        /// The line of the patch, from 1, where the operation or chunk begins.
        line: usize,
        /// What kind of misfit it is.
        rejection: Rejection,
        /// What does not fit, and what is there instead.
        problem: String,
    },
}

/// How a patch does not fit.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rejection {
    /// A line named after `@@` is not in the file.
    AnchorNotFound,
    /// A directory, a device, or a file too big to be patched.
    BadFile,
    /// A path that leads nowhere, or out of the working directory.
    BadPath,
    /// Lines that should be in the file are not.
    LinesNotFound,
    /// There is no such file.
    NoFile,
    /// The lines are in the file, but not where they are searched: before an earlier chunk or an
    /// anchor, or not at the end.
    WrongPlace,
}

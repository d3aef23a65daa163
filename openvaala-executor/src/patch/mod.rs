//! Patches that name the lines they change (feature `tools`): read, and applied to bytes.
//!
//! Nothing here touches a file. [`Patch::parse`] reads a patch, [`Update::apply`] makes the new
//! content of one file out of the old one, and [`PatchError`] tells a text that is no patch from
//! a patch that does not fit.
//!
//! ```
//! use openvaala_executor::patch::{Action, Patch};
//!
//! let patch = Patch::parse(
//!     "*** Begin Patch\n*** Update File: a.txt\n one\n-two\n+2\n*** End Patch",
//! )?;
//! let Action::Update(update) = &patch.operations[0].action else {
//!     return Ok(());
//! };
//! assert_eq!(update.apply("a.txt", b"one\r\ntwo\r\n")?.content, b"one\r\n2\r\n");
//! # Ok::<(), openvaala_executor::patch::PatchError>(())
//! ```

mod apply;
mod error;
mod lines;
mod near;
mod parse;
mod seek;
mod unwrap;

pub use self::apply::Applied;
pub use self::error::{PatchError, Rejection};
pub use self::unwrap::unwrap;

/// A patch: what happens to which files, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Patch {
    /// The executor that a line `*** Environment ID:` names.
    pub environment: Option<String>,
    /// What happens to the files; at least one.
    pub operations: Vec<Operation>,
}

/// What happens to one file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// The line of the patch that names the file, from 1.
    pub line: usize,
    /// The path as it was written.
    pub path: String,
    /// What happens.
    pub action: Action,
}

/// What can happen to a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The file is made, or gets a whole new content; every line of it ends with a newline.
    Add(String),
    /// The file is removed.
    Delete,
    /// Some lines of the file change.
    Update(Update),
}

/// Changes of one file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Update {
    /// The new path of the file, if it moves.
    pub move_to: Option<String>,
    /// The changes, in the order of the file; at least one.
    pub chunks: Vec<Chunk>,
}

/// A change of lines that stand together.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Chunk {
    /// The line of the patch where it begins, from 1.
    pub line: usize,
    /// Lines of the file that stand above the change, the outermost first.
    pub anchors: Vec<String>,
    /// What is kept, removed and added; at least one.
    pub lines: Vec<ChunkLine>,
    /// Whether the change is at the end of the file.
    pub at_end: bool,
}

/// A line of a chunk, without its sign and its line ending.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ChunkLine {
    /// A new line.
    Add(String),
    /// A line that is there and stays as it is.
    Context(String),
    /// A line that is there and goes.
    Remove(String),
}

impl ChunkLine {
    /// The text, if it has to be in the file already.
    fn old(&self) -> Option<&str> {
        match self {
            Self::Add(_) => None,
            Self::Context(text) | Self::Remove(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests;

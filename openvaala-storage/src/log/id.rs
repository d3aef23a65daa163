//! Names of paths and streams: what is accepted is safe as a file name on every system.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};

const MAX_SEGMENTS: usize = 8;
const MAX_SEGMENT_BYTES: usize = 128;
const LOG_SUFFIX: &str = ".jsonl";

/// Where streams live: 1 to 8 segments joined by `/`, for example `conversations/0192f3`.
///
/// A segment has 1 to 128 of the characters `a-z 0-9 _ - .` and does not begin with a dot. There are no upper-case
/// letters because some disks do not tell them apart, and none ends in `.jsonl`, so that two different names never meet in
/// one file. Cloning is cheap.
///
/// ```
/// use openvaala_storage::LogPath;
///
/// assert!("conversations/0192f3".parse::<LogPath>().is_ok());
/// assert!("conversations/../secret".parse::<LogPath>().is_err());
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LogPath(Arc<str>);

impl LogPath {
    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the segments from the outermost to the innermost.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the path one segment below this one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidId`] when the segment breaks the rules or the path would have more than 8 segments.
    pub fn join(&self, segment: &str) -> Result<Self> {
        format!("{}/{segment}", self.0).parse()
    }

    /// Returns the path itself and those above it, the outermost first.
    #[cfg(feature = "file")]
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = Self> {
        let ends = self.0.match_indices('/').map(|(end, _)| end);
        ends.chain([self.0.len()])
            .map(|end| Self(self.0[..end].into()))
    }

    /// Tells whether `other` is this path or lies below it.
    pub fn contains(&self, other: &Self) -> bool {
        other
            .0
            .strip_prefix(&*self.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn check(value: &str) -> Result<(), &'static str> {
        if value.split('/').count() > MAX_SEGMENTS {
            return Err("a path has at most 8 segments");
        }
        value.split('/').try_for_each(check_segment)
    }
}

/// The name of a stream inside its path, for example `metadata` or `0192f3.blobs`.
///
/// The rule is that of one [`LogPath`] segment. Cloning is cheap.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn check(value: &str) -> Result<(), &'static str> {
        check_segment(value)
    }
}

fn check_segment(segment: &str) -> Result<(), &'static str> {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
    if segment.is_empty() {
        return Err("a segment must not be empty");
    }
    if segment.len() > MAX_SEGMENT_BYTES {
        return Err("a segment has at most 128 characters");
    }
    if segment.starts_with('.') {
        return Err("a segment must not begin with a dot");
    }
    if segment.ends_with(LOG_SUFFIX) {
        return Err("a segment must not end in .jsonl");
    }
    if !segment.bytes().all(allowed) {
        return Err("only the characters a-z 0-9 _ - . are allowed");
    }
    Ok(())
}

macro_rules! text_id {
    ($name:ident, $kind:literal) => {
        impl TryFrom<&str> for $name {
            type Error = Error;

            fn try_from(value: &str) -> Result<Self> {
                match Self::check(value) {
                    Ok(()) => Ok(Self(value.into())),
                    Err(reason) => Err(Error::InvalidId {
                        kind: $kind,
                        value: value.chars().take(200).collect(),
                        reason,
                    }),
                }
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(value: &str) -> Result<Self> {
                Self::try_from(value)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

text_id!(LogPath, "path");
text_id!(StreamId, "stream id");

/// The address of one stream.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamKey {
    /// Where the stream lives.
    pub path: LogPath,
    /// Its name there.
    pub stream: StreamId,
}

impl StreamKey {
    /// Makes the address of a stream.
    pub fn new(path: LogPath, stream: StreamId) -> Self {
        Self { path, stream }
    }
}

impl fmt::Display for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.path, self.stream)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> LogPath {
        text.parse().unwrap()
    }

    #[test]
    fn r_47_unsafe_names_are_refused_with_their_reason() {
        let long = "a".repeat(129);
        let deep = ["a"; 9].join("/");
        let refused = [
            "", ".", "..", "a//b", "/a", "a/", "a/..", ".git", "A", "a b", "a\0", "a\n", "ä",
            "-\u{7f}", "a\\b", "c:", &long, &deep,
        ];
        for value in refused {
            let error = value.parse::<LogPath>().unwrap_err();
            assert!(
                matches!(error, Error::InvalidId { kind: "path", .. }),
                "{value:?}: {error}"
            );
        }
        for value in ["a/b", "x.jsonl", "", "..", "A"] {
            assert!(value.parse::<StreamId>().is_err(), "{value:?}");
        }
        for value in ["-", "_x", "0192-ab.blobs", "a..b", "metadata"] {
            assert_eq!(value.parse::<StreamId>().unwrap().as_str(), value);
        }
    }

    #[test]
    fn r_26_a_path_contains_its_subtree_and_no_neighbour() {
        let outer = path("conversations/ab");
        assert!(outer.contains(&outer));
        assert!(outer.contains(&path("conversations/ab/c")));
        assert!(!outer.contains(&path("conversations/abc")));
        assert!(!outer.contains(&path("conversations/ab.c")));
        assert!(!outer.contains(&path("conversations")));
    }

    #[test]
    fn a_key_reads_as_path_and_stream() {
        let key = StreamKey::new(path("a/b"), "metadata".parse().unwrap());
        assert_eq!(key.to_string(), "a/b/metadata");
    }

    proptest! {
        #[test]
        fn r_47_an_accepted_name_is_a_plain_file_name(text in "\\PC{0,12}|[a-z0-9._/-]{0,20}") {
            if let Ok(path) = text.parse::<LogPath>() {
                prop_assert_eq!(path.as_str(), &text);
                for segment in path.segments() {
                    prop_assert!(!segment.is_empty() && !segment.starts_with('.'));
                    prop_assert_eq!(segment.to_lowercase(), segment);
                }
            }
        }
    }
}

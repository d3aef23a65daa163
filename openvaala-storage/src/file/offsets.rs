//! The places of some entries, kept beside a long stream: `metadata.offsets` beside `metadata.jsonl`.
//!
//! ```text
//! 6f766f6666736574            the letters "ovoffset"
//! 01000000 00000000           the version, and room
//! 4000… 8f12…                 number and offset of an entry, 8 bytes each; again and again, in order
//! ```
//!
//! All numbers are little-endian. The file is a help and never the truth: it is not flushed, whoever uses a mark looks at the line first, and
//! when one is wrong the file is made anew. Marks are at least 64 KiB apart.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::layout::{Layout, present};
use crate::file::long::told_number;
use crate::file::place::{first_sound, is_at};
use crate::file::scan::{Backward, LONG_LINE, read_exact_at, write_all};
use crate::file::view::{Mark, View};
use crate::fs::{FsFile, Open};
use crate::log::StreamKey;

/// A shorter stream has no side file, and one that grew by less since is not looked at again.
pub(super) const GROWTH: u64 = 1024 * 1024;

const MAGIC: [u8; 16] = *b"ovoffset\x01\0\0\0\0\0\0\0";
const RECORD: usize = 16;
/// The least distance of two marks, in bytes.
const STEP: u64 = 64 * 1024;
/// With more marks, every second one is dropped.
const MAX_MARKS: usize = 32 * 1024;

/// Brings the places of one stream up to date.
pub(super) struct Update {
    pub(super) layout: Layout,
    pub(super) key: StreamKey,
    pub(super) view: View,
    /// The file was wrong: its content is not used.
    pub(super) anew: bool,
    /// Whether the storage may write.
    pub(super) writes: bool,
    pub(super) cancelled: Arc<AtomicBool>,
}

impl Update {
    /// Returns the marks up to the end of the view; `None` when there is nothing to be had.
    pub(super) fn run(&self) -> Option<Arc<[Mark]>> {
        let updated = self.update();
        if let Err(error) = &updated {
            tracing::debug!(stream = %self.key, %error, "the places of a stream are not known");
        }
        updated.ok().flatten().map(Arc::from)
    }

    fn update(&self) -> io::Result<Option<Vec<Mark>>> {
        let path = self.layout.file(&self.key);
        let Some(file) = present(self.layout.fs.open(&path, Open::Read))? else {
            return Ok(None);
        };
        if file.metadata()?.inode != self.view.stamp.inode {
            return Ok(None);
        }
        let mut stored = 0;
        let mut marks = match self.view.marks.hints().filter(|_| !self.anew) {
            Some(hints) => {
                stored = hints.len();
                hints.to_vec()
            }
            None if self.anew => Vec::new(),
            None => {
                let loaded = self.load().unwrap_or_default();
                stored = loaded.len();
                loaded
            }
        };
        marks.retain(|mark| mark.offset < self.view.end && mark.seq <= self.view.last);
        if let Some(last) = marks.last()
            && !is_at(&*file, *last, self.view.end)?
        {
            marks.clear();
        }
        let kept = marks.len();
        let known = marks.last().map_or(0, |mark| mark.offset);
        if self.view.end - known >= GROWTH && !self.scan(&*file, &mut marks)? {
            return Ok(None);
        }
        let is_new = thin_out(&mut marks) || kept < stored;
        if self.writes && (is_new || kept < marks.len()) {
            let kept = if is_new { 0 } else { kept };
            if let Err(error) = self.save(&marks, kept) {
                tracing::debug!(stream = %self.key, %error, "the places of a stream are not kept");
            }
        }
        Ok(Some(marks))
    }

    /// Adds marks up to the end; returns whether it got there with numbers in order.
    fn scan(&self, file: &dyn FsFile, marks: &mut Vec<Mark>) -> io::Result<bool> {
        let end = self.view.end;
        let mut from = marks.last().map_or(0, |mark| mark.offset) + STEP;
        while let Some(found) = first_sound(file, from, end, end)? {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if found.offset - from >= LONG_LINE {
                marks.extend(long_before(file, found, from - STEP)?);
            }
            if marks.last().is_some_and(|last| last.seq >= found.seq) || found.seq > self.view.last
            {
                return Ok(false);
            }
            marks.push(found);
            from = found.offset + STEP;
        }
        Ok(true)
    }

    fn load(&self) -> io::Result<Vec<Mark>> {
        let path = self.layout.offsets(&self.key);
        let Some(file) = present(self.layout.fs.open(&path, Open::Read))? else {
            return Ok(Vec::new());
        };
        let longest = (MAGIC.len() + (MAX_MARKS + 1) * RECORD) as u64;
        let mut bytes = vec![0; file.metadata()?.length.min(longest) as usize];
        read_exact_at(&*file, &mut bytes, 0)?;
        Ok(decode(&bytes))
    }

    /// Writes the marks that are not in the file yet; all of them if the file is not what it should be.
    fn save(&self, marks: &[Mark], kept: usize) -> io::Result<()> {
        let path = self.layout.offsets(&self.key);
        let mut file = self.layout.fs.open(&path, Open::AppendOrCreate)?;
        let expected = (MAGIC.len() + kept * RECORD) as u64;
        let mut bytes = Vec::new();
        if kept > 0 && file.metadata()?.length == expected {
            encode(&mut bytes, &marks[kept..]);
        } else {
            file.truncate(0)?;
            bytes.extend_from_slice(&MAGIC);
            encode(&mut bytes, marks);
        }
        write_all(&mut *file, &bytes)
    }
}

/// Returns the beginning of the long line before a mark, if it is one and its number is the one before.
fn long_before(file: &dyn FsFile, mark: Mark, after: u64) -> io::Result<Option<Mark>> {
    let mut lines = Backward::glance(file, mark.offset);
    let Some(line) = lines.next()? else {
        return Ok(None);
    };
    if line.length < LONG_LINE || line.offset <= after {
        return Ok(None);
    }
    let told = told_number(file, &line)?.filter(|seq| seq.checked_add(1) == Some(mark.seq));
    Ok(told.map(|seq| Mark {
        seq,
        offset: line.offset,
    }))
}

/// Drops every second mark while there are too many; returns whether it did.
fn thin_out(marks: &mut Vec<Mark>) -> bool {
    let too_many = marks.len() > MAX_MARKS;
    while marks.len() > MAX_MARKS {
        let mut keep = false;
        marks.retain(|_| {
            keep = !keep;
            keep
        });
    }
    too_many
}

fn encode(out: &mut Vec<u8>, marks: &[Mark]) {
    for mark in marks {
        out.extend_from_slice(&mark.seq.to_le_bytes());
        out.extend_from_slice(&mark.offset.to_le_bytes());
    }
}

/// Reads the marks up to the first one that can't be right; nothing of a file of another kind or version.
fn decode(bytes: &[u8]) -> Vec<Mark> {
    let Some(records) = bytes.strip_prefix(&MAGIC) else {
        return Vec::new();
    };
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |n, byte| n << 8 | u64::from(*byte))
    };
    let mut marks: Vec<Mark> = Vec::new();
    for record in records.chunks_exact(RECORD) {
        let (seq, offset) = record.split_at(RECORD / 2);
        let mark = Mark {
            seq: number(seq),
            offset: number(offset),
        };
        let last = marks.last().copied().unwrap_or(Mark { seq: 0, offset: 0 });
        if mark.seq <= last.seq || mark.offset <= last.offset {
            break;
        }
        marks.push(mark);
    }
    marks
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_file_cut_anywhere_has_the_marks_before_the_cut(
            steps in prop::collection::vec((1u64..1000, 1u64..1_000_000), 0..40),
            cut in 0usize..700,
        ) {
            let mut last = Mark { seq: 0, offset: 0 };
            let marks: Vec<Mark> = steps
                .into_iter()
                .map(|(seq, offset)| {
                    last = Mark { seq: last.seq + seq, offset: last.offset + offset };
                    last
                })
                .collect();
            let mut bytes = MAGIC.to_vec();
            encode(&mut bytes, &marks);
            bytes.truncate(cut);
            let whole = cut.saturating_sub(MAGIC.len()) / RECORD;
            prop_assert_eq!(decode(&bytes), &marks[..whole.min(marks.len())]);
        }
    }

    #[test]
    fn there_are_never_too_many_marks_and_they_stay_in_order() {
        let mut marks: Vec<Mark> = (1..=5 * MAX_MARKS as u64)
            .map(|n| Mark { seq: n, offset: n })
            .collect();
        assert!(thin_out(&mut marks));
        assert!(marks.len() <= MAX_MARKS && marks.len() > MAX_MARKS / 2);
        assert!(marks.is_sorted_by_key(|mark| mark.seq));
        assert!(!thin_out(&mut marks));
    }

    #[test]
    fn a_file_of_another_version_is_not_read() {
        let mut bytes = MAGIC.to_vec();
        encode(&mut bytes, &[Mark { seq: 5, offset: 9 }]);
        assert_eq!(decode(&bytes), [Mark { seq: 5, offset: 9 }]);
        bytes[8] = 2;
        assert_eq!(decode(&bytes), []);
    }
}

//! What is known of a stream: its acknowledged end, its last number, and where some of its entries lie.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::file::TornTail;
use crate::file::scan::LONG_LINE;
use crate::fs::Stamp;
use crate::log::{Fingerprint, StreamInfo};

const EVERY: u64 = 64;
/// About half a MiB.
const MAX_MARKS: usize = 16 * 1024;

/// A stream as readers may see it.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The file when this was found out.
    pub(super) stamp: Stamp,
    /// Where the acknowledged entries end, in bytes.
    pub(super) end: u64,
    /// The number of the last entry.
    pub(super) last: u64,
    /// Whether the last line has its line break.
    pub(super) terminated: bool,
    /// Known places.
    pub(super) marks: Arc<Marks>,
}

impl View {
    /// Tells whether bytes follow that are no entries.
    pub(super) fn is_torn(&self) -> bool {
        self.stamp.length > self.end
    }

    pub(super) fn torn_tail(&self) -> Option<TornTail> {
        self.is_torn().then(|| TornTail {
            offset: self.end,
            length: self.stamp.length - self.end,
        })
    }

    pub(super) fn info(&self) -> StreamInfo {
        StreamInfo {
            last: self.last,
            fingerprint: fingerprint(&self.stamp),
        }
    }
}

/// Returns the fingerprint of a file: the time is in it because inodes and lengths come again after a deletion or a cut.
pub(super) fn fingerprint(stamp: &Stamp) -> Fingerprint {
    Fingerprint::new(format!(
        "{}:{}:{}",
        stamp.inode, stamp.length, stamp.modified
    ))
}

/// A boundary in a stream: what lies before the offset has smaller numbers, what lies behind has this one or greater ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) offset: u64,
}

impl From<(&u64, &u64)> for Mark {
    fn from((seq, offset): (&u64, &u64)) -> Self {
        Self {
            seq: *seq,
            offset: *offset,
        }
    }
}

/// Some boundaries of a stream: every 64th entry, both sides of long lines, and the place where the last page ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    offsets: BTreeMap<u64, u64>,
    page_end: Option<Mark>,
    /// Lines are out of order: these marks come from scans that began at the beginning.
    disorderly: bool,
    /// Marks of the side file, in order; each is looked at before it counts.
    hints: Option<Arc<[Mark]>>,
    /// One of the hints was wrong.
    refuted: bool,
}

impl Marks {
    pub(super) fn disorderly() -> Self {
        Self {
            disorderly: true,
            ..Self::default()
        }
    }

    pub(super) fn is_orderly(&self) -> bool {
        !self.disorderly
    }

    /// Remembers an entry if it is one of those worth it.
    pub(super) fn note(&mut self, seq: u64, offset: u64, length: u64) {
        if seq.is_multiple_of(EVERY) || length >= LONG_LINE {
            self.offsets.insert(seq, offset);
        }
        if length >= LONG_LINE {
            self.offsets.insert(seq + 1, offset + length);
        }
    }

    /// Remembers a boundary that was looked for.
    pub(super) fn learn(&mut self, mark: Mark) {
        self.offsets.insert(mark.seq, mark.offset);
    }

    pub(super) fn note_page_end(&mut self, mark: Mark) {
        self.page_end = Some(mark);
    }

    /// Adds what another scan has learned; what was learned before the disorder was noticed is worth nothing.
    pub(super) fn merge(&mut self, other: Self) {
        match (self.disorderly, other.disorderly) {
            (true, false) => {}
            (false, true) => *self = other,
            _ => {
                self.offsets.extend(other.offsets);
                self.page_end = other.page_end.or(self.page_end);
                if other.refuted {
                    self.hints = None;
                }
            }
        }
        self.thin_out();
    }

    pub(super) fn set_hints(&mut self, hints: Arc<[Mark]>) {
        if !self.disorderly {
            self.hints = Some(hints);
        }
    }

    pub(super) fn hints(&self) -> Option<&Arc<[Mark]>> {
        self.hints.as_ref()
    }

    /// Says that one of the hints was wrong.
    pub(super) fn refute_hints(&mut self) {
        self.refuted = true;
    }

    pub(super) fn has_refuted_hints(&self) -> bool {
        self.refuted
    }

    /// Returns the last hint at or before a number and the first one after it.
    pub(super) fn hints_around(&self, seq: u64) -> [Option<Mark>; 2] {
        let hints = self.hints.as_deref().unwrap_or_default();
        let after = hints.partition_point(|hint| hint.seq <= seq);
        let before = after.checked_sub(1).map(|index| hints[index]);
        [before, hints.get(after).copied()]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offsets.is_empty() && self.page_end.is_none() && !self.disorderly && !self.refuted
    }

    /// Returns the last boundary at or before a number.
    pub(super) fn before(&self, seq: u64) -> Option<Mark> {
        let regular = self.offsets.range(..=seq).next_back().map(Mark::from);
        let page_end = self.page_end.filter(|mark| mark.seq <= seq);
        regular
            .into_iter()
            .chain(page_end)
            .max_by_key(|mark| mark.seq)
    }

    /// Returns the first boundary at or after a number.
    pub(super) fn after(&self, seq: u64) -> Option<Mark> {
        let regular = self.offsets.range(seq..).next().map(Mark::from);
        let page_end = self.page_end.filter(|mark| mark.seq >= seq);
        regular
            .into_iter()
            .chain(page_end)
            .min_by_key(|mark| mark.seq)
    }

    /// Keeps every second boundary when there are too many: they are found again.
    fn thin_out(&mut self) {
        if self.offsets.len() > MAX_MARKS {
            let mut keep = false;
            self.offsets.retain(|_, _| {
                keep = !keep;
                keep
            });
        }
    }
}

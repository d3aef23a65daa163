//! Pages of a file.
//!
//! Numbers are dense: a number whose line is damaged or missing is served as a placeholder. In an orderly file each line is one more than
//! the line before, or there are as many damaged lines between two sound ones as numbers are missing; then both directions
//! tell the same from any place. When a scan meets a line that another program has doubled, moved or removed, the file counts as
//! disorderly from then on: a scan from its beginning decides which line has which number, for both directions.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use crate::file::line::{Content, Envelope, Line};
use crate::file::place::{BEGINNING, bounds};
use crate::file::scan::{Backward, Forward};
use crate::file::view::{Mark, Marks, View};
use crate::fs::FsFile;
use crate::log::{Damage, Entry, EntryData, MAX_PAGE_BYTES, Order, Page, ReadOptions};

/// Reads one page and returns it with the places learned on the way.
pub(super) fn page(
    file: &dyn FsFile,
    view: &View,
    options: ReadOptions,
) -> io::Result<(Page, Marks)> {
    let limit = options.limit.max(1);
    let before = if options.cursor == 0 {
        view.last + 1
    } else {
        options.cursor
    };
    if view.marks.is_orderly() {
        let mut marks = Marks::default();
        let entries = match options.order {
            Order::Ascending => {
                let bounds = bounds(file, view, options.cursor + 1, &mut marks)?;
                bounds.map(|at| ascending(file, view, at.low, options.cursor, limit, &mut marks))
            }
            Order::Descending => {
                let bounds = bounds(file, view, before, &mut marks)?;
                bounds.map(|at| descending(file, at.high, before, limit, &mut marks))
            }
        };
        if let Some(entries) = entries.transpose()?.flatten() {
            return Ok((options.page(entries, view.last), marks));
        }
    }
    let mut marks = Marks::disorderly();
    let entries = match options.order {
        Order::Ascending => {
            let from = view.start(options.cursor + 1);
            ascending(file, view, from, options.cursor, limit, &mut marks)?.unwrap_or_default()
        }
        Order::Descending => last_before(file, view, before, limit, &mut marks)?,
    };
    Ok((options.page(entries, view.last), marks))
}

/// Scans a whole file and returns the number of its last entry.
pub(super) fn last_number(file: &dyn FsFile, end: u64) -> io::Result<u64> {
    let mut walk = Walk::new(file, BEGINNING, end, u64::MAX);
    walk.run(|_| true)?;
    Ok(walk.seq - 1)
}

/// Scans forwards; `None` when the file is disorderly and `marks` are those of an orderly one.
fn ascending(
    file: &dyn FsFile,
    view: &View,
    from: Mark,
    cursor: u64,
    limit: usize,
    marks: &mut Marks,
) -> io::Result<Option<Vec<Entry>>> {
    let mut walk = Walk::new(file, from, view.end, view.last);
    let mut page = Filling::new(limit);
    walk.run(|step| {
        for seq in step.missing.start.max(cursor + 1)..step.missing.end {
            if !page.push(0, || step.placeholder(seq)) {
                return false;
            }
        }
        let seq = step.envelope.seq;
        if seq > cursor && !page.take(&step.envelope, step.line) {
            return false;
        }
        marks.note(seq, step.line.offset, step.line.length);
        marks.note_page_end(Mark {
            seq: seq + 1,
            offset: step.line.end(),
        });
        page.has_room()
    })?;
    let trusted = walk.orderly || !marks.is_orderly();
    Ok(trusted.then_some(page.entries))
}

/// Scans backwards; `None` when the lines don't tell their numbers.
fn descending(
    file: &dyn FsFile,
    from: Mark,
    before: u64,
    limit: usize,
    marks: &mut Marks,
) -> io::Result<Option<Vec<Entry>>> {
    let mut lines = Backward::new(file, from.offset);
    let mut page = Filling::new(limit);
    let mut next = from.seq;
    let mut damaged: Vec<Damage> = Vec::new();
    while page.has_room() && next > 1 {
        let line = lines.next()?;
        let found = match line.as_ref().map(|line| (line, line.content())) {
            Some((_, Content::Blank)) => continue,
            Some((line, Content::Damaged(reason))) => {
                damaged.push(line.damage(reason));
                continue;
            }
            Some((line, Content::Valid(envelope))) => Some((line, envelope)),
            None => None,
        };
        let seq = found.as_ref().map_or(0, |(_, envelope)| envelope.seq);
        if seq.checked_add(1 + damaged.len() as u64) != Some(next) {
            return Ok(None);
        }
        for damage in damaged.drain(..) {
            next -= 1;
            if next < before && !page.push(0, || placeholder(next, damage)) {
                return Ok(Some(page.entries));
            }
        }
        let Some((line, envelope)) = found else { break };
        if seq < before && !page.take(&envelope, line) {
            break;
        }
        next = seq;
        marks.note(seq, line.offset, line.length);
        marks.note_page_end(Mark {
            seq,
            offset: line.offset,
        });
    }
    Ok(Some(page.entries))
}

/// Returns the last entries before a number, last first, by a forward scan.
fn last_before(
    file: &dyn FsFile,
    view: &View,
    before: u64,
    limit: usize,
    marks: &mut Marks,
) -> io::Result<Vec<Entry>> {
    let from = view.start(before.saturating_sub(limit as u64).max(1));
    let mut walk = Walk::new(file, from, view.end, view.last);
    let mut window = VecDeque::new();
    walk.run(|step| {
        let end = step.missing.end.min(before);
        let start = step.missing.start.max(end.saturating_sub(limit as u64));
        let missing = (start..end).map(|seq| step.placeholder(seq));
        let entry = (step.envelope.seq < before).then(|| step.envelope.entry(step.line));
        for entry in missing.chain(entry) {
            if window.len() == limit {
                window.pop_front();
            }
            window.push_back(entry);
        }
        marks.note(step.envelope.seq, step.line.offset, step.line.length);
        step.envelope.seq < before
    })?;
    let mut page = Filling::new(limit);
    while let Some(entry) = window.pop_back() {
        if !page.push(entry.json().map_or(0, |data| data.get().len()), || entry) {
            break;
        }
    }
    Ok(page.entries)
}

/// A page being filled, bounded in entries and bytes.
struct Filling {
    entries: Vec<Entry>,
    limit: usize,
    bytes: usize,
}

impl Filling {
    fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            limit,
            bytes: 0,
        }
    }

    fn has_room(&self) -> bool {
        self.entries.len() < self.limit
    }

    /// Takes the entry of a line unless the page is full.
    fn take(&mut self, envelope: &Envelope<'_>, line: &Line<'_>) -> bool {
        self.push(envelope.data.len(), || envelope.entry(line))
    }

    /// Takes an entry with so many bytes of payload unless the page is full: then it is not even copied.
    fn push(&mut self, bytes: usize, entry: impl FnOnce() -> Entry) -> bool {
        self.bytes += bytes;
        let full = !self.has_room() || (!self.entries.is_empty() && self.bytes > MAX_PAGE_BYTES);
        if !full {
            self.entries.push(entry());
        }
        !full
    }
}

/// An entry with the numbers before it that have no valid line.
struct Step<'a> {
    missing: Range<u64>,
    damaged: &'a [Damage],
    envelope: Envelope<'a>,
    line: &'a Line<'a>,
}

impl Step<'_> {
    /// Returns what stands for a missing number: the damaged lines in their order, the last one for the rest.
    fn placeholder(&self, seq: u64) -> Entry {
        let index = usize::try_from(seq - self.missing.start).unwrap_or(usize::MAX);
        let damage = self.damaged.get(index).or_else(|| self.damaged.last());
        let damage = damage.cloned().unwrap_or_else(|| Damage {
            offset: self.line.offset,
            length: 0,
            reason: "the entry is missing".to_owned(),
        });
        placeholder(seq, damage)
    }
}

fn placeholder(seq: u64, damage: Damage) -> Entry {
    Entry {
        seq,
        time: 0,
        data: EntryData::Damaged(damage),
    }
}

impl View {
    /// Returns where a scan of a disorderly file may begin: it has only what such scans have learned.
    fn start(&self, seq: u64) -> Mark {
        let known = self.marks.before(seq);
        let usable = known.filter(|_| !self.marks.is_orderly());
        usable.unwrap_or(BEGINNING)
    }
}

/// The forward scan: it decides which line has which number.
struct Walk<'a> {
    lines: Forward<'a>,
    /// The smallest number that may come next.
    seq: u64,
    last: u64,
    /// Whether all lines so far tell their numbers without knowing what was before.
    orderly: bool,
}

impl<'a> Walk<'a> {
    fn new(file: &'a dyn FsFile, from: Mark, end: u64, last: u64) -> Self {
        Self {
            lines: Forward::new(file, from.offset, end),
            seq: from.seq,
            last,
            orderly: true,
        }
    }

    /// Visits entry by entry until the visitor has enough.
    fn run(&mut self, mut visit: impl FnMut(Step<'_>) -> bool) -> io::Result<()> {
        let mut damaged = Vec::new();
        while let Some(line) = self.lines.next()? {
            match line.content() {
                Content::Blank => {}
                Content::Damaged(reason) => damaged.push(line.damage(reason)),
                Content::Valid(envelope) if envelope.seq < self.seq || envelope.seq > self.last => {
                    self.orderly = false;
                    damaged.push(line.damage("the number of the entry is out of order"));
                }
                Content::Valid(envelope) => {
                    let missing = self.seq..envelope.seq;
                    self.orderly &= missing.end - missing.start == damaged.len() as u64;
                    self.seq = envelope.seq.saturating_add(1);
                    let more = visit(Step {
                        missing,
                        damaged: &damaged,
                        envelope,
                        line: &line,
                    });
                    if !more {
                        break;
                    }
                    damaged.clear();
                }
            }
        }
        Ok(())
    }
}

//! Finding the place of a number in a file by a few short reads.
//!
//! In an orderly file numbers grow with offsets, so halving the file finds a place without any index. Marks that were learned before and
//! hints of the [side file](crate::file::offsets) only shorten the way. A hint counts once the line at its offset tells its number.

use std::io;

use crate::file::line::Line;
use crate::file::long::{sound_number, told_number};
use crate::file::scan::{Forward, LONG_LINE};
use crate::file::view::{Mark, Marks, View};
use crate::fs::FsFile;

/// A part of a file that is read rather than halved.
const NEAR: u64 = 128 * 1024;

pub(super) const BEGINNING: Mark = Mark { seq: 1, offset: 0 };

/// Two boundaries with a number between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// At or before the number.
    pub(super) low: Mark,
    /// At or after it.
    pub(super) high: Mark,
}

impl Bounds {
    fn length(&self) -> u64 {
        self.high.offset.saturating_sub(self.low.offset)
    }

    /// Takes a boundary that lies between the two.
    fn narrow(&mut self, mark: Mark, seq: u64) {
        if mark.seq <= seq {
            self.low = mark;
        }
        if mark.seq >= seq {
            self.high = mark;
        }
    }

    /// Tells whether a boundary is where its number belongs.
    fn admits(&self, mark: Mark) -> bool {
        mark.seq >= self.low.seq && mark.seq < self.high.seq
    }
}

/// Finds near boundaries around a number; `None` when lines are out of order.
///
/// What was learned on the way is added to `marks`.
pub(super) fn bounds(
    file: &dyn FsFile,
    view: &View,
    seq: u64,
    marks: &mut Marks,
) -> io::Result<Option<Bounds>> {
    let end = Mark {
        seq: view.last + 1,
        offset: view.end,
    };
    let mut bounds = Bounds {
        low: BEGINNING,
        high: end,
    };
    let known = [view.marks.before(seq), view.marks.after(seq)];
    for mark in [BEGINNING, end]
        .into_iter()
        .chain(known.into_iter().flatten())
    {
        bounds.narrow(mark, seq);
    }
    let in_order =
        use_hints(file, view, seq, &mut bounds, marks)? && halve(file, seq, &mut bounds, marks)?;
    Ok(in_order.then_some(bounds))
}

/// Comes nearer by hints; returns whether the numbers are in order.
fn use_hints(
    file: &dyn FsFile,
    view: &View,
    seq: u64,
    bounds: &mut Bounds,
    marks: &mut Marks,
) -> io::Result<bool> {
    if bounds.length() <= NEAR {
        return Ok(true);
    }
    for hint in view.marks.hints_around(seq).into_iter().flatten() {
        if hint.offset <= bounds.low.offset || hint.offset >= bounds.high.offset {
            continue;
        }
        if !is_at(file, hint, view.end)? {
            marks.refute_hints();
            return Ok(true);
        }
        if !bounds.admits(hint) {
            return Ok(false);
        }
        bounds.narrow(hint, seq);
        marks.learn(hint);
    }
    Ok(true)
}

/// Halves what lies between two boundaries until the rest is short; returns whether the numbers are in order.
fn halve(file: &dyn FsFile, seq: u64, bounds: &mut Bounds, marks: &mut Marks) -> io::Result<bool> {
    // No sound line begins between it and the upper boundary.
    let mut ceiling = bounds.high.offset;
    while ceiling.saturating_sub(bounds.low.offset) > NEAR {
        let middle = bounds.low.offset + (ceiling - bounds.low.offset) / 2;
        let Some(found) = first_sound(file, middle, ceiling, bounds.high.offset)? else {
            ceiling = middle;
            continue;
        };
        if !bounds.admits(found) {
            return Ok(false);
        }
        bounds.narrow(found, seq);
        marks.learn(found);
        ceiling = if found.seq <= seq {
            ceiling.min(bounds.high.offset)
        } else {
            middle
        };
    }
    Ok(true)
}

/// Finds the first sound line that begins in `from..before`, in a file whose lines end at `end`; `from` is not 0.
pub(super) fn first_sound(
    file: &dyn FsFile,
    from: u64,
    before: u64,
    end: u64,
) -> io::Result<Option<Mark>> {
    if from >= before {
        return Ok(None);
    }
    let mut lines = Forward::glance(file, from - 1, end);
    // What belongs to the line before; only its break, if a line begins at `from`.
    lines.next()?;
    while let Some(line) = lines.next()? {
        let offset = line.offset;
        if offset >= before {
            break;
        }
        if let Some(seq) = sound_number(file, &line)? {
            return Ok(Some(Mark { seq, offset }));
        }
    }
    Ok(None)
}

/// Tells whether the line with the number of a mark begins at its offset.
///
/// A long line is not read for it: then its first bytes are believed, since they and the mark say the same.
pub(super) fn is_at(file: &dyn FsFile, mark: Mark, end: u64) -> io::Result<bool> {
    if mark.offset == 0 || mark.offset >= end {
        return Ok(false);
    }
    let until = end.min(mark.offset + LONG_LINE);
    let mut lines = Forward::glance(file, mark.offset - 1, until);
    let breaks = lines
        .next()?
        .is_some_and(|line| line.terminated && line.length == 1);
    if !breaks {
        return Ok(false);
    }
    let Some(line) = lines.next()? else {
        return Ok(false);
    };
    let found = if is_cut(&line, until, end) {
        told_number(file, &line)?
    } else {
        sound_number(file, &line)?
    };
    Ok(found == Some(mark.seq))
}

fn is_cut(line: &Line<'_>, until: u64, end: u64) -> bool {
    !line.terminated && until < end
}

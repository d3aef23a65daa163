//! A range of lines out of a file that comes in pieces.

use std::str;

use crate::output::{DEFAULT_CAP, grouped};

/// As much of one line as is shown, in bytes.
const LONGEST_LINE: usize = 4_000;

/// Room for the footer.
const FOOTER_ROOM: usize = 200;

const BOM: &[u8] = "\u{FEFF}".as_bytes();

/// Collects the lines from one number on, as many as were asked for and fit.
#[derive(Debug)]
pub(super) struct Lines {
    first: u64,
    limit: u64,
    text: String,
    shown: u64,
    shortened: bool,
    full: bool,
    /// Number of the line that is being read, from 1.
    number: u64,
    /// Its beginning, as far as it may be shown.
    line: Vec<u8>,
    /// Its length so far.
    length: usize,
}

/// Something that is no text stands in the lines asked for, or at the very beginning.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NotText {
    pub(super) line: u64,
}

impl Lines {
    /// Collects `limit` lines, beginning with number `first`; both are at least 1.
    pub(super) fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            limit,
            text: String::new(),
            shown: 0,
            shortened: false,
            full: false,
            number: 1,
            line: Vec::new(),
            length: 0,
        }
    }

    /// Takes the next piece of the file.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), NotText> {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            self.take(part)?;
            if part.ends_with(b"\n") {
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// Ends a last line without line break.
    pub(super) fn finish(&mut self) -> Result<(), NotText> {
        if self.length > 0 {
            self.end_line()
        } else {
            Ok(())
        }
    }

    /// Whether no more lines are collected, only counted.
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether a line is shown in part only.
    pub(super) const fn is_shortened(&self) -> bool {
        self.shortened
    }

    /// How many lines are collected.
    pub(super) const fn shown(&self) -> u64 {
        self.shown
    }

    /// How many lines have ended so far.
    pub(super) const fn count(&self) -> u64 {
        self.number - 1
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn take(&mut self, part: &[u8]) -> Result<(), NotText> {
        // A few bytes more than are shown, so that a character across the edge is whole.
        let room = (LONGEST_LINE + 4).saturating_sub(self.line.len());
        if self.number == 1 || self.is_wanted() {
            self.line.extend_from_slice(&part[..room.min(part.len())]);
            if self.line.contains(&0) {
                return Err(NotText { line: self.number });
            }
        }
        self.length += part.len();
        Ok(())
    }

    const fn is_wanted(&self) -> bool {
        !self.full && self.number >= self.first
    }

    fn end_line(&mut self) -> Result<(), NotText> {
        let (line, length) = (
            std::mem::take(&mut self.line),
            std::mem::take(&mut self.length),
        );
        if self.is_wanted() {
            self.show(&line, length)?;
        }
        self.number += 1;
        Ok(())
    }

    fn show(&mut self, line: &[u8], length: usize) -> Result<(), NotText> {
        let bom = if self.number == 1 && line.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        let (line, length) = (&line[bom..], length - bom);
        let is_long = length > LONGEST_LINE + 1;
        let text = match str::from_utf8(line) {
            Ok(text) => text,
            // Cut in the middle of a character, which was whole in the file or not: it is not shown.
            Err(error) if is_long && error.valid_up_to() >= LONGEST_LINE => {
                str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Err(NotText { line: self.number }),
        };
        let text = if is_long {
            &text[..text.floor_char_boundary(LONGEST_LINE)]
        } else {
            text
        };
        if self.shown > 0 && self.text.len() + text.len() + FOOTER_ROOM > DEFAULT_CAP {
            self.full = true;
            return Ok(());
        }
        self.text.push_str(text);
        if is_long {
            let left_out = grouped(length - text.len());
            self.text += &format!("[… {left_out} bytes of this line left out; use bash …]\n");
            self.shortened = true;
        }
        self.shown += 1;
        self.full = self.shown == self.limit;
        Ok(())
    }
}

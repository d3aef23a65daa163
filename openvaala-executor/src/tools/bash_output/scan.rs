//! Lines out of kept output of any length, in bounded memory.

use regex_lite::Regex;
use tokio::task::yield_now;

use crate::output::{DEFAULT_CAP, Screen, grouped};
use crate::tool::OutputSink;

/// As much is asked of the sink at once, in bytes.
const PIECE: usize = 64 * 1024;

/// As much of one line is searched, in bytes.
const LONGEST_LINE: usize = 8 * 1024;

/// As much of one line is shown, in bytes.
const SHOWN_LINE: usize = 2_000;

/// Room for what stands behind the lines.
const FOOTER_ROOM: usize = 600;

/// Which lines are looked for.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Number of the first line, from 1.
    pub(super) first: u64,
    /// How many lines at most.
    pub(super) limit: u64,
    /// What a line has to match.
    pub(super) pattern: Option<Regex>,
}

/// Collects the lines that are wanted, as many as fit.
#[derive(Debug)]
pub(super) struct Scan {
    wanted: Wanted,
    screen: Screen,
    /// The line that is being read, as far as it is searched.
    line: String,
    /// Number of the line that is being read, from 1.
    number: u64,
    text: String,
    found: u64,
    /// The number of the first line that was wanted and left out.
    more_from: Option<u64>,
    /// Whether a line was shown in part only.
    shortened: bool,
}

impl Scan {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            screen: Screen::default(),
            line: String::new(),
            number: 1,
            text: String::new(),
            found: 0,
            more_from: None,
            shortened: false,
        }
    }

    /// Reads until there is no more or enough was found; `false` if nothing is kept.
    ///
    /// Dropping the future stops it.
    pub(super) async fn all(&mut self, sink: &dyn OutputSink) -> bool {
        let mut offset = 0;
        while self.more_from.is_none() {
            let Some(kept) = sink.read(offset, PIECE).await else {
                return false;
            };
            if kept.bytes.is_empty() {
                break;
            }
            if kept.offset > offset {
                self.hole(kept.offset - offset);
            }
            offset = kept.next();
            let mut text = String::new();
            self.screen.push(&kept.bytes, &mut text);
            self.push(&text);
            // A search through much text must not keep others from running.
            yield_now().await;
        }
        let mut rest = String::new();
        self.screen.finish(&mut rest);
        self.push(&rest);
        if !self.line.is_empty() {
            self.end_line();
        }
        true
    }

    /// The lines with their numbers, and whether something that was wanted is left out.
    pub(super) fn finish(self) -> (String, bool) {
        let (mut text, last) = (self.text, self.number - 1);
        match self.more_from {
            Some(line) => text.push_str(&format!("[more: go on with from_line {line}]\n")),
            None if self.found == 0 => {
                text.push_str(&format!("[no such line; there are {last} so far]\n"));
            }
            None => {}
        }
        (text, self.more_from.is_some() || self.shortened)
    }

    fn push(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            let (body, ends) = part
                .strip_suffix('\n')
                .map_or((part, false), |body| (body, true));
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.push_str(&body[..body.floor_char_boundary(room)]);
            if ends {
                self.end_line();
            }
        }
    }

    /// Something in the middle is not kept: numbers go on as if it were not there.
    fn hole(&mut self, bytes: u64) {
        let mut rest = String::new();
        self.screen.finish(&mut rest);
        self.push(&rest);
        if !self.line.is_empty() {
            self.end_line();
        }
        if self.more_from.is_none() {
            let bytes = grouped(usize::try_from(bytes).unwrap_or(usize::MAX));
            self.text.push_str(&format!(
                "[… {bytes} bytes are not kept; line numbers go on behind them …]\n"
            ));
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let number = self.number;
        self.number += 1;
        let pattern = self.wanted.pattern.as_ref();
        let wanted =
            number >= self.wanted.first && pattern.is_none_or(|pattern| pattern.is_match(&line));
        if !wanted || self.more_from.is_some() {
            return;
        }
        let shown = &line[..line.floor_char_boundary(SHOWN_LINE)];
        let cut = if shown.len() < line.len() { "…" } else { "" };
        let row = format!("{number}: {shown}{cut}\n");
        let full = self.text.len() + row.len() > DEFAULT_CAP - FOOTER_ROOM;
        if self.found == self.wanted.limit || full {
            self.more_from = Some(number);
            return;
        }
        self.shortened |= !cut.is_empty();
        self.text.push_str(&row);
        self.found += 1;
    }
}

//! From the old content of a file to the new one.

use super::lines::{Line, Lines};
use super::near::{self, quote};
use super::seek::{self, Pass};
use super::{Chunk, ChunkLine, PatchError, Rejection, Update};

/// How many places are counted for a note.
const COUNTED: usize = 100;

/// The new content of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Applied {
    /// Every byte of it.
    pub content: Vec<u8>,
    /// What its author may not expect, each in one line: lines that could have been others, a
    /// newline that the last line got.
    pub notes: Vec<String>,
}

impl Update {
    /// Makes the new content of a file out of the old one; `path` is for the messages.
    ///
    /// - Lines are searched from the end of the last chunk on, below the anchors, in four passes
    ///   over the file: byte for byte; without white space at the end; at both ends; with
    ///   typographic dashes, quotes and spaces taken for plain ones.
    /// - Lines that stay keep all their bytes. New lines get the line ending of the first line.
    /// - A chunk that only adds does so below its anchor, or at the end of the file.
    /// - A last line without a newline stays without one while it stays the last line.
    ///
    /// # Errors
    ///
    /// [`PatchError::Rejected`] with what is there instead.
    pub fn apply(&self, path: &str, content: &[u8]) -> Result<Applied, PatchError> {
        let lines = Lines::new(content);
        let mut search = Search {
            path,
            lines: &lines.lines,
            position: 0,
            notes: Vec::new(),
        };
        let mut places = Vec::with_capacity(self.chunks.len());
        for chunk in &self.chunks {
            places.push(search.place(chunk)?);
        }
        // Lines added at the end of the file may come before chunks that stand above them.
        places.sort_by_key(|place| place.start);
        let mut notes = search.notes;
        let content = rebuild(&lines, &places);
        if lines.is_unterminated() && content.last() == Some(&b'\n') {
            notes.push(format!(
                "note: {path} now ends with a newline, which it did not before"
            ));
        }
        Ok(Applied { content, notes })
    }
}

/// A chunk with its place: the file has its old lines from `start` on.
struct Place<'c> {
    start: usize,
    changes: Vec<&'c ChunkLine>,
}

struct Search<'f> {
    path: &'f str,
    lines: &'f [Line<'f>],
    /// The first line that no chunk has taken yet.
    position: usize,
    notes: Vec<String>,
}

impl Search<'_> {
    fn place<'c>(&mut self, chunk: &'c Chunk) -> Result<Place<'c>, PatchError> {
        let before = self.position;
        for anchor in &chunk.anchors {
            self.position = self.below(anchor, chunk)?;
        }
        let mut changes: Vec<&ChunkLine> = chunk.lines.iter().collect();
        if chunk.lines.iter().all(|line| line.old().is_none()) {
            let at_end = chunk.at_end || chunk.anchors.is_empty();
            let start = if at_end {
                self.lines.len()
            } else {
                self.position
            };
            return Ok(Place { start, changes });
        }
        loop {
            if let Some(start) = self.find(chunk, &changes, before) {
                self.position = start + old_lines(&changes).len();
                return Ok(Place { start, changes });
            }
            // An empty line at the end may be space between chunks, or the end of the file.
            if !drop_empty_end(&mut changes) {
                return Err(self.not_found(chunk));
            }
        }
    }

    /// The line below an anchor.
    fn below(&self, anchor: &str, chunk: &Chunk) -> Result<usize, PatchError> {
        let wanted = [anchor];
        if let Some((at, _)) = seek::find(self.lines, &wanted, self.position) {
            return Ok(at + 1);
        }
        let quoted = quote(anchor);
        if let Some((at, _)) = seek::find(self.lines, &wanted, 0) {
            let problem = format!(
                "the anchor {quoted} is at line {}, but it is searched from line {} on; chunks \
                 and anchors must be in the order of the file",
                at + 1,
                self.position + 1
            );
            return Err(self.rejected(chunk, Rejection::WrongPlace, problem));
        }
        let near = near::describe(self.lines, &wanted);
        let problem =
            format!("no line of it is the anchor {quoted}; an anchor is a whole line{near}");
        Err(self.rejected(chunk, Rejection::AnchorNotFound, problem))
    }

    fn find(&mut self, chunk: &Chunk, changes: &[&ChunkLine], before: usize) -> Option<usize> {
        let old = old_lines(changes);
        let from = self.position;
        if chunk.at_end {
            let start = self.lines.len().checked_sub(old.len())?;
            let at_end = || seek::find_at(self.lines, &old, start).map(|(start, _)| start);
            return (start >= from).then(at_end).flatten();
        }
        let anchored = !chunk.anchors.is_empty();
        let repeated = || {
            // The anchor may be given again as the first line of the chunk.
            let start = from
                .checked_sub(1)
                .filter(|start| anchored && *start >= before)?;
            seek::find_at(self.lines, &old, start)
        };
        let (start, pass) = seek::find(self.lines, &old, from).or_else(repeated)?;
        if !anchored {
            self.note_others(chunk, &old, pass);
        }
        Some(start)
    }

    fn note_others(&mut self, chunk: &Chunk, old: &[&str], pass: Pass) {
        let count = seek::count(self.lines, old, self.position, pass, COUNTED + 1);
        if count > 1
            && chunk
                .lines
                .iter()
                .any(|line| !matches!(line, ChunkLine::Context(_)))
        {
            let (line, path) = (chunk.line, self.path);
            let times = match count {
                ..=COUNTED => count.to_string(),
                _ => format!("more than {COUNTED}"),
            };
            let from = match self.position {
                0 => String::new(),
                position => format!(" from line {} on", position + 1),
            };
            self.notes.push(format!(
                "note: what the chunk at line {line} of the patch replaces occurs {times} times in \
                 {path}{from}, the first was changed"
            ));
        }
    }

    fn not_found(&self, chunk: &Chunk) -> PatchError {
        let all: Vec<&ChunkLine> = chunk.lines.iter().collect();
        let old = old_lines(&all);
        let Some((at, _)) = seek::find(self.lines, &old, 0) else {
            let near = near::describe(self.lines, &old);
            let problem = format!("it has no such lines{near}");
            return self.rejected(chunk, Rejection::LinesNotFound, problem);
        };
        let there = span(at, old.len());
        let problem = if at < self.position {
            format!(
                "its lines are at {there}, but they are searched from line {} on; chunks must be \
                 in the order of the file, below their anchors",
                self.position + 1
            )
        } else {
            format!("its lines are at {there}, but not at the end of the file")
        };
        self.rejected(chunk, Rejection::WrongPlace, problem)
    }

    fn rejected(&self, chunk: &Chunk, rejection: Rejection, problem: String) -> PatchError {
        PatchError::Rejected {
            path: self.path.to_owned(),
            line: chunk.line,
            rejection,
            problem,
        }
    }
}

fn span(start: usize, count: usize) -> String {
    match count {
        1 => format!("line {}", start + 1),
        _ => format!("lines {}-{}", start + 1, start + count),
    }
}

fn old_lines<'c>(changes: &[&'c ChunkLine]) -> Vec<&'c str> {
    changes.iter().filter_map(|line| line.old()).collect()
}

/// Drops the last old line if it is empty, and then the last new one if that is empty too.
///
/// Tells whether old lines are left to search for.
fn drop_empty_end(changes: &mut Vec<&ChunkLine>) -> bool {
    let Some(last) = changes.iter().rposition(|line| line.old().is_some()) else {
        return false;
    };
    if changes[last].old() != Some("") || old_lines(changes).len() < 2 {
        return false;
    }
    let removed = changes.remove(last);
    let is_empty = |line: &&ChunkLine| matches!(line, ChunkLine::Add(text) if text.is_empty());
    if matches!(removed, ChunkLine::Remove(_)) && changes.last().is_some_and(is_empty) {
        changes.pop();
    }
    true
}

fn rebuild(old: &Lines<'_>, places: &[Place<'_>]) -> Vec<u8> {
    let mut new = Writer {
        ending: old.ending(),
        bytes: old.bom.to_vec(),
        start: old.bom.len(),
        is_open: false,
    };
    let mut at = 0;
    let keep = |new: &mut Writer<'_>, until: usize, at: &mut usize| {
        for line in old.lines.get(*at..until).unwrap_or_default() {
            new.keep(line);
        }
        *at = until;
    };
    for place in places {
        keep(&mut new, place.start, &mut at);
        for change in &place.changes {
            let next = at + 1;
            match change {
                ChunkLine::Add(text) => new.add(text),
                ChunkLine::Context(_) => keep(&mut new, next, &mut at),
                ChunkLine::Remove(_) => at = next,
            }
        }
    }
    keep(&mut new, old.lines.len(), &mut at);
    new.bytes
}

struct Writer<'a> {
    ending: &'a [u8],
    bytes: Vec<u8>,
    /// Where the first line begins.
    start: usize,
    /// Whether the last line has no ending yet.
    is_open: bool,
}

impl Writer<'_> {
    fn keep(&mut self, line: &Line<'_>) {
        self.close();
        self.bytes.extend_from_slice(line.text);
        self.bytes.extend_from_slice(line.ending);
        self.is_open = line.ending.is_empty();
    }

    fn add(&mut self, text: &str) {
        self.close();
        let mut text = text;
        if self.ending == b"\r\n" {
            text = text.strip_suffix('\r').unwrap_or(text);
        }
        if self.start > 0 && self.bytes.len() == self.start {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(self.ending);
    }

    fn close(&mut self) {
        if self.is_open {
            self.bytes.extend_from_slice(self.ending);
            self.is_open = false;
        }
    }
}

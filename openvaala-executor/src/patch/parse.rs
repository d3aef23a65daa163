//! From text to a patch.

use std::iter;

use super::{Action, Chunk, ChunkLine, Operation, Patch, PatchError, Update, unwrap};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const END_OF_FILE: &str = "*** End of File";
const ENVIRONMENT: &str = "*** Environment ID:";
const MOVE: &str = "*** Move to:";
const HEADERS: &str = "`*** Add File: path`, `*** Delete File: path` or `*** Update File: path`";

impl Patch {
    /// Reads a patch, also in a wrapper that [`unwrap`](super::unwrap()) knows.
    ///
    /// # Errors
    ///
    /// [`PatchError::Malformed`] with the first line that is wrong.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let text = unwrap(text);
        let mut lines: Vec<&str> = text.split('\n').collect();
        strip_carriage_returns(&mut lines);
        let last = lines.len();
        if lines.first().is_none_or(|line| line.trim() != BEGIN) {
            return Err(malformed(1, format!("the first line must be `{BEGIN}`")));
        }
        if last < 2 || lines[last - 1].trim() != END {
            let problem = format!("the last line must be `{END}`; is the patch cut off?");
            return Err(malformed(last, problem));
        }
        lines.pop();
        Parser { lines, at: 1 }.patch()
    }
}

/// A patch that was written with `\r\n` throughout means `\n`.
fn strip_carriage_returns(lines: &mut [&str]) {
    let Some((_, ended)) = lines.split_last_mut() else {
        return;
    };
    if ended.iter().all(|line| line.ends_with('\r')) {
        for line in ended {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
}

fn malformed(line: usize, problem: impl Into<String>) -> PatchError {
    PatchError::Malformed {
        line,
        problem: problem.into(),
    }
}

struct Parser<'a> {
    /// Without the line that ends the patch.
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// The number of the next line.
    fn number(&self) -> usize {
        self.at + 1
    }

    /// What follows `marker` on the next line, which is then taken.
    fn take(&mut self, marker: &str) -> Option<&'a str> {
        let rest = self.peek()?.trim().strip_prefix(marker)?.trim();
        self.at += 1;
        Some(rest)
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// The next line that has any character; in a chunk a space is one.
    fn peek_behind_empty(&self) -> Option<&'a str> {
        let mut rest = self.lines.iter().skip(self.at);
        rest.find(|line| !is_empty(line)).copied()
    }

    fn patch(mut self) -> Result<Patch, PatchError> {
        let environment = self.take(ENVIRONMENT).map(str::to_owned);
        let mut operations = Vec::new();
        self.skip_blank();
        while self.peek().is_some() {
            operations.push(self.operation()?);
            self.skip_blank();
        }
        if operations.is_empty() {
            let problem = format!("it changes no file; begin with {HEADERS}");
            return Err(malformed(self.number(), problem));
        }
        Ok(Patch {
            environment,
            operations,
        })
    }

    fn operation(&mut self) -> Result<Operation, PatchError> {
        let line = self.number();
        let header = self.peek().unwrap_or_default().trim();
        let (path, action) = if let Some(path) = self.take("*** Add File:") {
            (path, Action::Add(self.content()?))
        } else if let Some(path) = self.take("*** Delete File:") {
            (path, Action::Delete)
        } else if let Some(path) = self.take("*** Update File:") {
            (path, Action::Update(self.update(line, path)?))
        } else {
            let hint = match header {
                END => "more follows behind this end of the patch; put all files into one patch",
                _ => "it is not the header of a file",
            };
            let problem = format!("{header:?}: {hint}; expected {HEADERS}");
            return Err(malformed(line, problem));
        };
        if path.is_empty() {
            return Err(malformed(line, format!("{header:?} names no path")));
        }
        Ok(Operation {
            line,
            path: path.to_owned(),
            action,
        })
    }

    /// The lines of a new file. Empty lines between them count although their `+` is missing.
    fn content(&mut self) -> Result<String, PatchError> {
        let (mut content, mut empty) = (String::new(), 0);
        for (index, line) in self.lines.iter().enumerate().skip(self.at) {
            if let Some(text) = line.strip_prefix('+') {
                content.extend(iter::repeat_n('\n', empty));
                content.push_str(text);
                content.push('\n');
                (empty, self.at) = (0, index + 1);
            } else if line.trim().is_empty() {
                empty += 1;
            } else if is_header(line.trim()) {
                break;
            } else {
                let problem = format!("{line:?}: every line of a new file must begin with `+`");
                return Err(malformed(index + 1, problem));
            }
        }
        Ok(content)
    }

    fn update(&mut self, line: usize, path: &str) -> Result<Update, PatchError> {
        let move_to = self.take(MOVE).map(str::to_owned);
        if move_to.as_deref() == Some("") {
            return Err(malformed(self.at, format!("`{MOVE}` names no path")));
        }
        let mut chunks = Vec::new();
        while self
            .peek_behind_empty()
            .is_some_and(|line| !is_header(line))
        {
            chunks.push(self.chunk()?);
        }
        if chunks.is_empty() {
            let way_out = match move_to {
                Some(_) => "; to move a file as it is, use bash with `mv`",
                None => "",
            };
            let problem = format!("the update of {path} changes no line{way_out}");
            return Err(malformed(line, problem));
        }
        Ok(Update { move_to, chunks })
    }

    fn chunk(&mut self) -> Result<Chunk, PatchError> {
        if self.peek_behind_empty().is_some_and(is_anchor) {
            self.skip_blank();
        }
        let mut chunk = Chunk {
            line: self.number(),
            anchors: self.anchors(),
            lines: Vec::new(),
            at_end: false,
        };
        // How many lines there are but for empty ones at the end.
        let mut kept = 0;
        while let Some(line) = self.peek() {
            chunk.at_end = line.trim_end() == END_OF_FILE;
            if chunk.at_end || is_header(line) || is_anchor(line) {
                break;
            }
            chunk.lines.push(self.chunk_line(line)?);
            if !is_empty(line) {
                kept = chunk.lines.len();
            }
            self.at += 1;
        }
        // Behind lines that are only added, empty ones are space between chunks.
        if chunk
            .lines
            .iter()
            .take(kept)
            .all(|line| line.old().is_none())
        {
            chunk.lines.truncate(kept);
        }
        if chunk.lines.is_empty() {
            let problem = "the chunk has no lines that begin with a space, `-` or `+`";
            return Err(malformed(chunk.line, problem));
        }
        if chunk.at_end {
            self.at += 1;
            self.expect_next_chunk()?;
        }
        Ok(chunk)
    }

    fn anchors(&mut self) -> Vec<String> {
        let mut anchors = Vec::new();
        while let Some(line) = self.peek_behind_empty().filter(|line| is_anchor(line)) {
            self.skip_blank();
            self.at += 1;
            anchors.extend(anchor(line).map(str::to_owned));
        }
        anchors
    }

    fn chunk_line(&self, line: &str) -> Result<ChunkLine, PatchError> {
        let mut chars = line.chars();
        let sign = chars.next();
        let text = chars.as_str().to_owned();
        match sign {
            None | Some(' ') => Ok(ChunkLine::Context(text)),
            Some('-') => Ok(ChunkLine::Remove(text)),
            Some('+') => Ok(ChunkLine::Add(text)),
            Some(_) if is_empty(line) => Ok(ChunkLine::Context(text)),
            Some(_) => {
                let hint = if line.starts_with("***") {
                    format!("it is no header; expected {HEADERS}, or `{END_OF_FILE}`")
                } else {
                    "a line of a chunk must begin with a space (kept), `-` (removed) or `+` (added)"
                        .to_owned()
                };
                Err(malformed(self.number(), format!("{line:?}: {hint}")))
            }
        }
    }

    /// Behind the end of a file only another chunk or another file may follow.
    fn expect_next_chunk(&mut self) -> Result<(), PatchError> {
        self.skip_blank();
        match self.peek() {
            Some(line) if !is_header(line.trim()) && !is_anchor(line) => {
                let problem = format!("{line:?}: after `{END_OF_FILE}` a chunk begins with `@@`");
                Err(malformed(self.number(), problem))
            }
            _ => Ok(()),
        }
    }
}

fn is_empty(line: &str) -> bool {
    line.is_empty() || line == "\r"
}

fn is_header(line: &str) -> bool {
    let headers = ["*** Add File:", "*** Delete File:", "*** Update File:"];
    headers.iter().any(|header| line.starts_with(header)) || line.trim_end() == END
}

fn is_anchor(line: &str) -> bool {
    line.trim_end() == "@@" || line.starts_with("@@ ")
}

/// The line that an anchor names; line numbers, as other patches have, name none.
fn anchor(line: &str) -> Option<&str> {
    let text = line.strip_prefix("@@")?;
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    let text = text.strip_suffix(" @@").unwrap_or(text);
    let is_range = |word: &str| {
        let digits = word.trim_start_matches(['-', '+']);
        digits.len() < word.len() && digits.chars().all(|c| c.is_ascii_digit() || c == ',')
    };
    let mut words = text.split_whitespace();
    let is_numbers = words.next().is_some_and(is_range) && words.next().is_some_and(is_range);
    (!is_numbers && !text.trim().is_empty()).then_some(text)
}

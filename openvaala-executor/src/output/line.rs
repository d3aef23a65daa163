//! The line that a cursor stands in.

/// A line longer than this, in bytes, is given out before its end.
const LONGEST_LINE: usize = 8 * 1024;

/// The line of a terminal that is being written, with overwriting and erasing.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// Where the next character goes, in bytes.
    cursor: usize,
    /// The beginning of the line was given out already.
    begun: bool,
}

impl Line {
    /// Writes text without control characters, but for tabs and line breaks, over what stands at
    /// the cursor.
    pub(super) fn write(&mut self, text: &str, out: &mut String) {
        if self.cursor < self.text.len() {
            self.write_over(text, out);
        } else if let Some(end) = text.rfind('\n') {
            out.push_str(&self.text);
            out.push_str(&text[..=end]);
            self.clear();
            self.begun = false;
            self.append(&text[end + 1..]);
        } else {
            self.append(text);
        }
        if self.text.len() > LONGEST_LINE {
            self.give(out);
        }
    }

    /// Ends the line.
    pub(super) fn end(&mut self, out: &mut String) {
        out.push_str(&self.text);
        out.push('\n');
        self.clear();
        self.begun = false;
    }

    /// Gives out what stands in the line; what comes is its continuation.
    pub(super) fn give(&mut self, out: &mut String) {
        self.begun |= !self.text.is_empty();
        out.push_str(&self.text);
        self.clear();
    }

    /// Moves the cursor to the beginning. What was given out can't be overwritten any more, so the
    /// line ends there.
    pub(super) fn home(&mut self, out: &mut String) {
        if self.begun {
            if self.text.is_empty() {
                self.begun = false;
                out.push('\n');
            } else {
                self.end(out);
            }
        }
        self.cursor = 0;
    }

    /// Moves the cursor back by some characters.
    pub(super) fn back(&mut self, count: usize) {
        for _ in 0..count.min(self.cursor) {
            self.cursor = self.text.floor_char_boundary(self.cursor.saturating_sub(1));
        }
    }

    /// Moves the cursor forward by some characters, not behind the end.
    pub(super) fn forward(&mut self, count: usize) {
        for _ in 0..count.min(self.text.len()) {
            let next = self.cursor.saturating_add(1).min(self.text.len());
            self.cursor = self.text.ceil_char_boundary(next);
        }
    }

    /// Erases from the cursor to the end.
    pub(super) fn erase_end(&mut self) {
        self.text.truncate(self.cursor);
    }

    /// Erases all of it.
    pub(super) fn erase(&mut self) {
        self.clear();
    }

    fn append(&mut self, text: &str) {
        self.text.push_str(text);
        self.cursor = self.text.len();
    }

    fn write_over(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            match c {
                '\n' => self.end(out),
                // A tab erases nothing; it is put behind what stands in the line.
                '\t' => self.append("\t"),
                c => self.overwrite(c),
            }
        }
    }

    fn overwrite(&mut self, c: char) {
        let old = self.text[self.cursor..].chars().next();
        let end = self.cursor + old.map_or(0, char::len_utf8);
        self.text
            .replace_range(self.cursor..end, c.encode_utf8(&mut [0; 4]));
        self.cursor += c.len_utf8();
    }

    fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
    }
}

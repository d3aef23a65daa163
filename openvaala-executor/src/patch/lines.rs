//! A file as lines, byte for byte.

const BOM: &[u8] = "\u{feff}".as_bytes();

/// The lines of a file; put together they are the file.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    /// The byte order mark, or nothing.
    pub(super) bom: &'a [u8],
    pub(super) lines: Vec<Line<'a>>,
}

/// A line with its own ending: `\n`, `\r\n`, or nothing at the end of the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) ending: &'a [u8],
}

impl<'a> Lines<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        let rest = content.strip_prefix(BOM).unwrap_or(content);
        let (bom, _) = content.split_at(content.len() - rest.len());
        let lines = rest.split_inclusive(|byte| *byte == b'\n').map(Line::new);
        Self {
            bom,
            lines: lines.collect(),
        }
    }

    /// The ending of new lines: that of the first line.
    pub(super) fn ending(&self) -> &'a [u8] {
        match self.lines.first() {
            Some(first) if !first.ending.is_empty() => first.ending,
            _ => b"\n",
        }
    }

    /// Whether the last line has no ending.
    pub(super) fn is_unterminated(&self) -> bool {
        self.lines.last().is_some_and(|line| line.ending.is_empty())
    }
}

impl<'a> Line<'a> {
    fn new(whole: &'a [u8]) -> Self {
        let text = whole
            .strip_suffix(b"\r\n")
            .or_else(|| whole.strip_suffix(b"\n"))
            .unwrap_or(whole);
        let (text, ending) = whole.split_at(text.len());
        Self { text, ending }
    }
}

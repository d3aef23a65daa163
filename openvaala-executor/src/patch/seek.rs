//! Where lines stand in a file.

use super::lines::Line;

/// How alike two lines must be; the strictest that finds something counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pass {
    /// Every byte.
    Exact,
    /// White space at the end does not count.
    TrimEnd,
    /// White space at both ends does not count.
    Trim,
    /// Nor do typographic dashes, quotes and spaces.
    Plain,
}

const PASSES: [Pass; 4] = [Pass::Exact, Pass::TrimEnd, Pass::Trim, Pass::Plain];

impl Pass {
    /// Bytes that are no UTF-8 are compared as a reader sees them, except by [`Pass::Exact`].
    pub(super) fn is_same(self, line: &[u8], wanted: &str) -> bool {
        if self == Self::Exact {
            return line == wanted.as_bytes();
        }
        let line = String::from_utf8_lossy(line);
        match self {
            Self::Exact | Self::TrimEnd => line.trim_end() == wanted.trim_end(),
            Self::Trim => trim(&line) == trim(wanted),
            Self::Plain => {
                let plain = |text| str::chars(trim(text)).map(plain);
                plain(&line).eq(plain(wanted))
            }
        }
    }

    pub(super) fn is_at(self, lines: &[Line<'_>], wanted: &[&str], start: usize) -> bool {
        let Some(there) = lines.get(start..start.saturating_add(wanted.len())) else {
            return false;
        };
        let mut pairs = there.iter().zip(wanted);
        pairs.all(|(line, wanted)| self.is_same(line.text, wanted))
    }
}

/// The byte order mark is no white space, but the first line of a file may be shown with it.
fn trim(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// The first place from `from` on where all wanted lines stand.
pub(super) fn find(lines: &[Line<'_>], wanted: &[&str], from: usize) -> Option<(usize, Pass)> {
    let last = lines.len().checked_sub(wanted.len())?;
    let find = |pass: Pass| (from..=last).find(|start| pass.is_at(lines, wanted, *start));
    PASSES
        .into_iter()
        .find_map(|pass| find(pass).map(|start| (start, pass)))
}

/// The one place `start`, by any pass.
pub(super) fn find_at(lines: &[Line<'_>], wanted: &[&str], start: usize) -> Option<(usize, Pass)> {
    let mut passes = PASSES.into_iter();
    passes
        .find(|pass| pass.is_at(lines, wanted, start))
        .map(|pass| (start, pass))
}

/// How often the lines stand from `from` on, overlapping places included, up to `most`.
pub(super) fn count(
    lines: &[Line<'_>],
    wanted: &[&str],
    from: usize,
    pass: Pass,
    most: usize,
) -> usize {
    let places = (from..lines.len()).filter(|start| pass.is_at(lines, wanted, *start));
    places.take(most).count()
}

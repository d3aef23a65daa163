//! Head and tail of a long output.

use super::decode::Decoder;

/// What a model sees of one output, in bytes, unless the caller says otherwise.
pub const DEFAULT_CAP: usize = 30_000;

/// Below this there would be room for the mark and nothing else.
const MIN_CAP: usize = 128;

/// Room for the mark between head and tail, with the longest number there is.
const MARK_ROOM: usize = 64;

/// Collects a byte stream of any length in bounded memory: its head and its tail.
///
/// The result is valid UTF-8 and never longer than the cap. A stream that fits is kept whole;
/// otherwise a mark in the middle says how much is left out. Characters are never cut; bytes that
/// are no UTF-8 become U+FFFD.
///
/// ```
/// use openvaala_executor::output::Clip;
///
/// let mut clip = Clip::new(200);
/// for n in 0..1_000 {
///     clip.push(format!("line {n}\n").as_bytes());
/// }
/// let clipped = clip.finish();
/// assert!(clipped.cut);
/// assert!(clipped.text.starts_with("line 0\n"));
/// assert!(clipped.text.ends_with("line 999\n"));
/// assert!(clipped.text.contains("bytes left out …]"));
/// ```
#[derive(Debug)]
pub struct Clip {
    cap: usize,
    decoder: Decoder,
    kept: Kept,
}

/// Both ends of a text.
#[derive(Debug, Default)]
struct Kept {
    /// The first bytes, up to `head_cap`, ending between two characters.
    head: String,
    /// The last bytes; may hold up to twice of what is needed before the front is dropped.
    tail: String,
    /// Whether the head takes no more.
    head_full: bool,
    /// Length of the whole.
    total: usize,
}

/// A text that fits its cap.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Clipped {
    /// The text, with a mark where something is left out.
    pub text: String,
    /// Whether something is left out.
    pub cut: bool,
}

impl Clip {
    /// A collector that keeps at most `cap` bytes; less than 128 is taken as 128.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            cap: cap.max(MIN_CAP),
            decoder: Decoder::default(),
            kept: Kept::default(),
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let (cap, kept) = (self.cap, &mut self.kept);
        self.decoder.push(bytes, |text| kept.push(text, cap));
    }

    /// Head and tail of what has come.
    #[must_use]
    pub fn finish(mut self) -> Clipped {
        let (cap, kept) = (self.cap, &mut self.kept);
        self.decoder.finish(|text| kept.push(text, cap));
        self.kept.finish(cap)
    }
}

impl Default for Clip {
    fn default() -> Self {
        Self::new(DEFAULT_CAP)
    }
}

impl Kept {
    fn push(&mut self, text: &str, cap: usize) {
        self.total = self.total.saturating_add(text.len());
        let rest = if self.head_full {
            text
        } else {
            self.push_head(text, (cap - MARK_ROOM) / 2)
        };
        let tail_cap = cap - self.head.len();
        self.tail
            .push_str(&rest[rest.ceil_char_boundary(rest.len().saturating_sub(tail_cap))..]);
        if self.tail.len() > 2 * tail_cap {
            let surplus = self.tail.len() - tail_cap;
            self.tail.drain(..self.tail.ceil_char_boundary(surplus));
        }
    }

    /// Returns what the head does not take.
    fn push_head<'a>(&mut self, text: &'a str, head_cap: usize) -> &'a str {
        let end = text.floor_char_boundary(head_cap - self.head.len());
        self.head_full = end < text.len();
        self.head.push_str(&text[..end]);
        &text[end..]
    }

    fn finish(self, cap: usize) -> Clipped {
        if self.total <= cap {
            return Clipped {
                text: self.head + &self.tail,
                cut: false,
            };
        }
        let room = cap - MARK_ROOM - self.head.len();
        let start = self
            .tail
            .ceil_char_boundary(self.tail.len().saturating_sub(room));
        let tail = &self.tail[start..];
        let left_out = grouped(self.total - self.head.len() - tail.len());
        let text = format!("{}\n[… {left_out} bytes left out …]\n{tail}", self.head);
        Clipped { text, cut: true }
    }
}

/// Head and tail of a text; see [`Clip`].
#[must_use]
pub fn clip_text(text: &str, cap: usize) -> Clipped {
    let mut clip = Clip::new(cap);
    clip.push(text.as_bytes());
    clip.finish()
}

/// A number with a comma between thousands.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;

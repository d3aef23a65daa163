//! UTF-8 out of pieces that may end in the middle of a character.

use std::str;

/// Decodes a byte stream piece by piece; what is no UTF-8 becomes U+FFFD.
///
/// A character that is cut between two pieces waits for its rest, so the text is the same however the bytes are cut.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a character whose rest has not come yet; at most 3 bytes.
    pending: Vec<u8>,
}

impl Decoder {
    /// Gives all characters that are complete by now.
    pub fn push(&mut self, bytes: &[u8], mut give: impl FnMut(&str)) {
        if self.pending.is_empty() {
            self.decode(bytes, &mut give);
            return;
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        self.decode(&joined, &mut give);
    }

    /// Gives what is left when no more bytes come.
    pub fn finish(&mut self, mut give: impl FnMut(&str)) {
        if !self.pending.is_empty() {
            self.pending.clear();
            give("\u{FFFD}");
        }
    }

    fn decode(&mut self, bytes: &[u8], give: &mut impl FnMut(&str)) {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            if !chunk.valid().is_empty() {
                give(chunk.valid());
            }
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.pending = invalid.to_vec();
            } else {
                give("\u{FFFD}");
            }
        }
    }
}

/// Tells whether more bytes could still make a character of these.
fn is_beginning(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_the_same_however_its_bytes_are_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(0xE4u8), Just(0xBD), Just(0xA0), Just(0xF0), any::<u8>()], 0..64),
            cuts in proptest::collection::vec(0usize..64, 0..8),
        ) {
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut text = String::new();
            for pair in cuts.windows(2) {
                decoder.push(&bytes[pair[0]..pair[1]], |new| text.push_str(new));
            }
            decoder.finish(|new| text.push_str(new));
            prop_assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_character_waits_for_its_rest() {
        let mut decoder = Decoder::default();
        let mut text = String::new();
        decoder.push(&[0xE4, 0xBD], |new| text.push_str(new));
        assert_eq!(text, "");
        decoder.push(&[0xA0, b'!'], |new| text.push_str(new));
        assert_eq!(text, "你!");
    }
}

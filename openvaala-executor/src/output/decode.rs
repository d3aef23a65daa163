//! UTF-8 out of pieces that may end in the middle of a character.

use std::str;

/// Decodes a byte stream piece by piece; what is no UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The beginning of a character whose rest has not come yet; at most 3 bytes.
    pending: Vec<u8>,
}

impl Decoder {
    /// Gives all characters that are complete by now.
    pub(super) fn push(&mut self, bytes: &[u8], mut give: impl FnMut(&str)) {
        if self.pending.is_empty() {
            self.decode(bytes, &mut give);
            return;
        }
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        self.decode(&joined, &mut give);
    }

    /// Gives what is left when no more bytes come.
    pub(super) fn finish(&mut self, mut give: impl FnMut(&str)) {
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

//! The envelope of one entry, written and read.
//!
//! ```text
//! {"seq":7,"time":1700000000000,"crc":"f79b01f4","data":{"text":"hi"}}
//! ```
//!
//! `crc` is the CRC32C, as 8 lower-case hex digits, of the bytes `7,1700000000000,{"text":"hi"}`: number and time as written in
//! the line, each followed by a comma, then the payload as written in the line.

use crate::log::{Damage, Entry, EntryData, MAX_ENTRY_BYTES};
use serde_json::value::RawValue;

/// No line is longer: the largest payload and its envelope.
pub(super) const MAX_LINE_BYTES: u64 = MAX_ENTRY_BYTES + 128;

const SEQ: &[u8] = b"{\"seq\":";
const TIME: &[u8] = b",\"time\":";
const CRC: &[u8] = b",\"crc\":\"";
const DATA: &[u8] = b"\",\"data\":";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes the line of an entry, with its line break.
pub(super) fn encode(out: &mut Vec<u8>, seq: u64, time: i64, data: &str) {
    let (seq, time) = (seq.to_string(), time.to_string());
    let one_line: String;
    let data = if data.contains(['\n', '\r']) {
        // In JSON a raw line break can only be between tokens, where a space means the same.
        one_line = data.replace(['\n', '\r'], " ");
        &one_line
    } else {
        data
    };
    let crc = checksum(&[seq.as_bytes(), b",", time.as_bytes(), b",", data.as_bytes()]);
    for piece in [
        SEQ,
        seq.as_bytes(),
        TIME,
        time.as_bytes(),
        CRC,
        format!("{crc:08x}").as_bytes(),
        DATA,
        data.as_bytes(),
        b"}\n",
    ] {
        out.extend_from_slice(piece);
    }
}

/// A line as it lies in the file.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Where it begins.
    pub(super) offset: u64,
    /// How long it is, with its line break.
    pub(super) length: u64,
    /// Whether it has a line break.
    pub(super) terminated: bool,
    /// Its bytes without the line break; `None` when it is longer than any entry can be.
    pub(super) text: Option<&'a [u8]>,
}

impl Line<'_> {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.length
    }

    pub(super) fn damage(&self, reason: &str) -> Damage {
        Damage {
            offset: self.offset,
            length: self.length,
            reason: reason.to_owned(),
        }
    }

    /// Tells what the line is.
    pub(super) fn content(&self) -> Content<'_> {
        let Some(mut text) = self.text else {
            return Content::Damaged("the line is longer than any entry");
        };
        if self.offset == 0 {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        let text = text.trim_ascii();
        if text.is_empty() {
            return Content::Blank;
        }
        match parse(text) {
            Ok(envelope) => Content::Valid(envelope),
            Err(reason) => Content::Damaged(reason),
        }
    }
}

/// What a line is.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Blank,
    Damaged(&'static str),
    Valid(Envelope<'a>),
}

/// A line whose checksum is right.
#[derive(Debug, PartialEq)]
pub(super) struct Envelope<'a> {
    pub(super) seq: u64,
    pub(super) time: i64,
    pub(super) data: &'a [u8],
}

impl Envelope<'_> {
    pub(super) fn entry(&self, line: &Line<'_>) -> Entry {
        let text = str::from_utf8(self.data).map(str::to_owned);
        let data = match text.map(RawValue::from_string) {
            Ok(Ok(data)) => EntryData::Json(data),
            // The checksum is right, so another program wrote it.
            _ => EntryData::Damaged(line.damage("the payload is not JSON")),
        };
        Entry {
            seq: self.seq,
            time: self.time,
            data,
        }
    }
}

/// The beginning of a line, up to its payload.
#[derive(Debug)]
pub(super) struct Head<'a> {
    pub(super) seq: u64,
    time: i64,
    crc: &'a [u8],
    /// The checksum of number and time, to go on with the payload.
    begun: u32,
    /// Where the payload begins, in bytes from the start of the text.
    pub(super) length: usize,
}

impl Head<'_> {
    /// The most bytes of a line that belong to its head.
    pub(super) const MAX_BYTES: usize = 128;

    /// Starts the checksum of the whole line.
    pub(super) fn checksum(&self) -> u32 {
        self.begun
    }

    /// Tells whether a checksum is the one in the line.
    pub(super) fn agrees(&self, checksum: u32) -> bool {
        format!("{checksum:08x}").as_bytes() == self.crc
    }
}

const SHAPE: &str = "the line is not an entry";

/// Reads the head of a line; its payload may be cut.
pub(super) fn head(text: &[u8]) -> Result<Head<'_>, &'static str> {
    let rest = text.strip_prefix(SEQ).ok_or(SHAPE)?;
    let (seq, rest) = number(rest);
    let rest = rest.strip_prefix(TIME).ok_or(SHAPE)?;
    let (time, rest) = number(rest);
    let rest = rest.strip_prefix(CRC).ok_or(SHAPE)?;
    let (crc, rest) = rest.split_at_checked(8).ok_or(SHAPE)?;
    let rest = rest.strip_prefix(DATA).ok_or(SHAPE)?;
    let begun = checksum(&[seq, b",", time, b","]);
    let decimal = |digits| str::from_utf8(digits).map_err(|_| SHAPE);
    let seq = decimal(seq)?.parse().map_err(|_| SHAPE)?;
    let time = decimal(time)?.parse().map_err(|_| SHAPE)?;
    if seq == 0 {
        return Err("entries are numbered from 1");
    }
    Ok(Head {
        seq,
        time,
        crc,
        begun,
        length: text.len() - rest.len(),
    })
}

fn parse(text: &[u8]) -> Result<Envelope<'_>, &'static str> {
    let head = head(text)?;
    let data = text[head.length..].strip_suffix(b"}").ok_or(SHAPE)?;
    if !head.agrees(crc32c::crc32c_append(head.begun, data)) {
        return Err("the checksum is wrong");
    }
    Ok(Envelope {
        seq: head.seq,
        time: head.time,
        data,
    })
}

fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'-')
        .count();
    text.split_at(length)
}

fn checksum(pieces: &[&[u8]]) -> u32 {
    pieces
        .iter()
        .fold(0, |crc, piece| crc32c::crc32c_append(crc, piece))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn encoded(seq: u64, time: i64, data: &str) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, seq, time, data);
        out
    }

    #[test]
    fn the_line_is_the_documented_one() {
        let line = String::from_utf8(encoded(7, 1_700_000_000_000, r#"{"text":"hi"}"#)).unwrap();
        let expected =
            "{\"seq\":7,\"time\":1700000000000,\"crc\":\"f79b01f4\",\"data\":{\"text\":\"hi\"}}\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn r_39_line_breaks_between_tokens_become_spaces() {
        let line = encoded(1, -5, "{\n  \"a\":\r\n1}");
        let envelope = parse(line.trim_ascii_end()).unwrap();
        let expected = Envelope {
            seq: 1,
            time: -5,
            data: b"{   \"a\":  1}",
        };
        assert_eq!(envelope, expected);
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_noticed(bit in 0usize..480, seq in 1u64..1000, time: i64) {
            let mut line = encoded(seq, time, r#"{"text":"some text","n":12345}"#);
            line.pop();
            let bit = bit % (line.len() * 8);
            line[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(parse(&line).is_err());
        }
    }
}

//! Lines of any length, looked at with a memory of one block.

use std::io;

use crate::file::line::{Content, Head, Line, MAX_LINE_BYTES, head};
use crate::file::scan::read_exact_at;
use crate::fs::FsFile;

const BLOCK: u64 = 256 * 1024;
/// What may stand between the payload and the line break: the closing brace, and blanks of other programs.
const TRAILER: u64 = 64;

/// Returns the number of a sound line; a line without text is read in blocks.
pub(super) fn sound_number(file: &dyn FsFile, line: &Line<'_>) -> io::Result<Option<u64>> {
    if line.text.is_none() {
        return long_number(file, line);
    }
    Ok(match line.content() {
        Content::Valid(envelope) => Some(envelope.seq),
        Content::Blank | Content::Damaged(_) => None,
    })
}

/// Returns the number that the first bytes of a line tell; its checksum is not looked at.
pub(super) fn told_number(file: &dyn FsFile, line: &Line<'_>) -> io::Result<Option<u64>> {
    let mut text = [0; Head::MAX_BYTES];
    let text = &mut text[..line.length.min(Head::MAX_BYTES as u64) as usize];
    read_exact_at(file, text, line.offset)?;
    Ok(head(text).ok().map(|head| head.seq))
}

fn long_number(file: &dyn FsFile, line: &Line<'_>) -> io::Result<Option<u64>> {
    if line.length > MAX_LINE_BYTES {
        return Ok(None);
    }
    let mut text = [0; Head::MAX_BYTES];
    read_exact_at(file, &mut text, line.offset)?;
    let Ok(head) = head(&text) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER as usize];
    read_exact_at(file, &mut trailer, line.end() - TRAILER)?;
    let blanks = trailer.len() - trailer.trim_ascii_end().len();
    if trailer.trim_ascii_end().last() != Some(&b'}') {
        return Ok(None);
    }
    let mut at = line.offset + head.length as u64;
    let end = line.end() - blanks as u64 - 1;
    let mut crc = head.checksum();
    let mut block = vec![0; BLOCK as usize];
    while at < end {
        let step = (end - at).min(BLOCK);
        let block = &mut block[..step as usize];
        read_exact_at(file, block, at)?;
        crc = crc32c::crc32c_append(crc, block);
        at += step;
    }
    Ok(head.agrees(crc).then_some(head.seq))
}

//! Lines of a file, forwards and backwards, in blocks.

use std::io;
use std::mem;

use crate::file::line::{Line, MAX_LINE_BYTES};
use crate::fs::FsFile;

/// From this length on a line is worth a mark, and is not kept in memory where only its place matters.
pub(super) const LONG_LINE: u64 = 64 * 1024;

const BLOCK: usize = 64 * 1024;
const GLANCE: usize = 4 * 1024;

/// The lines of a file from an offset on.
pub(super) struct Forward<'a> {
    file: &'a dyn FsFile,
    end: u64,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    start: u64,
    /// How much of the buffer was handed out.
    used: usize,
    /// The smallest step of reading.
    block: usize,
    /// Lines that are longer have no text.
    limit: u64,
}

impl<'a> Forward<'a> {
    pub(super) fn new(file: &'a dyn FsFile, from: u64, end: u64) -> Self {
        Self {
            file,
            end,
            buffer: Vec::new(),
            start: from,
            used: 0,
            block: BLOCK,
            limit: MAX_LINE_BYTES,
        }
    }

    /// Reads in small steps and keeps no more than [`LONG_LINE`] bytes of a line: for a look at a few lines.
    pub(super) fn glance(file: &'a dyn FsFile, from: u64, end: u64) -> Self {
        Self {
            block: GLANCE,
            limit: LONG_LINE,
            ..Self::new(file, from, end)
        }
    }

    /// Returns the next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let offset = self.start + self.used as u64;
        let mut searched = self.used;
        let mut oversized = false;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let from = mem::replace(&mut self.used, searched + at + 1);
                return Ok(Some(Line {
                    offset,
                    length: self.start + self.used as u64 - offset,
                    terminated: true,
                    text: (!oversized).then_some(&self.buffer[from..searched + at]),
                }));
            }
            if self.filled() == self.end {
                let from = mem::replace(&mut self.used, self.buffer.len());
                let line = Line {
                    offset,
                    length: self.end - offset,
                    terminated: false,
                    text: (!oversized).then_some(&self.buffer[from..]),
                };
                return Ok((line.length > 0).then_some(line));
            }
            if (self.buffer.len() - self.used) as u64 > self.limit {
                oversized = true;
                self.used = self.buffer.len();
            }
            self.drop_used();
            searched = self.buffer.len();
            self.fill()?;
        }
    }

    fn drop_used(&mut self) {
        self.buffer.drain(..self.used);
        self.start += self.used as u64;
        self.used = 0;
    }

    fn filled(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }

    /// Reads on; the steps double with the line, so that a long one is copied a few times only.
    fn fill(&mut self) -> io::Result<()> {
        let from = self.buffer.len();
        let step = (self.end - self.filled()).min(self.block.max(from) as u64);
        self.buffer.resize(from + step as usize, 0);
        let offset = self.start + from as u64;
        read_exact_at(self.file, &mut self.buffer[from..], offset)
    }
}

/// The lines of a file from an offset backwards.
pub(super) struct Backward<'a> {
    file: &'a dyn FsFile,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    start: u64,
    /// How much of the buffer was not handed out.
    left: usize,
    /// Lines that are longer have no text.
    limit: u64,
}

impl<'a> Backward<'a> {
    pub(super) fn new(file: &'a dyn FsFile, from: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: from,
            left: 0,
            limit: MAX_LINE_BYTES,
        }
    }

    /// Keeps no more than [`LONG_LINE`] bytes of a line: for a look at a few lines.
    pub(super) fn glance(file: &'a dyn FsFile, from: u64) -> Self {
        Self {
            limit: LONG_LINE,
            ..Self::new(file, from)
        }
    }

    /// Returns the line before the last one; `None` at the beginning of the file.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.truncate(self.left);
        let end = self.start + self.left as u64;
        if end == 0 {
            return Ok(None);
        }
        if self.buffer.is_empty() {
            self.fill()?;
        }
        let terminated = self.buffer.last() == Some(&b'\n');
        // The line's own break does not begin another line.
        let mut unsearched = self.buffer.len() - usize::from(terminated);
        let mut oversized = false;
        loop {
            let found = memchr::memrchr(b'\n', &self.buffer[..unsearched]);
            if found.is_some() || self.start == 0 {
                self.left = found.map_or(0, |at| at + 1);
                let offset = self.start + self.left as u64;
                let text = &self.buffer[self.left..];
                let text = if terminated {
                    text.strip_suffix(b"\n").unwrap_or(text)
                } else {
                    text
                };
                return Ok(Some(Line {
                    offset,
                    length: end - offset,
                    terminated,
                    text: (!oversized).then_some(text),
                }));
            }
            if self.buffer.len() as u64 > self.limit {
                oversized = true;
                self.buffer.clear();
            }
            unsearched = self.fill()?;
        }
    }

    /// Reads what lies before the buffer and returns how many bytes that was.
    fn fill(&mut self) -> io::Result<usize> {
        let step = self.start.min(BLOCK.max(self.buffer.len()) as u64) as usize;
        let mut block = vec![0; step];
        self.start -= step as u64;
        read_exact_at(self.file, &mut block, self.start)?;
        block.append(&mut self.buffer);
        self.buffer = block;
        Ok(step)
    }
}

/// Fills a buffer from an offset; the end of the file is an error.
pub(super) fn read_exact_at(
    file: &dyn FsFile,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => {
                let message = "the file became shorter while it was read";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
            }
            Ok(read) => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes at the end of a file.
pub(super) fn write_all(file: &mut dyn FsFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

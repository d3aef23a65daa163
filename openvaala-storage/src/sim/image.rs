//! The content of a file: as processes see it, as it was flushed, and what happened in between.

use crate::sim::random::Random;

const SECTOR: usize = 512;

/// A change of a file that was not flushed yet.
#[derive(Clone, Debug)]
enum Change {
    /// The disk has forgotten the bytes of a write, but not the length.
    Lost {
        end: u64,
    },
    Truncate {
        length: u64,
    },
    Write {
        offset: u64,
        bytes: Vec<u8>,
    },
}

/// The content of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    /// What processes see.
    pub(super) data: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
}

impl Image {
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.changes.push(Change::Write {
            offset: self.data.len() as u64,
            bytes: bytes.to_vec(),
        });
        self.data.extend_from_slice(bytes);
    }

    pub(super) fn truncate(&mut self, length: u64) {
        self.data.resize(length as usize, 0);
        self.changes.push(Change::Truncate { length });
    }

    pub(super) fn flush(&mut self) {
        for change in self.changes.drain(..) {
            match change {
                Change::Lost { end } => grow(&mut self.durable, end),
                Change::Truncate { length } => self.durable.resize(length as usize, 0),
                Change::Write { offset, bytes } => place(&mut self.durable, offset, &bytes),
            }
        }
    }

    /// Forgets the bytes that were to be flushed.
    pub(super) fn lose(&mut self) {
        for change in &mut self.changes {
            if let Change::Write { offset, bytes } = change {
                let end = *offset + bytes.len() as u64;
                *change = Change::Lost { end };
            }
        }
    }

    /// Returns what is found after a power cut.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> Self {
        let mut found = self.durable.clone();
        // Often nothing or everything gets through; the rest is luck for each change.
        let luck = random.below(5) * 25;
        for change in &self.changes {
            if !random.percent(luck) {
                continue;
            }
            match change {
                Change::Lost { end } => grow(&mut found, *end),
                Change::Truncate { length } => found.resize(*length as usize, 0),
                Change::Write { offset, bytes } => write(&mut found, *offset, bytes, random),
            }
        }
        Self {
            data: found.clone(),
            durable: found,
            changes: Vec::new(),
        }
    }
}

/// Writes what a power cut left of a write.
fn write(found: &mut Vec<u8>, offset: u64, bytes: &[u8], random: &mut Random) {
    let end = offset + bytes.len() as u64;
    match random.below(8) {
        0 => grow(found, end),
        1 => {
            let from = found.len() as u64;
            grow(found, end);
            junk(&mut found[from.min(end) as usize..], random);
        }
        2 => {
            let kept = random.below(bytes.len() as u64 + 1) as usize;
            place(found, offset, &bytes[..kept]);
            if random.percent(50) {
                grow(found, end);
            }
        }
        3 | 4 => {
            grow(found, end);
            sectors(found, offset, bytes, random);
        }
        _ => place(found, offset, bytes),
    }
}

/// Writes some of the sectors of the disk that a write touches.
fn sectors(found: &mut Vec<u8>, offset: u64, bytes: &[u8], random: &mut Random) {
    let mut at = 0;
    while at < bytes.len() {
        let in_sector = (offset as usize + at) % SECTOR;
        let end = (at + SECTOR - in_sector).min(bytes.len());
        if random.percent(50) {
            place(found, offset + at as u64, &bytes[at..end]);
        }
        at = end;
    }
}

/// Fills a place with what might have been on the disk before: half of it looks like lines.
fn junk(place: &mut [u8], random: &mut Random) {
    let text = br#"{"seq":1,"time":7,"crc":"00000000","data":"old"}"#;
    let as_text = random.percent(50);
    for (at, byte) in place.iter_mut().enumerate() {
        *byte = match at % (text.len() + 1) {
            column if as_text => text.get(column).copied().unwrap_or(b'\n'),
            _ => random.draw() as u8,
        };
    }
}

fn grow(bytes: &mut Vec<u8>, length: u64) {
    bytes.resize(bytes.len().max(length as usize), 0);
}

fn place(found: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (from, end) = (offset as usize, offset as usize + bytes.len());
    if !bytes.is_empty() {
        grow(found, end as u64);
        found[from..end].copy_from_slice(bytes);
    }
}

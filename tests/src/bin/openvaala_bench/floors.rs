//! What no durable program can go below on this machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use openvaala_tests::dice::Dice;

use crate::turns::median;

/// The size of a typical entry.
pub(crate) const ENTRY: usize = 512;

const FLUSHES: usize = 500;
const SPAWNS: usize = 200;
/// How much is read at once.
const PIECE: u64 = 64 * 1024;

/// One append and its fdatasync, on a growing file in that folder.
pub(crate) fn append_and_flush(folder: &Path) -> io::Result<Duration> {
    let path = folder.join("floor");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let times = (0..FLUSHES).map(|_| {
        let began = Instant::now();
        file.write_all(&[b'x'; ENTRY])?;
        file.sync_data()?;
        Ok(began.elapsed())
    });
    times.collect::<io::Result<_>>().map(median)
}

/// `bash -c true` from its start to its end.
pub(crate) fn spawn_bash() -> io::Result<Duration> {
    let times = (0..SPAWNS).map(|_| {
        let began = Instant::now();
        let mut command = Command::new("bash");
        command.args(["-c", "true"]).stdin(Stdio::null());
        command.status()?;
        Ok(began.elapsed())
    });
    times.collect::<io::Result<_>>().map(median)
}

/// The last lines of a file, found from its end and read as JSON.
pub(crate) fn last_lines(path: &Path, count: usize) -> io::Result<Duration> {
    let began = Instant::now();
    let file = File::open(path)?;
    let mut from = file.metadata()?.len();
    let mut tail = Vec::new();
    // One more break than lines, for the one before them.
    while from > 0 && tail.iter().filter(|byte| **byte == b'\n').count() <= count {
        let size = from.min(PIECE);
        from -= size;
        let mut piece = vec![0; size as usize];
        file.read_exact_at(&mut piece, from)?;
        piece.append(&mut tail);
        tail = piece;
    }
    let lines = tail
        .split(|byte| *byte == b'\n')
        .rev()
        .filter(|line| !line.is_empty());
    for line in lines.take(count) {
        serde_json::from_slice::<serde::de::IgnoredAny>(line)?;
    }
    Ok(began.elapsed())
}

/// Pieces of a file from anywhere, each as long as a page of items.
pub(crate) fn random_reads(
    path: &Path,
    size: u64,
    dice: &mut Dice,
    count: usize,
) -> io::Result<Vec<Duration>> {
    let file = File::open(path)?;
    let room = file.metadata()?.len().saturating_sub(size) + 1;
    let mut piece = vec![0; size as usize];
    let times = (0..count).map(|_| {
        let from = dice.below(room);
        let began = Instant::now();
        let mut read = 0;
        while read < piece.len() {
            match file.read_at(
                piece.get_mut(read..).unwrap_or_default(),
                from + read as u64,
            )? {
                0 => break,
                more => read += more,
            }
        }
        Ok(began.elapsed())
    });
    times.collect()
}

/// The names in a folder, and what is known of one file in each.
pub(crate) fn list_and_stat(folder: &Path, file: &str) -> io::Result<Duration> {
    let began = Instant::now();
    for entry in fs::read_dir(folder)? {
        fs::metadata(entry?.path().join(file))?;
    }
    Ok(began.elapsed())
}

/// One file of each folder in a folder, read from beginning to end.
pub(crate) fn read_each(folder: &Path, file: &str) -> io::Result<Duration> {
    let began = Instant::now();
    let mut text = Vec::new();
    for entry in fs::read_dir(folder)? {
        text.clear();
        File::open(entry?.path().join(file))?.read_to_end(&mut text)?;
    }
    Ok(began.elapsed())
}

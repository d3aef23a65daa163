//! What no durable program can go below on this machine.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::median;

/// The size of a typical entry.
pub(crate) const ENTRY: usize = 512;

const FLUSHES: usize = 500;
const SPAWNS: usize = 200;

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

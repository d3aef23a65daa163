//! Finding out where a stream ends, and cutting what does not belong to it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::Report;
use crate::file::line::Content;
use crate::file::long::{sound_number, told_number};
use crate::file::read;
use crate::file::scan::{Backward, read_exact_at, write_all};
use crate::file::view::{Marks, View};
use crate::fs::{Fs, FsFile, Open};
use crate::log::StreamKey;

const BLOCK: u64 = 256 * 1024;

/// Finds the end of a stream by its last lines; nothing is written.
///
/// Lines after the last sound one, whole or not, are no entries: the view ends before them.
pub(super) fn inspect(file: &dyn FsFile) -> io::Result<View> {
    let stamp = file.metadata()?;
    let mut view = View {
        stamp,
        end: stamp.length,
        last: 0,
        terminated: true,
        marks: Arc::new(Marks::default()),
    };
    let mut lines = Backward::glance(file, stamp.length);
    let mut torn = false;
    while let Some(line) = lines.next()? {
        if let Some(seq) = sound_number(file, &line)? {
            view.last = seq;
            if torn {
                view.end = line.end();
                view.terminated = line.terminated;
            } else {
                view.terminated &= line.terminated;
            }
            break;
        }
        if matches!(line.content(), Content::Blank) {
            // Spaces without a line break: the next entry must not stand on their line.
            view.terminated &= line.terminated;
        } else {
            torn = true;
        }
    }
    if view.last == 0 {
        if torn {
            (view.end, view.terminated) = (0, true);
        }
        return Ok(view);
    }
    if !follows(file, &mut lines, view.last)? {
        view.last = read::last_number(file, view.end)?;
        view.marks = Arc::new(Marks::disorderly());
    }
    Ok(view)
}

/// Tells whether the lines before a line tell that it has its number; of a long one only the first bytes are read.
fn follows(file: &dyn FsFile, lines: &mut Backward<'_>, seq: u64) -> io::Result<bool> {
    let mut expected = seq;
    while let Some(line) = lines.next()? {
        let content = line.content();
        let found = match &content {
            Content::Blank => continue,
            Content::Damaged(_) if line.text.is_none() => told_number(file, &line)?,
            Content::Damaged(_) => None,
            Content::Valid(envelope) => Some(envelope.seq),
        };
        match found {
            Some(found) => return Ok(found.checked_add(1) == Some(expected)),
            None => expected = expected.saturating_sub(1),
        }
    }
    Ok(expected == 1)
}

/// Cuts what follows the end of a stream, after it was copied to a side file; both are flushed.
pub(super) fn cut(
    fs: &dyn Fs,
    file: &dyn FsFile,
    path: &Path,
    key: &StreamKey,
    view: &mut View,
) -> io::Result<Report> {
    let length = view.stamp.length - view.end;
    let side_file = keep(fs, file, path, view.end, length)?;
    file.truncate(view.end)?;
    file.sync_data()?;
    view.stamp = file.metadata()?;
    tracing::warn!(
        stream = %key,
        offset = view.end,
        length,
        side_file = %side_file.display(),
        "the end of a stream was torn and has been cut; the bytes are kept in the side file"
    );
    Ok(Report {
        key: key.clone(),
        offset: view.end,
        length,
        side_file,
    })
}

fn keep(
    fs: &dyn Fs,
    file: &dyn FsFile,
    path: &Path,
    offset: u64,
    length: u64,
) -> io::Result<PathBuf> {
    let mut n = 1_u32;
    let (side_file, mut copy) = loop {
        let side_file = path.with_extension(format!("torn-{n}"));
        match fs.open(&side_file, Open::CreateNew) {
            Ok(copy) => break (side_file, copy),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
            Err(error) => return Err(error),
        }
    };
    let copied = (|| {
        let mut at = offset;
        while at < offset + length {
            let step = (offset + length - at).min(BLOCK);
            let mut block = vec![0; step as usize];
            read_exact_at(file, &mut block, at)?;
            write_all(&mut *copy, &block)?;
            at += step;
        }
        copy.sync_data()?;
        match path.parent() {
            Some(dir) => fs.sync_dir(dir),
            None => Ok(()),
        }
    })();
    if copied.is_err() {
        // Half a copy helps nobody: the next use makes a whole one.
        let _ = fs.unlink(&side_file);
    }
    copied.map(|()| side_file)
}

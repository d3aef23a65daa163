//! Appending: one write and one flush for all batches that wait for a stream.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{Error, Result, is_full};
use crate::file::Report;
use crate::file::layout::{Layout, present};
use crate::file::line::encode;
use crate::file::scan::write_all;
use crate::file::view::{Marks, View, fingerprint};
use crate::file::{create, recover};
use crate::fs::{FsFile, Open, Stamp};
use crate::log::{Appended, NewEntry, StreamKey};

const ANOTHER_PROGRAM: &str = "another program wrote to the stream at the same time";

/// A batch and whom to tell.
pub(super) struct Batch {
    pub(super) entries: Vec<NewEntry>,
    pub(super) reply: oneshot::Sender<Result<Appended>>,
}

/// What belongs to the one who writes a stream; it goes to the thread that writes and comes back.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The open file, if it is open and was sound.
    pub(super) handle: Option<Box<dyn FsFile>>,
    /// What readers may see; `None` when the stream is not known or does not exist.
    pub(super) view: Option<View>,
    /// A write or flush failed and left bytes behind `view`: they are cut before anything else.
    pub(super) spoiled: bool,
    /// The directory entries were flushed since the storage was opened.
    pub(super) rooted: bool,
}

/// Appends batches to one stream.
pub(super) struct Commit {
    layout: Layout,
    key: StreamKey,
    stream: Stream,
    /// How many segments of the path are known to be flushed.
    durable: usize,
    batches: Vec<Batch>,
    /// The view was made anew.
    is_new: bool,
}

/// What is left after a commit.
pub(super) struct Committed {
    pub(super) stream: Stream,
    /// Places of the new entries, for the owner to add to the view.
    pub(super) marks: Marks,
    /// The end was looked for anew: what was known of the file does not count any more.
    pub(super) is_new: bool,
    pub(super) report: Option<Report>,
    pub(super) disk: Disk,
    pub(super) replies: Vec<Reply>,
}

/// What a commit tells of the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Disk {
    /// Something was written.
    Writable,
    /// There was no space left.
    Full,
    /// It failed for another reason.
    Unknown,
}

/// An answer, sent once the stream is back with its owner.
pub(super) struct Reply {
    reply: oneshot::Sender<Result<Appended>>,
    result: Result<Appended>,
}

impl Reply {
    pub(super) fn send(self) {
        // The caller may have left.
        let _ = self.reply.send(self.result);
    }
}

impl Commit {
    pub(super) fn new(
        layout: Layout,
        key: StreamKey,
        stream: Stream,
        durable: usize,
        batches: Vec<Batch>,
    ) -> Self {
        Self {
            layout,
            key,
            stream,
            durable,
            batches,
            is_new: false,
        }
    }

    pub(super) fn run(mut self) -> Committed {
        let path = self.layout.file(&self.key);
        let (mut report, mut marks) = (None, Marks::default());
        let outcome = self.append(&path, &mut report, &mut marks);
        if outcome.is_err() {
            self.stream.handle = None;
            marks = Marks::default();
        }
        let disk = match &outcome {
            Ok(_) => Disk::Writable,
            Err(failure) if is_full(&failure.source) => Disk::Full,
            Err(_) => Disk::Unknown,
        };
        let replies = match outcome {
            Ok((mut seq, stamp)) => self
                .batches
                .into_iter()
                .map(|Batch { entries, reply }| {
                    let first = seq + 1;
                    seq += entries.len() as u64;
                    let result = Ok(Appended {
                        first,
                        last: seq,
                        fingerprint: fingerprint(&stamp),
                    });
                    Reply { reply, result }
                })
                .collect(),
            Err(failure) => {
                let again = |reply| Reply {
                    reply,
                    result: Err(failure.error(&self.key, &path)),
                };
                self.batches
                    .into_iter()
                    .map(|batch| again(batch.reply))
                    .collect()
            }
        };
        Committed {
            stream: self.stream,
            marks,
            is_new: self.is_new,
            report,
            disk,
            replies,
        }
    }

    /// Writes and flushes; returns the number before the first and the file as it was left.
    fn append(
        &mut self,
        path: &Path,
        report: &mut Option<Report>,
        marks: &mut Marks,
    ) -> Result<(u64, Stamp), Failure> {
        let created = self.prepare(path, report)?;
        let (Some(mut file), Some(view)) = (self.stream.handle.take(), self.stream.view.take())
        else {
            return Err(Failure::io("open", io::ErrorKind::NotFound.into()));
        };
        match self.write(&mut *file, &view, created.as_ref(), marks) {
            Ok(grown) => {
                let stamp = grown.stamp;
                self.stream = Stream {
                    handle: Some(file),
                    view: Some(grown),
                    spoiled: false,
                    rooted: true,
                };
                Ok((view.last, stamp))
            }
            Err(failure) => {
                if let Some(created) = created {
                    // Nothing was acknowledged yet, so the stream does not exist.
                    self.stream = Stream::default();
                    if !created.undo(&self.layout) {
                        // What the file holds must not count as acknowledged.
                        (self.stream.view, self.stream.spoiled) = (Some(view), true);
                    }
                } else if failure.operation == ANOTHER_PROGRAM {
                    self.stream.view = None;
                } else {
                    self.roll_back(&*file, view, &failure);
                }
                Err(failure)
            }
        }
    }

    /// Opens, creates or recovers the stream; afterwards handle and view are there and belong together.
    fn prepare(
        &mut self,
        path: &Path,
        report: &mut Option<Report>,
    ) -> Result<Option<create::Created>, Failure> {
        let open = |source| Failure::io("open", source);
        let stamp = present(self.layout.fs.metadata(path)).map_err(open)?;
        let Some(stamp) = stamp else {
            let (file, created) = create::stream(&self.layout, &self.key)
                .map_err(|source| Failure::io("create", source))?;
            let stamp = file.metadata().map_err(|source| {
                created.undo(&self.layout);
                open(source)
            })?;
            self.is_new = true;
            self.stream.view = Some(View {
                stamp,
                end: 0,
                last: 0,
                terminated: true,
                marks: Arc::new(Marks::default()),
            });
            self.stream.handle = Some(file);
            self.stream.spoiled = false;
            return Ok(Some(created));
        };
        let known = self.stream.view.as_ref().map(|view| view.stamp);
        if self.stream.handle.is_some() && known == Some(stamp) && !self.stream.spoiled {
            return Ok(None);
        }
        self.reopen(path, stamp, report)?;
        Ok(None)
    }

    fn reopen(
        &mut self,
        path: &Path,
        stamp: Stamp,
        report: &mut Option<Report>,
    ) -> Result<(), Failure> {
        self.stream.handle = None;
        let file = self.layout.fs.open(path, Open::Append);
        let file = file.map_err(|source| Failure::io("open", source))?;
        let recovering = |source| Failure::io("recover", source);
        let mut view = match self.stream.view.take() {
            Some(view) if self.stream.spoiled && view.stamp.inode == stamp.inode => {
                self.cut_back(&*file, view)?
            }
            Some(view) if view.stamp == stamp => view,
            _ => {
                self.is_new = true;
                recover::inspect(&*file).map_err(recovering)?
            }
        };
        self.stream.spoiled = false;
        if view.is_torn() {
            let cut = recover::cut(&*self.layout.fs, &*file, path, &self.key, &mut view);
            match cut {
                Ok(cut) => *report = Some(cut),
                Err(source) => return Err(recovering(source)),
            }
        }
        self.stream.view = Some(view);
        self.stream.handle = Some(file);
        Ok(())
    }

    /// Cuts what a failed append has left, on a new handle: the failed flush is never tried again on the old one.
    fn cut_back(&mut self, file: &dyn FsFile, mut view: View) -> Result<View, Failure> {
        let cut = file
            .truncate(view.end)
            .and_then(|()| file.sync_data())
            .and_then(|()| file.metadata());
        match cut {
            Ok(stamp) => {
                tracing::info!(stream = %self.key, end = view.end, "the stream was recovered");
                view.stamp = stamp;
                if !self.stream.rooted && view.end > 0 {
                    // No flush of this process has covered what was found: if the disk has lost the end of it, zeros without a
                    // line break may be there, and the next entry must not stand on their line.
                    view.terminated = false;
                }
                Ok(view)
            }
            Err(source) => {
                self.stream.view = Some(view);
                Err(Failure::flush(source))
            }
        }
    }

    fn write(
        &self,
        file: &mut dyn FsFile,
        view: &View,
        created: Option<&create::Created>,
        marks: &mut Marks,
    ) -> Result<View, Failure> {
        let (bytes, last) = self.encode(view, marks);
        write_all(file, &bytes).map_err(|source| Failure::io("write", source))?;
        file.sync_data().map_err(Failure::flush)?;
        if created.is_some() || !self.stream.rooted {
            create::sync_directories(&self.layout, &self.key, self.durable, created)
                .map_err(Failure::flush)?;
        }
        let stamp = file.metadata().map_err(Failure::flush)?;
        if stamp.length != view.end + bytes.len() as u64 {
            return Err(Failure::io(
                ANOTHER_PROGRAM,
                io::Error::other(ANOTHER_PROGRAM),
            ));
        }
        Ok(View {
            stamp,
            end: stamp.length,
            last,
            terminated: true,
            marks: Arc::clone(&view.marks),
        })
    }

    /// Returns the lines of all batches and the number of the last.
    fn encode(&self, view: &View, marks: &mut Marks) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let mut last = view.last;
        if !view.marks.is_orderly() {
            *marks = Marks::disorderly();
        }
        if !view.terminated {
            bytes.push(b'\n');
        }
        for entry in self.batches.iter().flat_map(|batch| &batch.entries) {
            let start = bytes.len();
            last += 1;
            encode(&mut bytes, last, entry.time, entry.data.get());
            marks.note(last, view.end + start as u64, (bytes.len() - start) as u64);
        }
        (bytes, last)
    }

    /// Takes back what a failed append may have written, so that the stream ends on an entry.
    ///
    /// After a failed flush as well: whoever opens the file next must not take for written what the disk has lost.
    fn roll_back(&mut self, file: &dyn FsFile, mut view: View, failure: &Failure) {
        self.stream.spoiled = true;
        if file.truncate(view.end).is_ok()
            && !failure.is_flush
            && let Ok(stamp) = file.metadata()
        {
            self.stream.spoiled = false;
            view.stamp = stamp;
        }
        self.stream.view = Some(view);
    }
}

/// Why a commit failed, kept so that each of its batches gets an error of its own.
struct Failure {
    operation: &'static str,
    source: io::Error,
    /// The disk refused to flush: what is in the file is not known.
    is_flush: bool,
}

impl Failure {
    fn io(operation: &'static str, source: io::Error) -> Self {
        Self {
            operation,
            source,
            is_flush: false,
        }
    }

    fn flush(source: io::Error) -> Self {
        Self {
            operation: "flush",
            source,
            is_flush: true,
        }
    }

    fn error(&self, key: &StreamKey, path: &Path) -> Error {
        let source = match self.source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.source.kind(), self.source.to_string()),
        };
        if self.is_flush {
            return Error::Poisoned {
                key: key.clone(),
                source,
            };
        }
        Error::io(self.operation, path, source)
    }
}

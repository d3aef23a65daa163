//! Questions about a stream, and their answers from what is known of it.

use std::io;

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::file::layout::{Layout, present};
use crate::file::view::{Marks, View, fingerprint};
use crate::file::{TornTail, read, recover};
use crate::fs::{FsFile, Open, Stamp};
use crate::log::{Fingerprint, Page, ReadOptions, StreamInfo, StreamKey};

/// A question about a stream and whom to tell; callers who left are ignored.
pub(super) enum Look {
    Fingerprint {
        reply: oneshot::Sender<Result<Option<Fingerprint>>>,
    },
    Info {
        reply: oneshot::Sender<Result<Option<StreamInfo>>>,
    },
    Read {
        options: ReadOptions,
        reply: oneshot::Sender<Result<Page>>,
    },
    Torn {
        reply: oneshot::Sender<Result<Option<TornTail>>>,
    },
}

/// What a thread has seen of a stream by a look at its file alone.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    Absent,
    File(Fingerprint),
    /// The stream is in use, or the file could not be looked at: it is asked for by itself.
    Unsure,
}

/// A page to be read by a thread.
pub(super) struct ReadPage {
    pub(super) view: View,
    pub(super) options: ReadOptions,
    pub(super) reply: oneshot::Sender<Result<Page>>,
}

impl Look {
    /// Answers for a stream that does not exist.
    pub(super) fn absent(self, key: &StreamKey) {
        match self {
            Self::Fingerprint { reply } => drop(reply.send(Ok(None))),
            Self::Info { reply } => drop(reply.send(Ok(None))),
            Self::Torn { reply } => drop(reply.send(Ok(None))),
            Self::Read { reply, .. } => {
                let key = key.clone();
                drop(reply.send(Err(Error::NotFound { key })));
            }
        }
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Self::Fingerprint { reply } => drop(reply.send(Err(error))),
            Self::Info { reply } => drop(reply.send(Err(error))),
            Self::Torn { reply } => drop(reply.send(Err(error))),
            Self::Read { reply, .. } => drop(reply.send(Err(error))),
        }
    }

    /// Answers from the state of the file alone, if that is enough.
    pub(super) fn answer_by_stamp(self, stamp: &Stamp) -> Option<Self> {
        match self {
            Self::Fingerprint { reply } => {
                drop(reply.send(Ok(Some(fingerprint(stamp)))));
                None
            }
            other => Some(other),
        }
    }

    /// Answers from a view; returns the page that has to be read for it.
    pub(super) fn answer_by_view(self, view: &View) -> Option<ReadPage> {
        match self {
            Self::Fingerprint { reply } => drop(reply.send(Ok(Some(fingerprint(&view.stamp))))),
            Self::Info { reply } => drop(reply.send(Ok(Some(view.info())))),
            Self::Torn { reply } => drop(reply.send(Ok(view.torn_tail()))),
            Self::Read { options, reply } => match options.check_cursor(view.last) {
                Ok(()) => {
                    let view = view.clone();
                    return Some(ReadPage {
                        view,
                        options,
                        reply,
                    });
                }
                Err(error) => drop(reply.send(Err(error))),
            },
        }
        None
    }
}

/// Looks at the file of a stream that nobody uses.
pub(super) fn glance(layout: &Layout, key: &StreamKey) -> Seen {
    match present(layout.fs.metadata(&layout.file(key))) {
        Ok(Some(stamp)) if !stamp.is_dir => Seen::File(fingerprint(&stamp)),
        Ok(_) => Seen::Absent,
        Err(_) => Seen::Unsure,
    }
}

/// Reads a page.
pub(super) fn read_page(
    layout: &Layout,
    key: &StreamKey,
    view: &View,
    options: ReadOptions,
) -> Result<(Page, Marks)> {
    let Some(file) = open(layout, key)? else {
        return Err(Error::NotFound { key: key.clone() });
    };
    let read = file.metadata().and_then(|stamp| {
        if stamp.inode != view.stamp.inode {
            return Err(io::Error::other("the file was replaced while it was read"));
        }
        read::page(&*file, view, options)
    });
    read.map_err(|source| Error::io("read", layout.file(key), source))
}

/// Finds out where a stream ends; `None` when it does not exist.
pub(super) fn inspect(layout: &Layout, key: &StreamKey) -> Result<Option<View>> {
    let Some(file) = open(layout, key)? else {
        return Ok(None);
    };
    let view = recover::inspect(&*file);
    view.map(Some)
        .map_err(|source| Error::io("read", layout.file(key), source))
}

fn open(layout: &Layout, key: &StreamKey) -> Result<Option<Box<dyn FsFile>>> {
    let path = layout.file(key);
    present(layout.fs.open(&path, Open::Read)).map_err(|source| Error::io("open", path, source))
}

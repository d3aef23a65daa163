//! The queue of what the server tells by itself, bounded in bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::rpc::Notice;

/// How many bytes of notices, as they stood on the wire, may wait to be taken.
const ROOM: usize = 4 * 1024 * 1024;

/// What the server tells by itself, in the order in which it was told.
///
/// When 4 MiB of notices wait to be taken the client reads nothing more from its socket until some have been. While a
/// call waits for its answer it reads on all the same, since the answer stands behind the notices: so take them beside
/// long calls, with `select!` or in a task of their own, or memory grows.
/// Dropping this throws away what comes and stops nothing.
#[derive(Debug)]
pub struct Notices {
    queue: UnboundedReceiver<Queued>,
}

/// A notice, and the room that it takes until somebody takes it.
#[derive(Debug)]
struct Queued {
    notice: Notice,
    _room: Taken,
}

impl Notices {
    /// Waits for the next notice; `None` when the connection has ended and all have been taken.
    ///
    /// Cancel safe: a notice is either given or still there.
    pub async fn recv(&mut self) -> Option<Notice> {
        self.queue.recv().await.map(|queued| queued.notice)
    }

    /// Takes a notice if one waits.
    pub fn try_recv(&mut self) -> Option<Notice> {
        self.queue.try_recv().ok().map(|queued| queued.notice)
    }
}

/// The other end, which the connection's task owns.
///
/// The queue itself has no bound, since a bound in messages says nothing about memory.
#[derive(Debug)]
pub(super) struct NoticeQueue {
    queue: UnboundedSender<Queued>,
    room: Arc<Room>,
}

/// How many bytes wait to be taken.
#[derive(Debug, Default)]
struct Room {
    taken: AtomicUsize,
    freed: Notify,
}

impl Room {
    fn is_full(&self) -> bool {
        self.taken.load(Ordering::Acquire) >= ROOM
    }
}

/// Bytes of the room, given back when this is dropped.
#[derive(Debug)]
struct Taken {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::AcqRel);
        self.room.freed.notify_one();
    }
}

pub(super) fn notice_queue() -> (NoticeQueue, Notices) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let queue = NoticeQueue {
        queue: sender,
        room: Arc::default(),
    };
    (queue, Notices { queue: receiver })
}

impl NoticeQueue {
    /// Queues a notice that had that many bytes, whether there is room or not.
    pub(super) fn push(&self, notice: Notice, bytes: usize) {
        self.room.taken.fetch_add(bytes, Ordering::AcqRel);
        let room = Taken {
            room: Arc::clone(&self.room),
            bytes,
        };
        // Nobody takes notices any more: this one and its room are dropped.
        let _ = self.queue.send(Queued {
            notice,
            _room: room,
        });
    }

    /// Whether so much waits that no more should be read.
    pub(super) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Waits until there is room. Cancel safe.
    pub(super) async fn has_room(&self) {
        while self.room.is_full() {
            self.room.freed.notified().await;
        }
    }
}

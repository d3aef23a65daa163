//! The queue of what the server tells by itself, bounded in bytes.

use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::rpc::Notice;

/// How many bytes of notices, as they stood on the wire, may wait to be taken.
const ROOM: u32 = 4 * 1024 * 1024;

/// What the server tells by itself, in the order in which it was told.
///
/// At most 4 MiB of notices (or one larger one) wait to be taken; beyond that the client reads nothing more from its
/// socket, **answers to calls included**. So take them in a task of their own, or beside the call with `select!`.
/// Dropping this throws away what comes and stops nothing.
#[derive(Debug)]
pub struct Notices {
    queue: UnboundedReceiver<Queued>,
}

/// A notice, and the room that it takes until somebody takes it.
#[derive(Debug)]
struct Queued {
    notice: Notice,
    _room: OwnedSemaphorePermit,
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
/// The semaphore counts free bytes: the queue itself has no bound, since a bound in messages says nothing about memory.
#[derive(Debug)]
pub(super) struct NoticeQueue {
    queue: UnboundedSender<Queued>,
    room: Arc<Semaphore>,
    /// A notice for which there was no room.
    stalled: Option<(Notice, u32)>,
}

pub(super) fn notice_queue() -> (NoticeQueue, Notices) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM as usize));
    (
        NoticeQueue {
            queue: sender,
            room,
            stalled: None,
        },
        Notices { queue: receiver },
    )
}

impl NoticeQueue {
    /// Queues a notice that had that many bytes; if there is no room the queue is stalled from then on.
    pub(super) fn push(&mut self, notice: Notice, bytes: usize) {
        let bytes = u32::try_from(bytes).map_or(ROOM, |bytes| bytes.min(ROOM));
        match Arc::clone(&self.room).try_acquire_many_owned(bytes) {
            Ok(room) => self.send(notice, room),
            Err(TryAcquireError::NoPermits) => self.stalled = Some((notice, bytes)),
            // The semaphore is never closed.
            Err(TryAcquireError::Closed) => {}
        }
    }

    /// Whether a notice waits for room; nothing may be pushed then.
    pub(super) const fn is_stalled(&self) -> bool {
        self.stalled.is_some()
    }

    /// Waits until the stalled notice is queued; for ever if none is. Cancel safe.
    pub(super) async fn unstall(&mut self) {
        let Some(bytes) = self.stalled.as_ref().map(|(_, bytes)| *bytes) else {
            return std::future::pending().await;
        };
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        if let (Some((notice, _)), Ok(room)) = (self.stalled.take(), room) {
            self.send(notice, room);
        }
    }

    fn send(&self, notice: Notice, room: OwnedSemaphorePermit) {
        // Nobody takes notices any more: this one and its room are dropped.
        let _ = self.queue.send(Queued {
            notice,
            _room: room,
        });
    }
}

//! What a tool says while it runs, and its command after it: live text for clients, and the whole of it kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use openvaala_executor::output::Decoder;
use openvaala_executor::tool::{Kept, OutputSink};
use openvaala_protocol::content::BlobRef;
use openvaala_protocol::event::{Delta, Live};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_storage::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, timeout_at};

use super::keep::Keeper;
use crate::conversation::FeedSender;
use crate::dao::blob::BlobWriter;

/// How many writes may wait: then whoever writes waits.
const INBOX: usize = 8;
/// Live text is sent at once if none was sent for this long; what comes faster is sent together.
const PAUSE: Duration = Duration::from_millis(20);
/// The most live text that is sent together: its end. The rest of a flood is not shown, only kept.
const MAX_SHOWN: usize = 64 << 10;

/// The tool's end of a spool.
#[derive(Debug)]
pub(crate) struct SpoolSink {
    sender: mpsc::Sender<Message>,
    written: AtomicBool,
    ended: AtomicBool,
}

#[derive(Debug)]
enum Message {
    Bytes(Bytes),
    End,
    Settle {
        how: Settle,
        reply: oneshot::Sender<Result<Settled, Error>>,
    },
    Read {
        offset: u64,
        limit: usize,
        reply: oneshot::Sender<Option<Kept>>,
    },
}

/// What is done with the output when its call ends.
#[derive(Debug)]
pub(crate) enum Settle {
    /// What writes goes on: what there is goes to disk, and what comes is not shown any more.
    Open,
    /// All of it goes to disk, and before that a text that did not come through the sink.
    Keep(Option<String>),
    /// Only what was long has gone to disk.
    KeepLong,
}

/// What has become of the output of a call.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) blob: Option<BlobRef>,
    /// How many bytes between its head and its tail are not kept.
    pub(crate) lost: u64,
    pub(crate) bytes: u64,
}

impl SpoolSink {
    /// Whether somebody else than the caller may still write.
    pub(crate) fn goes_on(self: &Arc<Self>) -> bool {
        !self.ended.load(Ordering::Acquire) && Arc::strong_count(self) > 1
    }

    /// Whether anything has come.
    pub(crate) fn was_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    /// Decides what becomes of the output of a call that has ended; what is to be on disk is flushed then.
    pub(crate) async fn settle(&self, how: Settle) -> Result<Settled, Error> {
        let (reply, wait) = oneshot::channel();
        let gone = || Error::Backend {
            backend: "spool",
            source: "the session has ended".into(),
        };
        let message = Message::Settle { how, reply };
        self.sender.send(message).await.map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?
    }
}

#[async_trait]
impl OutputSink for SpoolSink {
    async fn write(&self, bytes: Bytes) {
        self.written.store(true, Ordering::Relaxed);
        // The spool is gone only when the session is.
        let _ = self.sender.send(Message::Bytes(bytes)).await;
    }

    async fn end(&self) {
        self.ended.store(true, Ordering::Release);
        let _ = self.sender.send(Message::End).await;
    }

    async fn read(&self, offset: u64, limit: usize) -> Option<Kept> {
        let (reply, wait) = oneshot::channel();
        let message = Message::Read {
            offset,
            limit,
            reply,
        };
        self.sender.send(message).await.ok()?;
        wait.await.ok()?
    }
}

/// The other end: shows and keeps.
pub(crate) struct Spool {
    receiver: mpsc::Receiver<Message>,
    live: LiveText,
    keeper: Keeper,
    /// The call has ended and what it started goes on.
    open: bool,
    failed: Option<String>,
}

/// Makes the two ends of a spool for the result `item`.
pub(crate) fn spool(
    feed: FeedSender,
    session: SessionId,
    item: ItemId,
    blob: BlobWriter,
) -> (Arc<SpoolSink>, Spool) {
    let (sender, receiver) = mpsc::channel(INBOX);
    let spool = Spool {
        receiver,
        live: LiveText::new(feed, session, item),
        keeper: Keeper::new(blob),
        open: false,
        failed: None,
    };
    let sink = SpoolSink {
        sender,
        written: AtomicBool::new(false),
        ended: AtomicBool::new(false),
    };
    (Arc::new(sink), spool)
}

impl Spool {
    /// Takes all that comes until nobody can write or read any more.
    pub(crate) async fn run(mut self) {
        loop {
            let message = match self.live.due() {
                None => self.receiver.recv().await,
                Some(due) => match timeout_at(due, self.receiver.recv()).await {
                    Ok(message) => message,
                    Err(_) => {
                        self.live.flush().await;
                        continue;
                    }
                },
            };
            match message {
                Some(message) => self.take(message).await,
                None => break,
            }
        }
        // A command that was cut off with its session has no end of its own.
        self.end().await;
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Bytes(bytes) => {
                if !self.open {
                    self.live.push(&bytes).await;
                }
                if self.failed.is_none() {
                    let pushed = self.keeper.push(&bytes).await;
                    self.note(pushed);
                }
            }
            Message::End => self.end().await,
            Message::Settle { how, reply } => {
                let settled = self.settle(how).await;
                // The call may have been abandoned meanwhile.
                let _ = reply.send(settled);
            }
            Message::Read {
                offset,
                limit,
                reply,
            } => {
                let read = self.keeper.read(offset, limit).await;
                let kept = read.map(|(offset, bytes)| Kept::new(offset, bytes.into()));
                let _ = reply.send(kept.ok());
            }
        }
    }

    /// Nothing more comes: what went on after its call is written to its end.
    async fn end(&mut self) {
        if self.open && self.failed.is_none() {
            self.open = false;
            let closed = self.keeper.close().await.map(drop);
            self.note(closed);
        }
    }

    async fn settle(&mut self, how: Settle) -> Result<Settled, Error> {
        self.live.finish().await;
        if let Some(message) = &self.failed {
            return Err(Error::Backend {
                backend: "spool",
                source: message.clone().into(),
            });
        }
        let keeper = &mut self.keeper;
        let blob = match how {
            Settle::Open => {
                self.open = true;
                keeper.open().await?
            }
            Settle::Keep(text) => {
                if let Some(text) = text {
                    keeper.push(text.as_bytes()).await?;
                }
                keeper.close().await?
            }
            Settle::KeepLong => keeper.close_if_begun().await?,
        };
        Ok(Settled {
            blob,
            lost: self.keeper.lost(),
            bytes: self.keeper.bytes(),
        })
    }

    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            tracing::warn!(%error, "the output of a call could not be kept");
            self.failed = Some(error.to_string());
        }
    }
}

/// Shows text to those who watch.
struct LiveText {
    feed: FeedSender,
    session: SessionId,
    item: ItemId,
    decoder: Decoder,
    /// How much text is before what waits.
    offset: u64,
    waiting: String,
    last: Option<Instant>,
}

impl LiveText {
    fn new(feed: FeedSender, session: SessionId, item: ItemId) -> Self {
        Self {
            feed,
            session,
            item,
            decoder: Decoder::default(),
            offset: 0,
            waiting: String::new(),
            last: None,
        }
    }

    async fn push(&mut self, bytes: &[u8]) {
        let waiting = &mut self.waiting;
        self.decoder.push(bytes, |text| waiting.push_str(text));
        if self.waiting.len() > MAX_SHOWN {
            let surplus = self.waiting.len() - MAX_SHOWN;
            let cut = self.waiting.ceil_char_boundary(surplus);
            self.waiting.drain(..cut);
            self.offset += cut as u64;
        }
        if self.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.flush().await;
        }
    }

    /// When what waits is to be shown.
    fn due(&self) -> Option<Instant> {
        let waits = !self.waiting.is_empty();
        self.last.filter(|_| waits).map(|last| last + PAUSE)
    }

    async fn flush(&mut self) {
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() {
            return;
        }
        let (session_id, item_id, offset) = (self.session, self.item, self.offset);
        self.offset += text.len() as u64;
        self.last = Some(Instant::now());
        let delta = Delta {
            session_id,
            item_id,
            offset,
            text,
        };
        self.feed.live(Live::Delta(delta)).await;
    }

    async fn finish(&mut self) {
        let waiting = &mut self.waiting;
        self.decoder.finish(|text| waiting.push_str(text));
        self.flush().await;
    }
}

//! What waits to be sent to one client: in order, and bounded in bytes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Sink, SinkExt};
use openvaala_protocol::rpc::{
    ErrorCode, MAX_RESPONSE_BYTES, Notice, Outgoing, Response, RpcError,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::config::Limits;
use crate::http::Written;

/// What a message counts at least: many small ones take memory, too.
const LEAST: usize = 128;
/// A longer message is sent in frames of this size: what is being written is a copy, and the memory for it stays.
const FRAME: usize = 32 << 10;
/// How many bytes go out between two flushes at most.
const BURST: usize = 256 << 10;
/// How often it is looked whether a client still reads, within the time that it may read nothing.
const LOOKS: u32 = 10;

/// The way into an outbox; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    capacity: usize,
    room: Arc<Semaphore>,
    frames: mpsc::UnboundedSender<Waiting>,
}

/// The client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

#[derive(Debug)]
struct Waiting {
    message: Message,
    _room: Option<OwnedSemaphorePermit>,
}

/// The way out of an outbox.
#[derive(Debug)]
pub(super) struct Sending {
    waiting: mpsc::UnboundedReceiver<Waiting>,
    written: Written,
    unread: Duration,
}

/// An outbox for one client; `written` counts what its connection has taken.
pub(super) fn outbox(limits: &Limits, written: Written) -> (Outbox, Sending) {
    // Unbounded in count: the room bounds it in bytes, and every message has some.
    let (frames, waiting) = mpsc::unbounded_channel();
    let outbox = Outbox {
        capacity: limits.queue_bytes,
        room: Arc::new(Semaphore::new(limits.queue_bytes)),
        frames,
    };
    let sending = Sending {
        waiting,
        written,
        unread: limits.unread,
    };
    (outbox, sending)
}

impl Outbox {
    /// Sends a response, as soon as there is room for it.
    pub(crate) async fn respond(&self, response: &Response) -> Result<(), Gone> {
        match response.to_text() {
            Ok(text) if text.len() <= MAX_RESPONSE_BYTES => self.send(exact(text)).await,
            Ok(text) => {
                let message = format!(
                    "the answer has {} MiB, clients take {}: ask for less at once",
                    text.len() >> 20,
                    MAX_RESPONSE_BYTES >> 20
                );
                self.send(refusal(response, message).into()).await
            }
            Err(error) => {
                let refusal = refusal(response, error.to_string());
                self.send(refusal.into()).await
            }
        }
    }

    /// Sends a notification, as soon as there is room for it.
    pub(crate) async fn notify(&self, notice: &Notice) -> Result<(), Gone> {
        match text(notice) {
            Some(text) => self.send(text).await,
            None => Ok(()),
        }
    }

    /// Closes the connection after what waits.
    pub(super) fn close(&self, frame: CloseFrame) {
        // With the receiver gone it is closed already.
        let _ = self.frames.send(Waiting {
            message: Message::Close(Some(frame)),
            _room: None,
        });
    }

    /// Sends a message as soon as there is room for it; clients that are sent the same text share its memory.
    pub(super) async fn send(&self, text: Utf8Bytes) -> Result<(), Gone> {
        // One that is larger than all the room has it for itself.
        let size = text.len().max(LEAST).min(self.capacity);
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(size)
            .await
            .map_err(|_| Gone)?;
        let waiting = Waiting {
            message: Message::Text(text),
            _room: Some(room),
        };
        self.frames.send(waiting).map_err(|_| Gone)
    }
}

/// A notification as it is sent; `None` if it cannot be written.
pub(super) fn text(notice: &Notice) -> Option<Utf8Bytes> {
    let text = notice.params().and_then(|params| {
        let (jsonrpc, method) = (Default::default(), notice.name());
        serde_json::to_string(&Outgoing::Notification {
            jsonrpc,
            method,
            params: &params,
        })
    });
    text.map(exact)
        .inspect_err(|error| {
            tracing::error!(method = notice.name(), %error, "a notification cannot be written");
        })
        .ok()
}

/// A text that takes no more memory than it is long: while it is written its buffer grows to twice that.
fn exact(mut text: String) -> Utf8Bytes {
    text.shrink_to_fit();
    text.into()
}

fn refusal(response: &Response, message: String) -> String {
    let result = Err(RpcError::new(ErrorCode::Runtime, message));
    // An error with a short text can always be written.
    Response {
        id: response.id.clone(),
        result,
    }
    .to_text()
    .unwrap_or_default()
}

impl Sending {
    /// Sends what waits until every way in is gone; returns early if the client is gone or does not read.
    pub(super) async fn run(self, sink: &mut (impl Sink<Message, Error = Error> + Unpin)) {
        let Self {
            mut waiting,
            written,
            unread,
        } = self;
        while let Some(first) = waiting.recv().await {
            let sent = patiently(&written, unread, burst(&mut waiting, sink, first));
            match sent.await {
                Some(Ok(Burst::Sent)) => {}
                Some(Ok(Burst::Closed)) => return,
                Some(Err(error)) => {
                    tracing::debug!(%error, "a client is gone");
                    return;
                }
                None => {
                    tracing::warn!("a client has read nothing for {unread:?} and is disconnected");
                    return;
                }
            }
        }
    }
}

/// Waits as long as the client reads; `None` once it has read nothing for that time.
async fn patiently<T>(
    written: &Written,
    unread: Duration,
    sent: impl Future<Output = T>,
) -> Option<T> {
    let mut sent = pin!(sent);
    let (mut bytes, mut since) = (written.bytes(), Instant::now());
    loop {
        if let Ok(sent) = timeout(unread / LOOKS, sent.as_mut()).await {
            return Some(sent);
        }
        let now = written.bytes();
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        } else if since.elapsed() >= unread {
            return None;
        }
    }
}

enum Burst {
    Sent,
    Closed,
}

/// Sends what has come together in one go.
async fn burst(
    waiting: &mut mpsc::UnboundedReceiver<Waiting>,
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    first: Waiting,
) -> Result<Burst, Error> {
    let mut next = Some(first);
    let mut bytes = 0;
    while let Some(Waiting { message, _room }) = next {
        let closes = message.is_close();
        bytes += message.len();
        feed(sink, message).await?;
        if closes {
            sink.flush().await?;
            return Ok(Burst::Closed);
        }
        next = if bytes < BURST {
            waiting.try_recv().ok()
        } else {
            None
        };
    }
    sink.flush().await.map(|()| Burst::Sent)
}

/// Writes a message, a long one in pieces.
async fn feed(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    message: Message,
) -> Result<(), Error> {
    let text = match message {
        Message::Text(text) if text.len() > FRAME => text,
        short => return sink.feed(short).await,
    };
    let mut rest = Bytes::from(text);
    let mut opcode = OpCode::Data(Data::Text);
    while !rest.is_empty() {
        let piece = rest.split_to(FRAME.min(rest.len()));
        let frame = Frame::message(piece, opcode, rest.is_empty());
        sink.feed(Message::Frame(frame)).await?;
        opcode = OpCode::Data(Data::Continue);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use futures::channel::mpsc::channel;
    use futures::{SinkExt, StreamExt};
    use openvaala_protocol::rpc::params::server::StoppingParams;
    use openvaala_protocol::rpc::{Notice, RequestId, Response};
    use pretty_assertions::assert_eq;
    use tokio::task::yield_now;
    use tokio::time::{Instant, sleep};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

    use super::{FRAME, outbox, patiently};
    use crate::config::Limits;
    use crate::http::Written;

    fn notice(bytes: usize) -> Notice {
        Notice::ServerStopping(StoppingParams {
            reason: "x".repeat(bytes),
        })
    }

    #[tokio::test]
    async fn s_137_what_waits_for_a_client_that_does_not_read_is_bounded_in_bytes() {
        let limits = Limits::default();
        let (outbox, sending) = outbox(&limits, Written::default());
        let half = notice(limits.queue_bytes / 2);
        assert!(outbox.notify(&half).await.is_ok());
        let mut second = pin!(outbox.notify(&half));
        for _ in 0..10 {
            assert!(futures::poll!(second.as_mut()).is_pending());
            yield_now().await;
        }
        drop(sending);
        // The room of what was not sent comes back; then it shows that nobody reads.
        assert!(second.await.is_err());
    }

    #[tokio::test]
    async fn messages_leave_in_the_order_in_which_they_came() {
        let (outbox, sending) = outbox(&Limits::default(), Written::default());
        let (sink, stream) = channel(8);
        let mut sink =
            sink.sink_map_err(|_| tokio_tungstenite::tungstenite::Error::ConnectionClosed);
        let result = serde_json::value::to_raw_value("done").unwrap();
        let response = Response {
            id: Some(RequestId::Number(1)),
            result: Ok(result),
        };
        assert!(outbox.respond(&response).await.is_ok());
        assert!(outbox.notify(&notice(1)).await.is_ok());
        drop(outbox);
        sending.run(&mut sink).await;
        drop(sink);
        let sent: Vec<String> = stream
            .map(|message| message.into_text().unwrap().to_string())
            .collect()
            .await;
        assert_eq!(
            sent,
            [
                r#"{"jsonrpc":"2.0","id":1,"result":"done"}"#,
                r#"{"jsonrpc":"2.0","method":"server/stopping","params":{"reason":"x"}}"#,
            ]
        );
    }

    #[tokio::test]
    async fn a_long_message_leaves_in_frames_that_make_it_up() {
        let (outbox, sending) = outbox(&Limits::default(), Written::default());
        let (sink, stream) = channel(8);
        let mut sink =
            sink.sink_map_err(|_| tokio_tungstenite::tungstenite::Error::ConnectionClosed);
        assert!(outbox.notify(&notice(2 * FRAME)).await.is_ok());
        drop(outbox);
        sending.run(&mut sink).await;
        drop(sink);
        let frames: Vec<_> = stream
            .map(|message| match message {
                Message::Frame(frame) => frame,
                whole => panic!("{} bytes at once", whole.len()),
            })
            .collect()
            .await;
        let shown: Vec<_> = frames
            .iter()
            .map(|frame| (frame.header().opcode, frame.header().is_final))
            .collect();
        let (text, more) = (OpCode::Data(Data::Text), OpCode::Data(Data::Continue));
        assert_eq!(shown, [(text, false), (more, false), (more, true)]);
        let bytes: Vec<u8> = frames
            .iter()
            .flat_map(|frame| frame.payload().to_vec())
            .collect();
        assert_eq!(bytes, super::text(&notice(2 * FRAME)).unwrap().as_bytes());
    }

    #[tokio::test(start_paused = true)]
    async fn s_137_a_client_that_reads_a_little_is_kept_and_one_that_reads_nothing_is_not() {
        let limits = Limits::default();
        let written = Written::default();
        let slow = async {
            for _ in 0..10 {
                sleep(limits.unread - Duration::from_secs(4)).await;
                written.add(1);
            }
        };
        assert!(patiently(&written, limits.unread, slow).await.is_some());
        let begin = Instant::now();
        let never = std::future::pending::<()>();
        assert!(patiently(&written, limits.unread, never).await.is_none());
        assert_eq!(begin.elapsed(), limits.unread);
    }
}

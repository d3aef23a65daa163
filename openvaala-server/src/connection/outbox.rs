//! What waits to be sent to one client: in order, and bounded in bytes.

use std::sync::Arc;
use std::time::Duration;

use futures::{Sink, SinkExt};
use openvaala_protocol::rpc::{
    ErrorCode, MAX_RESPONSE_BYTES, Notice, Outgoing, Response, RpcError,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// How many bytes may wait for a client; who wants to send more waits.
const CAPACITY: usize = 8 << 20;
/// How long a client may take to read one message.
const PATIENCE: Duration = Duration::from_secs(30);

/// The way into an outbox; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
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
pub(super) struct Sending(mpsc::UnboundedReceiver<Waiting>);

/// An outbox for one client.
pub(super) fn outbox() -> (Outbox, Sending) {
    // Unbounded in count: the room bounds it in bytes, and every message has some.
    let (frames, waiting) = mpsc::unbounded_channel();
    (
        Outbox {
            room: Arc::new(Semaphore::new(CAPACITY)),
            frames,
        },
        Sending(waiting),
    )
}

impl Outbox {
    /// Sends a response, as soon as there is room for it.
    pub(crate) async fn respond(&self, response: &Response) -> Result<(), Gone> {
        match response.to_text() {
            Ok(text) if text.len() <= MAX_RESPONSE_BYTES => self.send(text).await,
            Ok(text) => {
                let message = format!(
                    "the answer has {} MiB, clients take {}: ask for less at once",
                    text.len() >> 20,
                    MAX_RESPONSE_BYTES >> 20
                );
                self.send(refusal(response, message)).await
            }
            Err(error) => self.send(refusal(response, error.to_string())).await,
        }
    }

    /// Sends a notification, as soon as there is room for it.
    pub(crate) async fn notify(&self, notice: &Notice) -> Result<(), Gone> {
        let text = notice.params().and_then(|params| {
            let (jsonrpc, method) = (Default::default(), notice.name());
            serde_json::to_string(&Outgoing::Notification {
                jsonrpc,
                method,
                params: &params,
            })
        });
        match text {
            Ok(text) => self.send(text).await,
            Err(error) => {
                tracing::error!(method = notice.name(), %error, "a notification cannot be written");
                Ok(())
            }
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

    async fn send(&self, text: String) -> Result<(), Gone> {
        let size = u32::try_from(text.len().min(CAPACITY)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(size)
            .await
            .map_err(|_| Gone)?;
        let waiting = Waiting {
            message: Message::text(text),
            _room: Some(room),
        };
        self.frames.send(waiting).map_err(|_| Gone)
    }
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
    pub(super) async fn run(mut self, sink: &mut (impl Sink<Message, Error = Error> + Unpin)) {
        while let Some(first) = self.0.recv().await {
            match timeout(PATIENCE, self.burst(sink, first)).await {
                Ok(Ok(Burst::Sent)) => {}
                Ok(Ok(Burst::Closed)) => return,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a client is gone");
                    return;
                }
                Err(_) => {
                    tracing::warn!(
                        "a client has read nothing for {PATIENCE:?} and is disconnected"
                    );
                    return;
                }
            }
        }
    }

    /// Sends what has come together in one go.
    async fn burst(
        &mut self,
        sink: &mut (impl Sink<Message, Error = Error> + Unpin),
        first: Waiting,
    ) -> Result<Burst, Error> {
        let mut next = Some(first);
        let mut bytes = 0;
        while let Some(Waiting { message, _room }) = next {
            let closes = message.is_close();
            bytes += message.len();
            sink.feed(message).await?;
            if closes {
                sink.flush().await?;
                return Ok(Burst::Closed);
            }
            // The patience is for a burst: a long one counts as several.
            next = if bytes < BURST {
                self.0.try_recv().ok()
            } else {
                None
            };
        }
        sink.flush().await.map(|()| Burst::Sent)
    }
}

/// How many bytes go out in one burst at most.
const BURST: usize = 256 << 10;

enum Burst {
    Sent,
    Closed,
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::channel::mpsc::channel;
    use futures::{SinkExt, StreamExt};
    use openvaala_protocol::rpc::params::server::StoppingParams;
    use openvaala_protocol::rpc::{Notice, RequestId, Response};
    use pretty_assertions::assert_eq;
    use tokio::task::yield_now;

    use super::{CAPACITY, outbox};

    fn notice(bytes: usize) -> Notice {
        Notice::ServerStopping(StoppingParams {
            reason: "x".repeat(bytes),
        })
    }

    #[tokio::test]
    async fn s_137_what_waits_for_a_client_that_does_not_read_is_bounded_in_bytes() {
        let (outbox, sending) = outbox();
        let half = notice(CAPACITY / 2);
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
        let (outbox, sending) = outbox();
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
}

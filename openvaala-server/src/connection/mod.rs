//! One client: a loop that reads its requests, a loop that sends to it, and the work in between.

mod dispatch;
mod lane;
mod outbox;
mod rate;
mod subscriptions;

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::SplitStream;
use openvaala_protocol::rpc::params::server::StoppingParams;
use openvaala_protocol::rpc::{ErrorCode, Incoming, Notice, RequestId, Response, RpcError};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use self::dispatch::Requests;
pub(crate) use self::outbox::{Gone, Outbox};
use crate::auth::Access;
use crate::config::Limits;
use crate::context::{Command, Context, Phase};
use crate::http::{Admitted, Gate, Socket, admit};

/// How long a connection has to send what waits, once nothing more comes.
const LAST_BYTES: Duration = Duration::from_secs(1);

/// Serves one connection from its first byte to its last.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    gate: &Gate,
    context: Context,
    limits: Limits,
) {
    let Some(Admitted { socket, access }) = admit(stream, peer, gate, &limits).await else {
        return;
    };
    // If the loop is gone the server is about to end, which shows below.
    let _ = context
        .commands
        .send(Command::Admitted(tokio::task::id()))
        .await;
    let ended = async {
        access.ended().await;
        sleep(LAST_BYTES).await;
    };
    tokio::select! {
        () = converse(socket, context, limits, access.clone()) => {}
        // A client that does not read is not told, but its connection ends in time.
        () = ended => {}
    }
}

async fn converse(socket: Socket, context: Context, limits: Limits, access: Access) {
    let written = socket.get_ref().written();
    let (mut sink, stream) = socket.split();
    let (outbox, sending) = outbox::outbox(&limits, written);
    let requests = Requests::new(context.clone(), outbox.clone(), limits, access.clone());
    let mut reader = pin!(read(stream, outbox, context, requests, access));
    let (stream, rest) = {
        let mut writer = pin!(sending.run(&mut sink));
        tokio::select! {
            () = &mut writer => return,
            read = &mut reader => {
                if timeout(LAST_BYTES, writer).await.is_err() {
                    return;
                }
                read
            }
        }
    };
    if rest == Rest::Discarded
        && let Ok(socket) = stream.reunite(sink)
    {
        discard(socket).await;
    }
}

/// What to do with what a client still sends after the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    /// Nothing more comes, or it does not matter.
    Left,
    /// The client is in the middle of a message: without reading it, it would not see why it is disconnected.
    Discarded,
}

/// Reads until the client or the server ends the connection.
async fn read(
    mut stream: SplitStream<Socket>,
    outbox: Outbox,
    context: Context,
    mut requests: Requests,
    access: Access,
) -> (SplitStream<Socket>, Rest) {
    let mut phase = context.phase;
    let mut ended = pin!(access.ended());
    let rest = loop {
        tokio::select! {
            message = stream.next() => match take(message, &mut requests, &outbox).await {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(rest) => break rest,
            },
            () = requests.finished() => {}
            () = &mut ended => {
                tracing::info!(token = access.name(), "a connection ends with its token");
                outbox.close(frame(CloseCode::Policy, "the token is no longer good"));
                break Rest::Left;
            }
            changed = phase.changed() => {
                let now = phase.borrow_and_update().clone();
                match now {
                    _ if changed.is_err() => break Rest::Left,
                    Phase::Serving => {}
                    Phase::Stopping { reason } => {
                        let notice = Notice::ServerStopping(StoppingParams { reason });
                        if outbox.notify(&notice).await.is_err() {
                            break Rest::Left;
                        }
                    }
                    Phase::Closing => {
                        requests.close().await;
                        outbox.close(frame(CloseCode::Away, "the server ends"));
                        break Rest::Left;
                    }
                }
            }
        }
    };
    (stream, rest)
}

async fn take(
    message: Option<Result<Message, Error>>,
    requests: &mut Requests,
    outbox: &Outbox,
) -> ControlFlow<Rest> {
    let taken = match message {
        Some(Ok(Message::Text(text))) => take_text(&text, requests, outbox).await,
        Some(Ok(Message::Binary(_))) => {
            let message = "a message is JSON in a text frame, not in a binary one";
            refuse(
                outbox,
                None,
                RpcError::new(ErrorCode::InvalidRequest, message),
            )
            .await
        }
        // Pongs are sent by the WebSocket itself; after a close it ends by itself.
        Some(Ok(_)) => Ok(()),
        Some(Err(Error::Capacity(CapacityError::MessageTooLong { size, max_size }))) => {
            let message = format!("the message has {size} bytes, {max_size} are taken");
            outbox.close(frame(CloseCode::Size, &message));
            return ControlFlow::Break(Rest::Discarded);
        }
        Some(Err(Error::Utf8(_))) => {
            outbox.close(frame(CloseCode::Invalid, "a text frame is no UTF-8"));
            return ControlFlow::Break(Rest::Discarded);
        }
        Some(Err(Error::Protocol(error))) => {
            outbox.close(frame(CloseCode::Protocol, &error.to_string()));
            return ControlFlow::Break(Rest::Discarded);
        }
        Some(Err(error)) => {
            tracing::debug!(%error, "a client is gone");
            return ControlFlow::Break(Rest::Left);
        }
        None => return ControlFlow::Break(Rest::Left),
    };
    match taken {
        Ok(()) => ControlFlow::Continue(()),
        Err(Gone) => ControlFlow::Break(Rest::Left),
    }
}

async fn take_text(text: &str, requests: &mut Requests, outbox: &Outbox) -> Result<(), Gone> {
    match Incoming::parse_within(text, requests.depth()) {
        Ok(Incoming::Request(request)) => requests.take(request).await,
        // No notification of clients has a meaning, and nothing was asked of them.
        Ok(Incoming::Notification(_) | Incoming::Response(_)) => Ok(()),
        Err(response) => outbox.respond(&response).await,
    }
}

/// Answers a request.
async fn respond<R: Serialize>(
    outbox: &Outbox,
    id: RequestId,
    result: Result<R, RpcError>,
) -> Result<(), Gone> {
    let result = result.and_then(|result| {
        to_raw_value(&result).map_err(|error| RpcError::new(ErrorCode::Runtime, error.to_string()))
    });
    outbox
        .respond(&Response {
            id: Some(id),
            result,
        })
        .await
}

async fn refuse(outbox: &Outbox, id: Option<RequestId>, error: RpcError) -> Result<(), Gone> {
    outbox
        .respond(&Response {
            id,
            result: Err(error),
        })
        .await
}

fn frame(code: CloseCode, reason: &str) -> CloseFrame {
    // A close frame has room for 123 bytes.
    let end = reason.floor_char_boundary(120);
    CloseFrame {
        code,
        reason: reason[..end].into(),
    }
}

/// Reads on for a moment, so that the close frame is not lost to a reset.
async fn discard(mut socket: Socket) {
    let mut buffer = vec![0; 64 << 10];
    let drained = async {
        while matches!(socket.get_mut().read(&mut buffer).await, Ok(count) if count > 0) {}
    };
    // Whoever sends for longer is cut off.
    let _ = timeout(LAST_BYTES, drained).await;
}

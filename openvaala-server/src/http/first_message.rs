//! A browser cannot set headers for a WebSocket: the token comes in its first message, from a page of this server only.

use std::net::IpAddr;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use openvaala_protocol::handshake::Credential;
use openvaala_protocol::rpc::{Incoming, RequestId, Response};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::admit::{Admitted, Socket, websocket};
use super::gate::Gate;
use crate::auth::Grant;
use crate::config::Limits;

/// How long the first message may take.
const LIMIT: Duration = Duration::from_secs(4);
/// How large it may be, in bytes; with what the socket reads at once that is 4 KiB of somebody whom nobody knows.
const MAX_BYTES: usize = 2 << 10;
/// How long the refusal may take to be sent.
const CLOSE_LIMIT: Duration = Duration::from_millis(500);
/// The method of the first message.
const AUTHENTICATE: &str = "authenticate";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    token: String,
}

/// Waits for the token; `None` if it does not come or is wrong.
///
/// The client has to wait for the answer before it sends more: what comes with the token is not read.
pub(super) async fn first_message(
    stream: TokioIo<Upgraded>,
    peer: IpAddr,
    gate: &Gate,
    limits: &Limits,
) -> Option<Admitted> {
    let mut socket = websocket(stream, MAX_BYTES).await;
    let first = timeout(LIMIT, socket.next()).await;
    let (id, grant) = match first {
        Ok(Some(Ok(Message::Text(text)))) => match read(&text) {
            Some((id, credential)) => (id, gate.grant(&credential)),
            None => {
                return refuse(
                    socket,
                    "the first message must be `authenticate` with a token",
                )
                .await;
            }
        },
        Ok(Some(Ok(_))) => return refuse(socket, "the first message must be a text").await,
        Ok(Some(Err(_))) => return refuse(socket, "the first message cannot be read").await,
        Ok(None) => return None,
        Err(_) => return refuse(socket, "the first message took too long").await,
    };
    let Some(grant) = grant else {
        sleep(gate.refused(peer).await).await;
        return refuse(socket, "the token is wrong, was revoked or has expired").await;
    };
    welcome(socket, id, grant, gate, limits).await
}

/// The id and the token of the first message, if that is what it is.
fn read(text: &str) -> Option<(RequestId, Credential)> {
    let Ok(Incoming::Request(request)) = Incoming::parse(text) else {
        return None;
    };
    if request.method != AUTHENTICATE {
        return None;
    }
    let params: Params = serde_json::from_str(request.params?.get()).ok()?;
    Some((request.id, params.token.parse().ok()?))
}

async fn welcome(
    mut socket: Socket,
    id: RequestId,
    grant: Grant,
    gate: &Gate,
    limits: &Limits,
) -> Option<Admitted> {
    let answer = Response {
        id: Some(id),
        result: Ok(to_raw_value(&serde_json::Map::new()).ok()?),
    };
    let text = answer.to_text().ok()?;
    let sent = timeout(CLOSE_LIMIT, socket.send(Message::text(text))).await;
    sent.ok()?.ok()?;
    Some(Admitted {
        // From here on it may send more at once.
        socket: websocket(socket.into_inner().into_inner(), limits.message_bytes).await,
        access: gate.access(grant),
    })
}

async fn refuse(mut socket: Socket, reason: &'static str) -> Option<Admitted> {
    let frame = CloseFrame {
        code: CloseCode::Policy,
        reason: reason.into(),
    };
    // Whoever does not read it is disconnected all the same.
    let _ = timeout(CLOSE_LIMIT, socket.close(Some(frame))).await;
    None
}

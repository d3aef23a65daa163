//! From an address to an open WebSocket: TCP, challenge, upgrade.

use std::error::Error;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    AUTHORIZATION, CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{ClientError, ConnectOptions};
use crate::ENDPOINT;
use crate::handshake::{
    CHALLENGE_PATH, Challenge, Credential, NONCE_HEADER, Nonce, Proof, TOKEN_HEADER,
};

/// A WebSocket on a connection that hyper has opened.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// How much of an answer before the upgrade is read, in bytes.
const BODY_LIMIT: usize = 4 * 1024;

/// The socket's buffer for reading; the default of 128 KiB is for servers with few clients.
const READ_BUFFER: usize = 16 * 1024;

/// Opens a WebSocket to a server that holds the token.
pub(super) async fn open(options: &ConnectOptions) -> Result<Socket, ClientError> {
    let address = options.address.as_str();
    let tcp = TcpStream::connect(address).await.map_err(|source| {
        let address = address.to_owned();
        if source.kind() == io::ErrorKind::ConnectionRefused {
            ClientError::Refused { address, source }
        } else {
            ClientError::Unreachable { address, source }
        }
    })?;
    tcp.set_nodelay(true)
        .map_err(|source| ClientError::Unreachable {
            address: address.to_owned(),
            source,
        })?;
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        return upgrade(tls.connect(address, tcp).await?, options).await;
    }
    upgrade(tcp, options).await
}

/// Makes a WebSocket of a connection.
async fn upgrade<S>(stream: S, options: &ConnectOptions) -> Result<Socket, ClientError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let ConnectOptions {
        address,
        credential,
        max_message_bytes,
        ..
    } = options;
    let max_message_bytes = *max_message_bytes;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| lost(address, &error))?;
    let opening = Opening {
        address,
        credential,
        sender,
    };
    let upgraded = drive(connection.with_upgrades(), opening.run()).await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(max_message_bytes))
        .max_frame_size(Some(max_message_bytes));
    Ok(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await)
}

/// Runs the HTTP connection as long as the work on it needs it, in the same task.
async fn drive<T>(connection: impl Future, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        result = &mut work => return result,
        _ = connection => {}
    }
    work.await
}

/// One attempt to open a WebSocket, on one HTTP connection.
struct Opening<'a> {
    address: &'a str,
    credential: &'a Credential,
    sender: SendRequest<Empty<Bytes>>,
}

impl Opening<'_> {
    async fn run(mut self) -> Result<Upgraded, ClientError> {
        let nonce = Nonce::generate()?;
        let challenge = self.challenge(&nonce).await?;
        if challenge.proof != self.credential.server_proof(&nonce, &challenge.nonce) {
            return Err(self.wrong_server("its proof is wrong"));
        }
        self.upgrade(self.credential.client_proof(&nonce, &challenge.nonce))
            .await
    }

    async fn challenge(&mut self, nonce: &Nonce) -> Result<Challenge, ClientError> {
        let mut request = Request::get(CHALLENGE_PATH)
            .header(HOST, self.address)
            .header(NONCE_HEADER, nonce.to_string());
        if let Some(id) = self.credential.id() {
            request = request.header(TOKEN_HEADER, id);
        }
        let request = request.body(Empty::new());
        let response = self.send(request).await?;
        let status = response.status();
        let body = body(response).await;
        match status {
            StatusCode::OK => serde_json::from_slice(&body)
                .map_err(|_| self.wrong_server("its answer is no challenge")),
            StatusCode::UNAUTHORIZED => Err(self.wrong_token(&body)),
            StatusCode::FORBIDDEN
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE => Err(self.rejected(status, &body)),
            _ => Err(self.wrong_server(&format!("it answers the challenge with {status}"))),
        }
    }

    async fn upgrade(&mut self, proof: Proof) -> Result<Upgraded, ClientError> {
        let key = generate_key();
        let request = Request::get(ENDPOINT)
            .header(HOST, self.address)
            .header(AUTHORIZATION, proof.to_authorization())
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key)
            .body(Empty::new());
        let response = self.send(request).await?;
        let status = response.status();
        match status {
            StatusCode::SWITCHING_PROTOCOLS => {}
            StatusCode::UNAUTHORIZED => {
                return Err(self.wrong_token(&body(response).await));
            }
            _ => return Err(self.rejected(status, &body(response).await)),
        }
        let accept = response.headers().get(SEC_WEBSOCKET_ACCEPT);
        if accept.map(|value| value.as_bytes())
            != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            let message = "the server's Sec-WebSocket-Accept does not belong to our key".to_owned();
            return Err(ClientError::Protocol { message });
        }
        hyper::upgrade::on(response)
            .await
            .map_err(|error| lost(self.address, &error))
    }

    async fn send(
        &mut self,
        request: Result<Request<Empty<Bytes>>, hyper::http::Error>,
    ) -> Result<Response<Incoming>, ClientError> {
        let request = request.map_err(|error| ClientError::Protocol {
            message: format!("no request can be made for {:?}: {error}", self.address),
        })?;
        self.sender
            .ready()
            .await
            .map_err(|error| lost(self.address, &error))?;
        self.sender
            .send_request(request)
            .await
            .map_err(|error| lost(self.address, &error))
    }

    fn wrong_token(&self, body: &[u8]) -> ClientError {
        ClientError::WrongToken {
            address: self.address.to_owned(),
            reason: text(body),
        }
    }

    fn wrong_server(&self, reason: &str) -> ClientError {
        ClientError::WrongServer {
            address: self.address.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn rejected(&self, status: StatusCode, body: &[u8]) -> ClientError {
        let (address, reason) = (self.address.to_owned(), text(body));
        ClientError::Rejected {
            address,
            status: status.as_u16(),
            reason,
        }
    }
}

/// Reads a short body; a long or broken one counts as empty.
async fn body(response: Response<Incoming>) -> Bytes {
    let body = Limited::new(response.into_body(), BODY_LIMIT)
        .collect()
        .await;
    body.map_or_else(|_| Bytes::new(), |body| body.to_bytes())
}

/// The beginning of what a server said, for an error.
fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body)
        .trim()
        .chars()
        .take(200)
        .collect()
}

/// What an error of the HTTP connection means before the WebSocket is open.
fn lost(address: &str, error: &hyper::Error) -> ClientError {
    let cause = error.source();
    // A request that was not sent yet is cancelled because of an error of the connection.
    if let Some(connection) = cause.and_then(|cause| cause.downcast_ref::<hyper::Error>()) {
        return lost(address, connection);
    }
    let is_io = cause.is_some_and(<dyn Error>::is::<io::Error>);
    if is_io || error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return ClientError::Disconnected {
            sent: false,
            reason: error.to_string(),
        };
    }
    let reason = format!("it does not speak HTTP as it should ({error})");
    ClientError::WrongServer {
        address: address.to_owned(),
        reason,
    }
}

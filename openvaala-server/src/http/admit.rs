//! Lets a connection in: the routes, the challenge, the proof, the upgrade.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use openvaala_protocol::ENDPOINT;
use openvaala_protocol::handshake::{
    CHALLENGE_PATH, Challenge, NONCE_HEADER, Nonce, Proof, Token, client_proof, server_proof,
};
use openvaala_protocol::rpc::MAX_REQUEST_BYTES;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::readiness::Readiness;

/// A WebSocket of a client that has shown that it holds the token.
pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// How long a connection may take to become a WebSocket; covers slow headers too.
const LIMIT: Duration = Duration::from_secs(10);
/// How much of a request is read before its headers must be complete; hyper wants no less.
const MAX_HEAD: usize = 8 << 10;
/// The defaults of 128 KiB cost 140 KiB for each idle client.
const READ_BUFFER: usize = 2 << 10;
/// Short notifications that come together leave in one write.
const WRITE_BUFFER: usize = 8 << 10;

type Answer = Response<Full<Bytes>>;

/// What a connection must fit to be let in.
#[derive(Debug)]
pub(crate) struct Gate {
    token: Token,
    hosts: [String; 2],
    readiness: Readiness,
}

impl Gate {
    /// The gate of a server that listens at that address.
    pub(crate) fn new(token: Token, address: SocketAddr, readiness: Readiness) -> Self {
        Self {
            token,
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
            readiness,
        }
    }
}

/// Serves HTTP until the connection is a WebSocket; `None` if it never becomes one.
pub(crate) async fn admit(stream: TcpStream, gate: &Gate) -> Option<Socket> {
    // Without it small messages may wait 40 ms for each other; with a broken socket all else fails too.
    let _ = stream.set_nodelay(true);
    let visit = Visit {
        gate,
        pair: OnceLock::new(),
        used: AtomicBool::new(false),
        upgrade: OnceLock::new(),
    };
    let service = service_fn(|request| ready(Ok::<_, Infallible>(visit.answer(request))));
    let connection = http1::Builder::new()
        .half_close(false)
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    match timeout(LIMIT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection broke before it was let in"),
        Err(_) => tracing::debug!("a connection took too long to be let in"),
    }
    let upgraded = visit.upgrade.into_inner()?.await.ok()?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(MAX_REQUEST_BYTES))
        .max_frame_size(Some(MAX_REQUEST_BYTES));
    Some(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await)
}

/// One connection on its way in; each of its fields is set once.
struct Visit<'a> {
    gate: &'a Gate,
    /// The nonces of client and server.
    pair: OnceLock<(Nonce, Nonce)>,
    used: AtomicBool,
    upgrade: OnceLock<OnUpgrade>,
}

impl Visit<'_> {
    fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        let answer = self.route(request);
        if !answer.status().is_success() && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let path: String = path.chars().take(80).collect();
            tracing::info!(
                ?path,
                status = answer.status().as_u16(),
                "a request was refused"
            );
        }
        answer
    }

    fn route(&self, request: Request<Incoming>) -> Answer {
        let headers = request.headers();
        if !self.is_own_host(headers) {
            return text(
                StatusCode::FORBIDDEN,
                "the Host header names another server",
            );
        }
        if headers.contains_key(ORIGIN) {
            return text(StatusCode::FORBIDDEN, "requests of web pages are not taken");
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => text(StatusCode::OK, "ok"),
            (&Method::GET, "/readyz") => match self.gate.readiness.missing() {
                None => text(StatusCode::OK, "ready"),
                Some(what) => text(StatusCode::SERVICE_UNAVAILABLE, what),
            },
            (&Method::GET, CHALLENGE_PATH) => self.challenge(headers),
            (&Method::GET, ENDPOINT) => self.websocket(request),
            _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    /// Whether the request was meant for this server: a page that points its own name here is refused.
    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        let host = host.as_bytes();
        self.gate
            .hosts
            .iter()
            .any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }

    fn challenge(&self, headers: &HeaderMap) -> Answer {
        let nonce = single(headers, NONCE_HEADER).and_then(|text| text.parse::<Nonce>().ok());
        let Some(client) = nonce else {
            let message = format!("the header {NONCE_HEADER} must hold one nonce of 64 hex digits");
            return text(StatusCode::BAD_REQUEST, message);
        };
        let Ok(server) = Nonce::generate() else {
            return text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the system gives no random numbers",
            );
        };
        if self.pair.set((client, server)).is_err() {
            return text(
                StatusCode::BAD_REQUEST,
                "one challenge a connection: open a new one",
            );
        }
        let proof = server_proof(&self.gate.token, &client, &server);
        match serde_json::to_string(&Challenge {
            nonce: server,
            proof,
        }) {
            Ok(body) => with_type(text(StatusCode::OK, body), "application/json"),
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "no challenge can be written",
            ),
        }
    }

    fn websocket(&self, mut request: Request<Incoming>) -> Answer {
        if let Err(reason) = self.check_proof(request.headers()) {
            return text(StatusCode::UNAUTHORIZED, reason);
        }
        let headers = request.headers();
        let is_upgrade = has_word(headers, CONNECTION.as_str(), "upgrade")
            && has_word(headers, UPGRADE.as_str(), "websocket")
            && single(headers, SEC_WEBSOCKET_VERSION.as_str()) == Some("13");
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_upgrade);
        let Some(accept) = key.map(|key| derive_accept_key(key.as_bytes())) else {
            return text(
                StatusCode::UPGRADE_REQUIRED,
                "this is a WebSocket of version 13",
            );
        };
        let Ok(accept) = HeaderValue::from_str(&accept) else {
            return text(
                StatusCode::BAD_REQUEST,
                "the Sec-WebSocket-Key cannot be used",
            );
        };
        if self.upgrade.set(hyper::upgrade::on(&mut request)).is_err() {
            return text(
                StatusCode::BAD_REQUEST,
                "this connection is a WebSocket already",
            );
        }
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        answer
    }

    /// Each challenge is good for one try.
    fn check_proof(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let Some((client, server)) = self.pair.get() else {
            return Err("ask for a challenge first, on this connection");
        };
        if self.used.swap(true, Ordering::AcqRel) {
            return Err("this challenge was used before: open a new connection");
        }
        let proof = single(headers, AUTHORIZATION.as_str()).and_then(Proof::from_authorization);
        match proof {
            None => Err("the header Authorization must hold one proof: OpenVaala <64 hex digits>"),
            Some(proof) if proof == client_proof(&self.gate.token, client, server) => Ok(()),
            Some(_) => Err("the proof is wrong: it was made with another token"),
        }
    }
}

/// The value of a header that is there exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn has_word(headers: &HeaderMap, name: &str, word: &str) -> bool {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(word))
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    with_type(answer, "text/plain; charset=utf-8")
}

fn with_type(mut answer: Answer, content_type: &'static str) -> Answer {
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

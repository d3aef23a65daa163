//! Lets a connection in: the routes, the challenge, the proof, the upgrade.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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
    CHALLENGE_PATH, Challenge, Key, NONCE_HEADER, Nonce, Proof, TOKEN_HEADER,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::counted::Counted;
use super::first_message::first_message;
use super::gate::Gate;
use crate::auth::{Access, Grant};
use crate::config::Limits;

/// A WebSocket of a client that has shown that it holds the token.
pub(crate) type Socket = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// How much of a request is read before its headers must be complete; hyper wants no less.
const MAX_HEAD: usize = 8 << 10;
/// The defaults of 128 KiB cost 140 KiB for each idle client.
const READ_BUFFER: usize = 2 << 10;
/// Short notifications that come together leave in one write.
const WRITE_BUFFER: usize = 8 << 10;

type Answer = Response<Full<Bytes>>;

/// A client that was let in.
pub(crate) struct Admitted {
    pub(crate) socket: Socket,
    /// What it may do.
    pub(crate) access: Access,
}

/// Serves HTTP until the connection is a WebSocket of somebody with a token; `None` if it never becomes one.
pub(crate) async fn admit(
    stream: TcpStream,
    peer: SocketAddr,
    gate: &Gate,
    limits: &Limits,
) -> Option<Admitted> {
    // Without it small messages may wait 40 ms for each other; with a broken socket all else fails too.
    let _ = stream.set_nodelay(true);
    let until = Instant::now() + limits.handshake;
    let door = Door {
        gate,
        limits,
        peer: peer.ip(),
        came_to: stream.local_addr().ok().map(plain),
        until,
    };
    let Some(tls) = &gate.tls else {
        return door.admit(stream).await;
    };
    let config = Arc::clone(&tls.borrow());
    // Its state is large, and most connections are not encrypted.
    let encrypted = Box::pin(TlsAcceptor::from(config).accept(stream));
    match timeout_at(until, encrypted).await {
        Ok(Ok(stream)) => door.admit(stream).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection could not be encrypted");
            None
        }
        Err(_) => {
            tracing::debug!("a connection took too long to be encrypted");
            None
        }
    }
}

/// An IPv4 address that came by a socket for both kinds is written as one.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Where a connection comes in.
struct Door<'a> {
    gate: &'a Gate,
    limits: &'a Limits,
    peer: IpAddr,
    /// The address of this machine that it has come to.
    came_to: Option<SocketAddr>,
    until: Instant,
}

impl Door<'_> {
    async fn admit<S>(self, stream: S) -> Option<Admitted>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self {
            gate,
            limits,
            peer,
            came_to,
            until,
        } = self;
        let visit = Visit {
            gate,
            peer,
            came_to,
            challenged: OnceLock::new(),
            used: AtomicBool::new(false),
            upgrade: OnceLock::new(),
        };
        let service = service_fn(|request| {
            let answer = visit.answer(request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .half_close(false)
            .header_read_timeout(None)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // Covers slow headers, too.
        match timeout_at(until, connection).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection broke before it was let in"),
            Err(_) => tracing::debug!("a connection took too long to be let in"),
        }
        let Upgrade { stream, grant } = visit.upgrade.into_inner()?;
        let stream = TokioIo::new(stream.await.ok()?);
        let Some(grant) = grant else {
            return first_message(stream, peer, gate, limits).await;
        };
        Some(Admitted {
            socket: websocket(stream, limits.message_bytes).await,
            access: gate.access(grant),
        })
    }
}

/// A WebSocket that takes messages up to that size, in bytes.
pub(super) async fn websocket(stream: TokioIo<Upgraded>, max_message: usize) -> Socket {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(Some(max_message))
        .max_frame_size(Some(max_message));
    let stream = Counted::new(stream);
    WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await
}

/// One connection on its way in; each of its fields is set once.
struct Visit<'a> {
    gate: &'a Gate,
    peer: IpAddr,
    came_to: Option<SocketAddr>,
    challenged: OnceLock<Challenged>,
    used: AtomicBool,
    upgrade: OnceLock<Upgrade>,
}

/// A challenge that was given.
struct Challenged {
    client: Nonce,
    server: Nonce,
    key: Key,
    grant: Grant,
}

/// A WebSocket that is about to open.
struct Upgrade {
    stream: OnUpgrade,
    /// What its proof grants; `None` if its first message has to bring a token.
    grant: Option<Grant>,
}

/// Why somebody is not let in.
enum Refusal {
    /// Something was left out or is no proof.
    Malformed(&'static str),
    /// It is a proof, or the name of a token, but a wrong one.
    Wrong(&'static str),
}

impl Visit<'_> {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        let answer = match self.route(request) {
            Ok(answer) => answer,
            Err(Refusal::Malformed(reason)) => text(StatusCode::UNAUTHORIZED, reason),
            Err(Refusal::Wrong(reason)) => {
                // What is said of these to the log is bounded there.
                sleep(self.gate.refused(self.peer).await).await;
                return text(StatusCode::UNAUTHORIZED, reason);
            }
        };
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

    fn route(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let headers = request.headers();
        // A page that points its own name at this server, or that only looks like one of this server, is refused.
        let takes_host = |host| self.gate.takes_host(host, self.came_to);
        if !single(headers, HOST.as_str()).is_some_and(takes_host) {
            let message = "the Host header names another server";
            return Ok(text(StatusCode::FORBIDDEN, message));
        }
        let is_page = headers.contains_key(ORIGIN);
        let takes_origin = |origin| self.gate.takes_origin(origin);
        if is_page && !single(headers, ORIGIN.as_str()).is_some_and(takes_origin) {
            let message = "requests of foreign web pages are not taken";
            return Ok(text(StatusCode::FORBIDDEN, message));
        }
        Ok(match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthz") => text(StatusCode::OK, "ok"),
            (&Method::GET, "/readyz") => match self.gate.readiness.missing() {
                None => text(StatusCode::OK, "ready"),
                Some(what) => text(StatusCode::SERVICE_UNAVAILABLE, what),
            },
            (&Method::GET, CHALLENGE_PATH) => return self.challenge(headers),
            (&Method::GET, ENDPOINT) if is_page => self.websocket(request, None),
            (&Method::GET, ENDPOINT) => {
                let grant = self.check_proof(headers)?;
                self.websocket(request, Some(grant))
            }
            _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
        })
    }

    fn challenge(&self, headers: &HeaderMap) -> Result<Answer, Refusal> {
        let nonce = single(headers, NONCE_HEADER).and_then(|text| text.parse::<Nonce>().ok());
        let Some(client) = nonce else {
            let message = format!("the header {NONCE_HEADER} must hold one nonce of 64 hex digits");
            return Ok(text(StatusCode::BAD_REQUEST, message));
        };
        let id = if headers.contains_key(TOKEN_HEADER) {
            // One that cannot be read is the name of no token.
            Some(single(headers, TOKEN_HEADER).unwrap_or_default())
        } else {
            None
        };
        let (key, grant) = self.gate.find(id).ok_or(Refusal::Wrong(match id {
            None => "clients on other machines need a token with a name: see `openvaala token`",
            Some(_) => "there is no token of that name, or it was revoked or has expired",
        }))?;
        let Ok(server) = Nonce::generate() else {
            let message = "the system gives no random numbers";
            return Ok(text(StatusCode::INTERNAL_SERVER_ERROR, message));
        };
        let proof = key.server_proof(&client, &server);
        let challenged = Challenged {
            client,
            server,
            key,
            grant,
        };
        if self.challenged.set(challenged).is_err() {
            let message = "one challenge a connection: open a new one";
            return Ok(text(StatusCode::BAD_REQUEST, message));
        }
        let challenge = Challenge {
            nonce: server,
            proof,
        };
        Ok(match serde_json::to_string(&challenge) {
            Ok(body) => with_type(text(StatusCode::OK, body), "application/json"),
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "no challenge can be written",
            ),
        })
    }

    fn websocket(&self, mut request: Request<Incoming>, grant: Option<Grant>) -> Answer {
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
        let stream = hyper::upgrade::on(&mut request);
        if self.upgrade.set(Upgrade { stream, grant }).is_err() {
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
    fn check_proof(&self, headers: &HeaderMap) -> Result<Grant, Refusal> {
        let Some(challenged) = self.challenged.get() else {
            let reason = "ask for a challenge first, on this connection";
            return Err(Refusal::Malformed(reason));
        };
        if self.used.swap(true, Ordering::AcqRel) {
            let reason = "this challenge was used before: open a new connection";
            return Err(Refusal::Malformed(reason));
        }
        let proof = single(headers, AUTHORIZATION.as_str()).and_then(Proof::from_authorization);
        let Some(proof) = proof else {
            let reason = "the header Authorization must hold one proof: OpenVaala <64 hex digits>";
            return Err(Refusal::Malformed(reason));
        };
        let Challenged {
            client,
            server,
            key,
            grant,
        } = challenged;
        if key.accepts(&proof, client, server) {
            return Ok(grant.clone());
        }
        let reason = "the proof is wrong: it was made with another token";
        Err(Refusal::Wrong(reason))
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

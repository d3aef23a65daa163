//! A server that speaks the handshake; what it says over the WebSocket is up to each test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::client::ConnectOptions;
use crate::handshake::{
    CHALLENGE_PATH, Challenge, Nonce, Proof, Token, client_proof, server_proof,
};
use crate::rpc::params::server::Peer;
use crate::{ENDPOINT, PROTOCOL_VERSION};

/// What the server answers before the WebSocket.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    Right,
    /// To the challenge, an HTTP status and a text.
    RefuseChallenge(u16),
    /// To the upgrade, an HTTP status and a text.
    RefuseUpgrade(u16),
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) token: Token,
    sockets: mpsc::UnboundedReceiver<ServerEnd>,
    _tasks: JoinSet<()>,
}

/// The server's end of one WebSocket.
pub(crate) struct ServerEnd {
    pub(crate) socket: WebSocketStream<TokioIo<Upgraded>>,
}

impl TestServer {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = Token::generate().unwrap();
        let (sender, sockets) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, manner, token.clone(), sender));
        Self {
            address,
            token,
            sockets,
            _tasks: tasks,
        }
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        let peer = Peer {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        ConnectOptions::new(self.address, self.token.clone(), peer)
    }

    pub(crate) async fn socket(&mut self) -> ServerEnd {
        self.sockets.recv().await.unwrap()
    }
}

async fn accept(
    listener: TcpListener,
    manner: Manner,
    token: Token,
    sockets: mpsc::UnboundedSender<ServerEnd>,
) {
    let mut connections = JoinSet::new();
    while let Ok((tcp, _)) = listener.accept().await {
        let (token, sockets) = (token.clone(), sockets.clone());
        connections.spawn(async move {
            // Belongs to the connection, so a proof on another one is worth nothing.
            let nonces = Arc::new(OnceLock::new());
            let service = service_fn(move |request| {
                let answer = answer(request, manner, &token, &nonces, &sockets);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(tcp), service);
            let _ = connection.with_upgrades().await;
        });
    }
}

fn answer(
    mut request: Request<Incoming>,
    manner: Manner,
    token: &Token,
    nonces: &OnceLock<(Nonce, Nonce)>,
    sockets: &mpsc::UnboundedSender<ServerEnd>,
) -> Response<Full<Bytes>> {
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    match (request.uri().path(), manner) {
        (CHALLENGE_PATH, Manner::RefuseChallenge(status)) => text(status, "go away"),
        (CHALLENGE_PATH, _) => {
            let client: Nonce = header("X-OpenVaala-Nonce").unwrap().parse().unwrap();
            let server = Nonce::generate().unwrap();
            nonces.set((client, server)).unwrap();
            let challenge = Challenge {
                nonce: server,
                proof: server_proof(token, &client, &server),
            };
            text(200, &serde_json::to_string(&challenge).unwrap())
        }
        (ENDPOINT, Manner::RefuseUpgrade(status)) => text(status, "go away"),
        (ENDPOINT, _) => {
            let (client, server) = nonces.get().unwrap();
            let proof = header("authorization").and_then(Proof::from_authorization);
            assert_eq!(proof, Some(client_proof(token, client, server)));
            let accept = derive_accept_key(header("sec-websocket-key").unwrap().as_bytes());
            let upgrade = hyper::upgrade::on(&mut request);
            let sockets = sockets.clone();
            tokio::spawn(async move {
                let io = TokioIo::new(upgrade.await.unwrap());
                let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
                let _ = sockets.send(ServerEnd { socket });
            });
            Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header("connection", "upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-accept", accept)
                .body(Full::default())
                .unwrap()
        }
        (path, _) => panic!("the client asked for {path}"),
    }
}

fn text(status: u16, text: &str) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .body(Full::from(text.to_owned()))
        .unwrap()
}

impl ServerEnd {
    /// The next request.
    pub(crate) async fn request(&mut self) -> Value {
        loop {
            match self.socket.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no request: {other:?}"),
            }
        }
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    pub(crate) async fn result(&mut self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
            .await;
    }

    pub(crate) async fn error(&mut self, request: &Value, error: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }))
            .await;
    }

    /// Answers `initialize` as a server of this version does.
    pub(crate) async fn initialize(&mut self) -> Value {
        let request = self.request().await;
        self.result(&request, initialize_result()).await;
        request
    }
}

pub(crate) fn initialize_result() -> Value {
    json!({
        "protocol_version": PROTOCOL_VERSION,
        "server": { "name": "test-server", "version": "9" },
        "default_model": { "provider": "demo", "model": "demo" },
        "notice": null,
    })
}

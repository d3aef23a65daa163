//! A server on a temporary directory, a client for it, and a raw socket to it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use openvaala_protocol::client::{Client, ConnectOptions, Notices};
use openvaala_protocol::handshake::{
    CHALLENGE_PATH, Challenge, Credential, NONCE_HEADER, Nonce, TOKEN_HEADER, Token, client_proof,
    server_proof,
};
use openvaala_protocol::rpc::params::server::Peer;
use openvaala_protocol::{ENDPOINT, PROTOCOL_VERSION};
use openvaala_server::{Environment, Server, ServerError, ServerHandle, ServerOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

/// Far more than anything here takes: a wait that long is a failure.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Directories for a server.
pub(crate) struct Place {
    pub(crate) root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir("config").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn options(&self) -> ServerOptions {
        let mut options =
            ServerOptions::new(self.dir("config"), self.dir("data"), self.dir("state"));
        options.listen = Some("127.0.0.1:0".parse().unwrap());
        let path = std::env::var("PATH").unwrap();
        let environment = [("PATH", path.as_str()), ("OPENVAALA_NO_PROBE", "1")];
        options = options.with_environment(Environment::from_iter(environment));
        options.working_dir = self.root.path().to_owned();
        options
    }
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) place: Place,
    pub(crate) address: SocketAddr,
    pub(crate) token: Token,
    pub(crate) handle: ServerHandle,
    pub(crate) task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::start_in(Place::new()).await
    }

    pub(crate) async fn start_in(place: Place) -> Self {
        let options = place.options();
        Self::start_with(place, options).await.unwrap()
    }

    pub(crate) async fn start_with(
        place: Place,
        options: ServerOptions,
    ) -> Result<Self, ServerError> {
        let server = Server::start(options).await?;
        let (address, token, handle) = (server.address(), server.token().clone(), server.handle());
        let task = tokio::spawn(server.run_until_stopped());
        Ok(Self {
            place,
            address,
            token,
            handle,
            task,
        })
    }

    pub(crate) fn connect_options(&self) -> ConnectOptions {
        let client = Peer {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        ConnectOptions::new(self.address, self.token.clone(), client)
    }

    pub(crate) async fn client(&self) -> (Client, Notices) {
        Client::connect(self.connect_options()).await.unwrap()
    }

    /// A raw client that is connected and initialized.
    pub(crate) async fn raw(&self) -> Raw {
        let mut raw = self.raw_new().await;
        let answer = raw.call("initialize", initialize(PROTOCOL_VERSION)).await;
        assert_eq!(answer["result"]["protocol_version"], PROTOCOL_VERSION);
        raw
    }

    /// A raw client that is connected.
    pub(crate) async fn raw_new(&self) -> Raw {
        let mut tcp = TcpStream::connect(self.address).await.unwrap();
        let proof = challenge(&mut tcp, self.address, &self.token).await;
        let authorization = format!("Authorization: OpenVaala {proof}\r\n");
        let (status, _) = request(&mut tcp, &upgrade(self.address, &authorization)).await;
        assert_eq!(status, 101);
        Raw::over(tcp).await
    }

    /// A raw client that is connected with that token.
    pub(crate) async fn raw_as(&self, credential: &Credential) -> Raw {
        let mut tcp = TcpStream::connect(self.address).await.unwrap();
        let nonce = Nonce::generate().unwrap();
        let (address, id) = (self.address, credential.id().unwrap());
        let head = format!(
            "GET {CHALLENGE_PATH} HTTP/1.1\r\nHost: {address}\r\n{NONCE_HEADER}: {nonce}\r\n{TOKEN_HEADER}: {id}\r\n\r\n"
        );
        let (status, body) = request(&mut tcp, &head).await;
        assert_eq!(status, 200, "{body}");
        let challenge: Challenge = serde_json::from_str(&body).unwrap();
        let proof = credential.client_proof(&nonce, &challenge.nonce);
        let authorization = format!("Authorization: {}\r\n", proof.to_authorization());
        let (status, body) = request(&mut tcp, &upgrade(address, &authorization)).await;
        assert_eq!(status, 101, "{body}");
        Raw::over(tcp).await
    }

    /// Stops the server in order.
    pub(crate) async fn stop(self) -> Place {
        self.handle.stop("the test ends").await;
        timeout(LONG, self.task).await.unwrap().unwrap();
        self.place
    }
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({ "protocol_version": version, "client": { "name": "raw", "version": "1" } })
}

/// A WebSocket whose messages are written by hand.
pub(crate) struct Raw {
    pub(crate) socket: WebSocketStream<TcpStream>,
    next: i64,
}

impl Raw {
    /// Over a connection that has just become a WebSocket.
    pub(crate) async fn over(tcp: TcpStream) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let socket = WebSocketStream::from_raw_socket(tcp, Role::Client, Some(config)).await;
        Self { socket, next: 0 }
    }

    pub(crate) async fn send(&mut self, text: impl Into<String>) {
        self.socket.send(Message::text(text.into())).await.unwrap();
    }

    /// Sends a request without waiting for its answer.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request.to_string()).await;
        id
    }

    /// The next message, whatever it is.
    pub(crate) async fn receive(&mut self) -> Value {
        loop {
            match timeout(LONG, self.socket.next())
                .await
                .unwrap()
                .unwrap()
                .unwrap()
            {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(frame) => panic!("closed: {frame:?}"),
                _ => {}
            }
        }
    }

    /// Asks and waits for the answer; notifications are passed over.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Reads until the server closes; tells why it did.
    pub(crate) async fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            match timeout(LONG, self.socket.next()).await.unwrap() {
                Some(Ok(Message::Close(frame))) => return frame,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// Asks for a challenge, checks the server's proof, and gives ours.
pub(crate) async fn challenge(tcp: &mut TcpStream, address: SocketAddr, token: &Token) -> String {
    let nonce = Nonce::generate().unwrap();
    let head = format!(
        "GET {CHALLENGE_PATH} HTTP/1.1\r\nHost: {address}\r\n{NONCE_HEADER}: {nonce}\r\n\r\n"
    );
    let (status, body) = request(tcp, &head).await;
    assert_eq!(status, 200, "{body}");
    let challenge: Challenge = serde_json::from_str(&body).unwrap();
    assert_eq!(
        challenge.proof,
        server_proof(token, &nonce, &challenge.nonce)
    );
    client_proof(token, &nonce, &challenge.nonce).to_string()
}

/// The head of an upgrade with some more lines.
pub(crate) fn upgrade(address: SocketAddr, lines: &str) -> String {
    format!(
        "GET {ENDPOINT} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
    )
}

/// Sends a request by hand; gives status and body.
pub(crate) async fn request(tcp: &mut TcpStream, head: &str) -> (u16, String) {
    tcp.write_all(head.as_bytes()).await.unwrap();
    timeout(LONG, response(tcp)).await.unwrap()
}

async fn response(tcp: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tcp.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(!head.contains("access-control-allow-origin"), "{head}");
    assert!(!head.contains("set-cookie"), "{head}");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    tcp.read_exact(&mut body).await.unwrap();
    (status, String::from_utf8(body).unwrap())
}

//! Hand-written HTTP requests and WebSocket frames, for input that no client would send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use openvaala_protocol::handshake::{
    CHALLENGE_PATH, Challenge, NONCE_HEADER, Nonce, Token, client_proof, server_proof,
};
use openvaala_protocol::{ENDPOINT, PROTOCOL_VERSION};
use serde_json::{Value, json};

use crate::wait::DEADLINE;

/// A connection to a server.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    address: String,
    buffer: Vec<u8>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// The head as it came.
    pub head: String,
    /// The body.
    pub body: String,
}

/// A message of a WebSocket.
#[derive(Debug, PartialEq)]
pub enum RawMessage {
    /// A text.
    Text(String),
    /// The server closes, with that code.
    Close(u16),
    /// Any other frame, with its opcode.
    Other(u8),
    /// The connection has ended.
    Ended,
}

impl RawClient {
    /// Opens a connection, no more.
    ///
    /// # Panics
    /// If nobody listens.
    #[must_use]
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address);
        let stream = stream.unwrap_or_else(|error| panic!("{address}: {error}"));
        stream
            .set_read_timeout(Some(DEADLINE))
            .expect("a timeout can be set");
        Self {
            stream,
            address: address.to_owned(),
            buffer: Vec::new(),
        }
    }

    /// Opens a WebSocket as it should be opened.
    ///
    /// # Panics
    /// If the server does not take it.
    #[must_use]
    pub fn open(address: &str, token: &Token) -> Self {
        let mut client = Self::connect(address);
        let reply = client.upgrade(token, &[]);
        assert_eq!(reply.status, 101, "{reply:?}");
        client
    }

    /// Opens a WebSocket and says who it is.
    ///
    /// # Panics
    /// If the server does not take it.
    #[must_use]
    pub fn initialized(address: &str, token: &Token) -> Self {
        let mut client = Self::open(address, token);
        let peer = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocol_version": PROTOCOL_VERSION, "client": peer });
        let answer = client.call("initialize", &params);
        assert!(answer.get("error").is_none(), "{answer}");
        client
    }

    /// Sends a GET request and reads the answer.
    ///
    /// # Panics
    /// If the connection breaks.
    pub fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> HttpReply {
        let mut request = format!("GET {path} HTTP/1.1\r\n");
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        self.send_bytes(request.as_bytes())
            .expect("the request can be written");
        self.read_reply()
    }

    /// Proves that it has that token and asks for a WebSocket.
    ///
    /// # Panics
    /// If the connection breaks, or the server cannot prove that it has the token of `open`.
    pub fn upgrade(&mut self, token: &Token, headers: &[(&str, &str)]) -> HttpReply {
        let nonce = Nonce::generate().expect("there are random numbers");
        let reply = self.get(CHALLENGE_PATH, &[(NONCE_HEADER, &nonce.to_string())]);
        let challenge: Challenge =
            serde_json::from_str(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"));
        let proof = client_proof(token, &nonce, &challenge.nonce).to_authorization();
        let mut all = vec![
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("Authorization", &proof),
        ];
        all.extend(headers);
        self.get(ENDPOINT, &all)
    }

    /// Whether the server proves that it holds a token.
    ///
    /// # Panics
    /// If the connection breaks.
    #[must_use]
    pub fn server_holds(address: &str, token: &Token) -> bool {
        let nonce = Nonce::generate().expect("there are random numbers");
        let reply =
            Self::connect(address).get(CHALLENGE_PATH, &[(NONCE_HEADER, &nonce.to_string())]);
        let challenge: Challenge = serde_json::from_str(&reply.body).expect("it is a challenge");
        challenge.proof == server_proof(token, &nonce, &challenge.nonce)
    }

    /// Sends a text message.
    ///
    /// # Panics
    /// If the connection breaks.
    pub fn send_text(&mut self, text: &str) {
        self.send_frame(0x81, text.as_bytes())
            .expect("the frame can be written");
    }

    /// Sends one masked frame with that first byte (flags and opcode).
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn send_frame(&mut self, first: u8, payload: &[u8]) -> io::Result<()> {
        let mask = [0x12, 0x34, 0x56, 0x78];
        let mut frame = vec![first];
        match payload.len() {
            length @ ..126 => frame.push(0x80 | u8::try_from(length).expect("below 126")),
            length @ ..65_536 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).expect("below 65536").to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(mask);
        frame.extend(
            payload
                .iter()
                .zip(mask.iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        self.send_bytes(&frame)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request and waits for its answer; notifications in between are passed over.
    ///
    /// # Panics
    /// If the connection ends first.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.send_text(&request.to_string());
        self.read_response()
    }

    /// Waits for the next response.
    ///
    /// # Panics
    /// If the connection ends first.
    #[track_caller]
    pub fn read_response(&mut self) -> Value {
        loop {
            match self.read_message() {
                RawMessage::Text(text) => {
                    let message: Value = serde_json::from_str(&text).expect("it is JSON");
                    if message.get("method").is_none() {
                        return message;
                    }
                }
                RawMessage::Other(_) => {}
                end => panic!("the connection ended before the answer came: {end:?}"),
            }
        }
    }

    /// Waits for the next message; one of several frames is put together.
    ///
    /// # Panics
    /// If the server sends a frame that it must not send.
    pub fn read_message(&mut self) -> RawMessage {
        let mut text = Vec::new();
        loop {
            let Some((first, payload)) = self.read_frame() else {
                return RawMessage::Ended;
            };
            match first & 0x0f {
                0 | 1 => {
                    text.extend(payload);
                    if first & 0x80 != 0 {
                        return RawMessage::Text(String::from_utf8(text).expect("a text is UTF-8"));
                    }
                }
                8 => {
                    return RawMessage::Close(match payload.as_slice() {
                        [high, low, ..] => u16::from_be_bytes([*high, *low]),
                        _ => 1005,
                    });
                }
                opcode => return RawMessage::Other(opcode),
            }
        }
    }

    /// The first byte and the payload of the next frame; `None` if the connection ends first.
    fn read_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = self.take(2)?;
        let (first, second) = (head[0], head[1]);
        assert_eq!(second & 0x80, 0, "a server does not mask");
        let length = match second & 0x7f {
            126 => self
                .take(2)
                .map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))),
            127 => self.take(8).map(|bytes| {
                bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte))
            }),
            short => Some(usize::from(short)),
        };
        Some((first, self.take(length?)?))
    }

    /// Reads until the connection ends; `false` if it does not within the deadline.
    pub fn ends(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            }
        }
    }

    fn read_reply(&mut self) -> HttpReply {
        let end = loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break end + 4;
            }
            assert!(
                self.fill(),
                "the connection ended within the head: {:?}",
                self.buffer
            );
        };
        let head = self.take(end).expect("it is there");
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status: u16 = status.unwrap_or_else(|| panic!("no status: {head}"));
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            })
        };
        let chunked = header("transfer-encoding").is_some_and(|value| value == "chunked");
        let length = header("content-length").and_then(|text| text.parse().ok());
        let body = if chunked {
            self.take_chunks()
        } else {
            self.take(length.unwrap_or(0)).expect("the body is whole")
        };
        HttpReply {
            status,
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    fn take_chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                    break end + 2;
                }
                assert!(self.fill(), "the connection ended within a body");
            };
            let line = self.take(end).expect("it is there");
            let line = String::from_utf8_lossy(&line);
            let length = usize::from_str_radix(line.trim(), 16);
            let length = length.unwrap_or_else(|error| panic!("{line:?}: {error}"));
            let chunk = self.take(length + 2).expect("the chunk is whole");
            if length == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..length]);
        }
    }

    /// Takes that many bytes; `None` if the connection ends first.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            if !self.fill() {
                return None;
            }
        }
        let rest = self.buffer.split_off(length);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    fn fill(&mut self) -> bool {
        let mut bytes = [0; 16 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(length) => {
                self.buffer.extend_from_slice(&bytes[..length]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{}: {error}", self.address),
        }
    }
}

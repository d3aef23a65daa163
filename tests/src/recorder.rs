//! Stands before a service of a model and keeps what it was asked, byte for byte.
//!
//! A double that keeps a journal of its own may keep only what it understood of a request.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http_request::HttpRequest;
use crate::loopback::Loopback;

/// Passes requests on to a service and its answers back, breaks included; stopped when it is dropped.
#[derive(Debug)]
pub struct Recorder {
    loopback: Loopback,
    incoming: Receiver<Recorded>,
    seen: Vec<Recorded>,
}

/// A request that was passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Where it went, without the address.
    pub path: String,
    /// Its body; null if that was no JSON.
    pub body: Value,
}

impl Recorder {
    /// Starts on a free port of this machine, in front of the service at that address.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn start(service: &str) -> Self {
        let (sender, incoming) = channel();
        let service = service.to_owned();
        let loopback =
            Loopback::start(move |stream| pass_on(stream, service.clone(), sender.clone()));
        Self {
            loopback,
            incoming,
            seen: Vec::new(),
        }
    }

    /// Where it listens, as `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        self.loopback.address().to_string()
    }

    /// All requests that have come so far, oldest first.
    pub fn requests(&mut self) -> &[Recorded] {
        self.seen.extend(self.incoming.try_iter());
        &self.seen
    }
}

/// Gives a connection of a client one to the service, and ends both when one of them ends.
async fn pass_on(mut client: TcpStream, service: String, seen: Sender<Recorded>) {
    let passed = match TcpStream::connect(service).await {
        Ok(mut service) => {
            let (mut from_client, mut to_client) = client.split();
            let (mut from_service, mut to_service) = service.split();
            tokio::select! {
                copied = tokio::io::copy(&mut from_service, &mut to_client) => copied.map(drop),
                sent = pass_requests(&mut from_client, &mut to_service, &seen) => sent,
            }
        }
        Err(error) => Err(error),
    };
    let _ = match passed {
        Ok(()) => client.shutdown().await,
        // What broke on that side breaks on this one.
        Err(_) => client.set_zero_linger(),
    };
}

/// Passes on one request after the other until the client has gone.
async fn pass_requests(
    client: &mut (impl AsyncRead + Unpin),
    service: &mut (impl AsyncWrite + Unpin),
    seen: &Sender<Recorded>,
) -> io::Result<()> {
    loop {
        let request = HttpRequest::read(client).await?;
        let path = request.line.split(' ').nth(1).unwrap_or_default();
        let _ = seen.send(Recorded {
            path: path.to_owned(),
            body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        });
        let mut head = format!("{}\r\n", request.line);
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        service.write_all(head.as_bytes()).await?;
        service.write_all(&request.body).await?;
    }
}

//! One connection of a client of the model: HTTP/1.1 by hand, so that every break is where the script wants it.

use std::future::pending;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Instant;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::answer::{Answer, Step};
use super::asked::Asked;
use super::{Behaviour, Seen};

/// Answers one request and closes.
pub(super) async fn serve(mut stream: TcpStream, behaviour: Behaviour, seen: Sender<Seen>) {
    let _ = stream.set_nodelay(true);
    let Ok(request) = read_request(&mut stream).await else {
        return;
    };
    let answer = respond(request, &behaviour, &seen);
    // A client that is gone is no fault of the model.
    let _ = write_answer(&mut stream, answer).await;
}

fn respond(request: HttpRequest, behaviour: &Behaviour, seen: &Sender<Seen>) -> Answer {
    if !request.line.starts_with("POST /v1/chat/completions ") {
        return Answer::error(
            404,
            "not_found",
            &format!("no such place: {}", request.line),
        );
    }
    let asked = Asked {
        body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
    };
    let refused = asked.check().err();
    let answer = match &refused {
        Some(why) => Answer::error(400, "invalid_request_error", why),
        None => behaviour(&asked),
    };
    let authorization = request.header("authorization");
    let _ = seen.send(Seen {
        at: Instant::now(),
        authorization,
        body: asked.body,
        refused,
    });
    answer
}

struct HttpRequest {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl HttpRequest {
    fn header(&self, name: &str) -> Option<String> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.clone())
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<HttpRequest> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let mut body = bytes.split_off(head_end);
    let head = String::from_utf8_lossy(&bytes);
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = HttpRequest {
        line,
        headers,
        body: Vec::new(),
    };
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok());
    let length: usize = length.unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    request.body = body;
    Ok(request)
}

async fn write_answer(stream: &mut TcpStream, answer: Answer) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    for step in answer.steps {
        match step {
            Step::Send(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend(bytes);
                chunk.extend(b"\r\n");
                stream.write_all(&chunk).await?;
            }
            Step::Wait(gate) => gate.passed().await,
            Step::Pause(time) => sleep(time).await,
            Step::Stall => return pending().await,
            Step::Reset => return stream.set_zero_linger(),
        }
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

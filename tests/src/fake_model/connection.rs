//! One connection of a client of the model: HTTP/1.1 by hand, so that every break is where the script wants it.

use std::future::pending;
use std::io;
use std::sync::mpsc::Sender;
use std::time::Instant;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::answer::{Answer, Step};
use super::asked::Asked;
use super::{Behaviour, Seen};
use crate::http_request::HttpRequest;

/// Answers one request and closes.
pub(super) async fn serve(mut stream: TcpStream, behaviour: Behaviour, seen: Sender<Seen>) {
    let _ = stream.set_nodelay(true);
    let Ok(request) = HttpRequest::read(&mut stream).await else {
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

async fn write_answer(stream: &mut TcpStream, answer: Answer) -> io::Result<()> {
    if let [Step::Stall, ..] = answer.steps.as_slice() {
        return pending().await;
    }
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

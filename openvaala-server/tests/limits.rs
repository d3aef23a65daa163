//! What clients may cost, as the configuration says.

use std::collections::BTreeSet;

use futures::{SinkExt, StreamExt};
use openvaala_protocol::rpc::method::ServerStatus;
use openvaala_protocol::rpc::params::server::StatusParams;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use crate::support::{LONG, Place, Raw, Running, challenge, upgrade};

async fn start(limits: Value) -> Running {
    let place = Place::new();
    place.write("openvaala.yaml", &json!({ "limits": limits }).to_string());
    Running::start_in(place).await
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

async fn create(raw: &mut Raw) -> Value {
    let created = raw.call("conversation/create", json!({})).await;
    created["result"]["conversation"]["id"].clone()
}

#[tokio::test]
async fn s_139_requests_that_come_too_fast_are_refused_with_the_time_to_wait() {
    let server = start(json!({ "requests_per_second": 20 })).await;
    let mut raw = server.raw().await;
    for _ in 0..100 {
        raw.request("server/status", json!({})).await;
    }
    let mut refused = 0;
    for _ in 0..100 {
        let answer = raw.receive().await;
        if answer.get("error").is_some() {
            let message = answer["error"]["message"].as_str().unwrap();
            assert_eq!(code(&answer), -32005, "{answer}");
            assert!(
                message.contains("more than 20 requests a second"),
                "{message}"
            );
            let wait = answer["error"]["data"]["retry_after_ms"].as_u64().unwrap();
            assert!((1..=1_001).contains(&wait), "{wait}");
            refused += 1;
        }
    }
    // `initialize` was one of the twenty; a slow machine gives time for some more.
    assert!((40..=81).contains(&refused), "{refused} were refused");
    let (other, _notices) = server.client().await;
    other.call::<ServerStatus>(StatusParams {}).await.unwrap();
    // What is refused costs nothing: soon it is taken again.
    let again = async { while code(&raw.call("server/status", json!({})).await) != 0 {} };
    timeout(LONG, again).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn s_130_a_message_of_many_frames_counts_as_a_whole() {
    let server = start(json!({ "message_kib": 64 })).await;
    let (other, _notices) = server.client().await;
    let mut raw = server.raw().await;
    let piece = vec![b' '; 60 << 10];
    for opcode in [Data::Text, Data::Continue] {
        let frame = Frame::message(piece.clone(), OpCode::Data(opcode), false);
        // The server may hang up before it has taken all of it.
        let _ = raw.socket.send(Message::Frame(frame)).await;
    }
    let frame = raw.closed().await.unwrap();
    assert_eq!(frame.code, CloseCode::Size);
    assert!(frame.reason.contains("65536 are taken"), "{}", frame.reason);
    other.call::<ServerStatus>(StatusParams {}).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn s_132_the_depth_that_is_taken_can_be_set() {
    let server = start(json!({ "message_depth": 16 })).await;
    let mut raw = server.raw().await;
    for (depth, expected) in [(16, -32602), (17, -32700)] {
        let params = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let method = "conversation/get";
        raw.send(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#
        ))
        .await;
        let answer = raw.receive().await;
        assert_eq!(code(&answer), expected, "{depth}: {answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn s_140_a_page_has_at_most_what_the_configuration_says() {
    let server = start(json!({ "page_items": 2 })).await;
    let mut raw = server.raw().await;
    let id = create(&mut raw).await;
    raw.call("conversation/subscribe", json!({ "conversation_id": id }))
        .await;
    let item = "0192d3f5-9000-7000-8000-000000000001";
    let content = json!([{ "type": "text", "text": "look around" }]);
    raw.request(
        "session/send",
        json!({ "conversation_id": id, "item_id": item, "content": content }),
    )
    .await;
    loop {
        let entry = raw.receive().await["params"]["entry"]["turn"]["turn"]["ended_at"].clone();
        if !entry.is_null() {
            break;
        }
    }
    for limit in [0, 1, 2, 3, 1_000_000_000_u32] {
        let params = json!({ "conversation_id": id, "limit": limit });
        let page = raw.call("session/items", params).await;
        let items = page["result"]["items"].as_array().unwrap().len();
        assert_eq!(items, limit.clamp(1, 2) as usize, "{limit}");
    }
    for limit in [
        json!(-1),
        json!(1e300),
        json!("all"),
        json!(10_000_000_000_u64),
    ] {
        let params = json!({ "conversation_id": id, "limit": limit });
        assert_eq!(code(&raw.call("session/items", params).await), -32602);
    }
    server.stop().await;
}

#[tokio::test]
async fn s_135_one_connection_too_many_is_closed_and_the_others_are_served() {
    let server = start(json!({ "connections": 3 })).await;
    let mut raw = Vec::new();
    for _ in 0..3 {
        raw.push(server.raw().await);
    }
    let mut more = TcpStream::connect(server.address).await.unwrap();
    let read = timeout(LONG, more.read_u8()).await.unwrap();
    assert!(read.is_err(), "{read:?}");
    for client in &mut raw {
        let status = client.call("server/status", json!({})).await;
        assert_eq!(status["result"]["clients"], 3);
    }
    // Once one has left there is room again.
    let mut left = raw.pop().unwrap();
    left.socket.close(None).await.unwrap();
    left.closed().await;
    drop(left);
    while raw[0].call("server/status", json!({})).await["result"]["clients"] != 2 {}
    server.raw().await;
    server.stop().await;
}

#[tokio::test]
async fn s_137_only_a_client_that_reads_nothing_is_disconnected() {
    let server = start(json!({ "queue_kib": 64, "unread_seconds": 1 })).await;
    let mut raw = server.raw().await;
    let id = create(&mut raw).await;
    let content = json!([{ "type": "text", "text": "long ".repeat(400_000) }]);
    let item = "0192d3f5-9000-7000-8000-000000000001";
    raw.call(
        "session/send",
        json!({ "conversation_id": id, "item_id": item, "content": content }),
    )
    .await;
    let mut deaf = server.raw().await;
    for client in [&mut raw, &mut deaf] {
        for _ in 0..20 {
            client
                .request("conversation/subscribe", json!({ "conversation_id": id }))
                .await;
        }
    }
    // It reads, if not much at once: it gets all 40 MB.
    let mut answers = 0;
    while answers < 20 {
        answers += usize::from(raw.receive().await.get("result").is_some());
    }
    while raw.call("server/status", json!({})).await["result"]["clients"] != 1 {}
    let mut read = 0;
    // What the system had taken is still read; then it ends.
    while let Some(Ok(message)) = timeout(LONG, deaf.socket.next()).await.unwrap() {
        read += message.len();
    }
    assert!(read < 40_000_000, "{read}");
    server.stop().await;
}

#[tokio::test]
async fn s_142_nothing_is_compressed() {
    let server = Running::start().await;
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    let proof = challenge(&mut tcp, server.address, &server.token).await;
    let lines = format!(
        "Authorization: OpenVaala {proof}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\
         Accept-Encoding: gzip, br, zstd\r\n"
    );
    tokio::io::AsyncWriteExt::write_all(&mut tcp, upgrade(server.address, &lines).as_bytes())
        .await
        .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(timeout(LONG, tcp.read_u8()).await.unwrap().unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(!head.contains("sec-websocket-extensions"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");

    let mut raw = server.raw().await;
    let mut frame = Frame::message(&b"a bomb"[..], OpCode::Data(Data::Text), true);
    frame.header_mut().rsv1 = true;
    raw.socket.send(Message::Frame(frame)).await.unwrap();
    assert_eq!(raw.closed().await.unwrap().code, CloseCode::Protocol);
    server.stop().await;
}

#[tokio::test]
async fn s_141_requests_with_one_id_are_both_answered_and_a_batch_is_refused_whole() {
    let server = Running::start().await;
    let mut raw = server.raw().await;
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"server/status"}"#;
    for _ in 0..2 {
        raw.send(request).await;
    }
    for _ in 0..2 {
        let answer = raw.receive().await;
        assert_eq!((&answer["id"], code(&answer)), (&json!(7), 0));
    }
    let create = r#"{"jsonrpc":"2.0","id":8,"method":"conversation/create"}"#;
    raw.send(format!("[{}]", vec![create; 100_000].join(",")))
        .await;
    let answer = raw.receive().await;
    assert_eq!((&answer["id"], code(&answer)), (&Value::Null, -32600));
    // Nothing is done that nobody could be told of.
    let shapes = [
        r#"{"jsonrpc":"2.0","method":"conversation/create"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
    ];
    for shape in shapes {
        raw.send(shape).await;
    }
    let wrong = [
        (json!({ "id": 1, "method": "server/status" }), -32600),
        (json!({ "jsonrpc": "2.0", "id": 1 }), -32600),
        (json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }), -32600),
        (
            json!({ "jsonrpc": "2.0", "id": [1], "method": "server/status" }),
            -32600,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "server/status", "params": 5 }),
            -32602,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "session/send", "params": {} }),
            -32602,
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "method": "server/status", "result": 1 }),
            -32600,
        ),
    ];
    let mut seen = BTreeSet::new();
    for (message, expected) in wrong {
        raw.send(message.to_string()).await;
        let answer = raw.receive().await;
        assert_eq!(code(&answer), expected, "{message}: {answer}");
        seen.insert(code(&answer));
    }
    assert_eq!(seen, BTreeSet::from([-32602, -32600]));
    let status = raw.call("server/status", json!({})).await;
    assert_eq!(status["result"]["open_conversations"], 0);
    server.stop().await;
}

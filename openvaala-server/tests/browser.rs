//! What web pages are let do.

use std::time::Duration;

use openvaala_protocol::rpc::ErrorCode;
use openvaala_protocol::{ENDPOINT, PROTOCOL_VERSION};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::support::{LONG, Raw, Running, initialize, request, upgrade};

/// A WebSocket as a page of the server opens it: with an origin and without a proof.
async fn page(server: &Running) -> Raw {
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    let origin = format!("Origin: http://{}\r\n", server.address);
    let (status, body) = request(&mut tcp, &upgrade(server.address, &origin)).await;
    assert_eq!(status, 101, "{body}");
    Raw::over(tcp).await
}

fn authenticate(token: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": "a", "method": "authenticate", "params": { "token": token } })
        .to_string()
}

#[tokio::test]
async fn a_page_of_the_server_shows_the_token_in_its_first_message() {
    let server = Running::start().await;
    let mut page = page(&server).await;
    page.send(authenticate(&server.token.to_hex())).await;
    let answer = page.receive().await;
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "a", "result": {} }));
    let answer = page.call("initialize", initialize(PROTOCOL_VERSION)).await;
    assert_eq!(answer["result"]["protocol_version"], PROTOCOL_VERSION);
    let created = page
        .call(
            "token/create",
            json!({ "name": "tablet", "rights": ["watch"] }),
        )
        .await;
    let tablet = created["result"]["token"].as_str().unwrap().to_owned();

    // A named token brings its own rights only.
    let mut second = self::page(&server).await;
    second.send(authenticate(&tablet)).await;
    assert!(second.receive().await["result"].is_object());
    second
        .call("initialize", initialize(PROTOCOL_VERSION))
        .await;
    let answer = second.call("token/list", json!({})).await;
    assert_eq!(answer["error"]["code"], ErrorCode::Forbidden.number());
    server.stop().await;
}

#[tokio::test]
async fn s_11_a_page_that_does_not_show_a_token_first_is_closed_and_nothing_runs() {
    let server = Running::start().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize(PROTOCOL_VERSION) });
    let shutdown = json!({ "jsonrpc": "2.0", "id": 1, "method": "server/shutdown", "params": {} });
    let digits = "0a".repeat(32);
    let table = [
        call.to_string(),
        shutdown.to_string(),
        authenticate(&digits),
        authenticate(&format!("nobody:{digits}")),
        authenticate(""),
        authenticate(&server.token.to_hex()[1..]),
        authenticate(&format!("{0}{0}", server.token.to_hex())),
        format!("[{}]", authenticate(&server.token.to_hex())),
        "no JSON".to_owned(),
        authenticate(&"a".repeat(4_000)),
    ];
    for first in table {
        let mut page = page(&server).await;
        page.send(first.clone()).await;
        let frame = page.closed().await.unwrap();
        assert_eq!(u16::from(frame.code), 1008, "{first}");
        assert!(!frame.reason.contains(&server.token.to_hex()), "{frame:?}");
    }
    // The server is there, and nobody counts as a client.
    let mut raw = server.raw().await;
    let status = raw.call("server/status", json!({})).await;
    assert_eq!(status["result"]["clients"], 1);
    server.stop().await;
}

#[tokio::test]
async fn s_11_a_page_that_stays_silent_is_closed_within_five_seconds() {
    let server = Running::start().await;
    let mut page = page(&server).await;
    let start = Instant::now();
    let frame = timeout(LONG, page.closed()).await.unwrap().unwrap();
    assert_eq!(frame.reason.as_str(), "the first message took too long");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    server.stop().await;
}

#[tokio::test]
async fn s_08_s_09_no_foreign_page_gets_an_answer_that_it_could_read_or_use() {
    let server = Running::start().await;
    let address = server.address;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"server/shutdown"}"#;
    let length = body.len();
    let foreign = "Origin: https://evil.example\r\n";
    let table = [
        (
            format!("OPTIONS {ENDPOINT}"),
            format!("{foreign}Access-Control-Request-Method: POST\r\n"),
            "",
            403,
        ),
        ("GET /healthz".to_owned(), foreign.to_owned(), "", 403),
        ("GET /readyz".to_owned(), foreign.to_owned(), "", 403),
        (
            format!("POST {ENDPOINT}"),
            format!("{foreign}Content-Type: text/plain\r\nContent-Length: {length}\r\n"),
            body,
            403,
        ),
        // A form of a page without an origin, as some browsers send it.
        (
            format!("POST {ENDPOINT}"),
            format!("Content-Type: text/plain\r\nContent-Length: {length}\r\n"),
            body,
            404,
        ),
        (
            format!("POST {ENDPOINT}"),
            format!(
                "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
            ),
            body,
            404,
        ),
    ];
    for (line, headers, body, expected) in table {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n{body}");
        // `request` sees that no answer allows another origin anything.
        let (status, _) = request(&mut tcp, &head).await;
        assert_eq!(status, expected, "{line} {headers}");
    }
    server.raw().await;
    server.stop().await;
}

#[tokio::test]
async fn s_22_a_cookie_is_no_proof_and_none_is_set() {
    let server = Running::start().await;
    let address = server.address;
    let token = server.token.to_hex();
    for path in [
        ENDPOINT.to_owned(),
        format!("{ENDPOINT}?token={token}"),
        "/healthz".to_owned(),
    ] {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let lines = format!("Cookie: token={token}; openvaala={token}\r\n");
        let head = upgrade(address, &lines).replace(ENDPOINT, &path);
        let (status, _) = request(&mut tcp, &head).await;
        // `request` sees that no answer sets a cookie.
        assert_eq!(status, if path == "/healthz" { 200 } else { 401 }, "{path}");
    }
    server.stop().await;
}

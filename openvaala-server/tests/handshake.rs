//! Who is let in.

use std::net::SocketAddr;

use openvaala_protocol::client::{Client, ClientError, ConnectOptions};
use openvaala_protocol::handshake::{CHALLENGE_PATH, NONCE_HEADER, Nonce, Token};
use openvaala_protocol::rpc::params::server::Peer;
use openvaala_protocol::{ENDPOINT, PROTOCOL_VERSION};
use pretty_assertions::assert_eq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{LONG, Running, challenge, request, upgrade};

#[tokio::test]
async fn s_01_every_route_but_health_and_challenge_needs_the_proof() {
    let server = Running::start().await;
    let address = server.address;
    until_ready(address).await;
    let table = [
        ("GET", "/healthz", 200, "ok"),
        ("GET", "/readyz", 200, "ready"),
        ("POST", "/healthz", 404, "there is nothing here"),
        ("GET", "/", 404, "there is nothing here"),
        ("GET", "/web/v1/", 404, "there is nothing here"),
        (
            "GET",
            "/api/v1/openvaala/../../etc/passwd",
            404,
            "there is nothing here",
        ),
        ("POST", ENDPOINT, 404, "there is nothing here"),
        ("OPTIONS", ENDPOINT, 404, "there is nothing here"),
        (
            "GET",
            ENDPOINT,
            401,
            "ask for a challenge first, on this connection",
        ),
    ];
    for (method, path, status, body) in table {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
        let answer = request(&mut tcp, &head).await;
        assert_eq!(answer, (status, body.to_owned()), "{method} {path}");
    }
    server.stop().await;
}

/// Asks until the server is ready, and sees that it says nothing but one word before.
async fn until_ready(address: SocketAddr) {
    let ready = async {
        loop {
            let mut tcp = TcpStream::connect(address).await.unwrap();
            let head = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
            match request(&mut tcp, &head).await {
                (200, body) => return assert_eq!(body, "ready"),
                early => assert_eq!(early, (503, "starting".to_owned())),
            }
        }
    };
    timeout(LONG, ready).await.unwrap();
}

#[tokio::test]
async fn s_01_a_wrong_a_missing_or_a_doubled_proof_is_refused() {
    let server = Running::start().await;
    let address = server.address;
    let other = Token::generate().unwrap();
    let no_proof = "the header Authorization must hold one proof: OpenVaala <64 hex digits>";
    let wrong = "the proof is wrong: it was made with another token";
    let right = |proof: &str| format!("Authorization: OpenVaala {proof}\r\n");
    type Lines = fn(&str, &Token) -> String;
    let table: [(&str, Lines, &str); 7] = [
        ("no header", |_, _| String::new(), no_proof),
        ("empty", |_, _| "Authorization: \r\n".to_owned(), no_proof),
        (
            "another scheme",
            |proof, _| format!("Authorization: Bearer {proof}\r\n"),
            no_proof,
        ),
        (
            "cut",
            |proof, _| format!("Authorization: OpenVaala {}\r\n", &proof[..63]),
            no_proof,
        ),
        (
            "the token itself",
            |_, token| format!("Authorization: OpenVaala {}\r\n", token.to_hex()),
            wrong,
        ),
        (
            "a guess",
            |_, _| format!("Authorization: OpenVaala {}\r\n", "0".repeat(64)),
            wrong,
        ),
        (
            "twice",
            |proof, _| format!("Authorization: OpenVaala {proof}\r\n").repeat(2),
            no_proof,
        ),
    ];
    for (name, lines, reason) in table {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let proof = challenge(&mut tcp, address, &server.token).await;
        let lines = lines(&proof, &server.token);
        let answer = request(&mut tcp, &upgrade(address, &lines)).await;
        assert_eq!(answer, (401, reason.to_owned()), "{name}");
        // A second try on the same challenge is refused, right or wrong.
        let answer = request(&mut tcp, &upgrade(address, &right(&proof))).await;
        let reason = "this challenge was used before: open a new connection";
        assert_eq!(answer, (401, reason.to_owned()), "{name}");
    }
    let peer = Peer {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    let error = Client::connect(ConnectOptions::new(address, other, peer))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::WrongServer { .. }), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn s_01_a_proof_is_worth_nothing_on_another_connection() {
    let server = Running::start().await;
    let address = server.address;
    let mut first = TcpStream::connect(address).await.unwrap();
    let proof = challenge(&mut first, address, &server.token).await;
    let lines = format!("Authorization: OpenVaala {proof}\r\n");

    let mut second = TcpStream::connect(address).await.unwrap();
    let answer = request(&mut second, &upgrade(address, &lines)).await;
    assert_eq!(
        answer,
        (
            401,
            "ask for a challenge first, on this connection".to_owned()
        )
    );

    let mut third = TcpStream::connect(address).await.unwrap();
    challenge(&mut third, address, &server.token).await;
    let answer = request(&mut third, &upgrade(address, &lines)).await;
    assert_eq!(
        answer,
        (
            401,
            "the proof is wrong: it was made with another token".to_owned()
        )
    );

    let nonce = Nonce::generate().unwrap();
    let again = format!(
        "GET {CHALLENGE_PATH} HTTP/1.1\r\nHost: {address}\r\n{NONCE_HEADER}: {nonce}\r\n\r\n"
    );
    let answer = request(&mut first, &again).await;
    assert_eq!(
        answer,
        (400, "one challenge a connection: open a new one".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn s_06_only_the_own_address_and_localhost_are_taken_as_host() {
    let server = Running::start().await;
    let (address, port) = (server.address, server.address.port());
    let table = [
        (format!("Host: 127.0.0.1:{port}"), 200),
        (format!("Host: localhost:{port}"), 200),
        (format!("Host: LOCALHOST:{port}"), 200),
        (format!("Host: evil.example:{port}"), 403),
        (format!("Host: 127.0.0.1.nip.io:{port}"), 403),
        (format!("Host: localhost.evil.example:{port}"), 403),
        ("Host: 127.0.0.1".to_owned(), 403),
        ("Host: 127.0.0.1:1".to_owned(), 403),
        (format!("Host: 127.0.0.1:{port}\r\nHost: evil.example"), 403),
        ("X-Nothing: 1".to_owned(), 403),
    ];
    for (host, status) in table {
        for path in ["/healthz", ENDPOINT] {
            let mut tcp = TcpStream::connect(address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\n{host}\r\n\r\n");
            let status = if status == 200 && path == ENDPOINT {
                401
            } else {
                status
            };
            assert_eq!(request(&mut tcp, &head).await.0, status, "{host} {path}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn s_03_s_04_a_foreign_page_is_refused_even_with_the_right_proof() {
    let server = Running::start().await;
    let address = server.address;
    let origins = [
        "https://evil.example",
        "null",
        "file://",
        "http://localhost:9999",
        "chrome-extension://x",
        &format!("https://{address}"),
        &format!("http://{address}.evil.example"),
        &format!("http://{address}/"),
        &format!("http://127.0.0.1.nip.io:{}", address.port()),
        &format!("http://localhost.evil.example:{}", address.port()),
        &format!("http://{address}\r\nOrigin: http://{address}"),
        "",
    ];
    for origin in origins {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let proof = challenge(&mut tcp, address, &server.token).await;
        let lines = format!("Authorization: OpenVaala {proof}\r\nOrigin: {origin}\r\n");
        let answer = request(&mut tcp, &upgrade(address, &lines)).await;
        assert_eq!(
            answer,
            (
                403,
                "requests of foreign web pages are not taken".to_owned()
            ),
            "{origin}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_is_no_upgrade_is_told_so() {
    let server = Running::start().await;
    let address = server.address;
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let proof = challenge(&mut tcp, address, &server.token).await;
    let head = format!(
        "GET {ENDPOINT} HTTP/1.1\r\nHost: {address}\r\nAuthorization: OpenVaala {proof}\r\n\r\n"
    );
    let answer = request(&mut tcp, &head).await;
    assert_eq!(
        answer,
        (426, "this is a WebSocket of version 13".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn s_134_s_135_a_client_is_served_while_hundreds_of_connections_never_finish_their_request() {
    let server = Running::start().await;
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut tcp = TcpStream::connect(server.address).await.unwrap();
        tcp.write_all(b"GET /heal").await.unwrap();
        slow.push(tcp);
    }
    let (client, _notices) = timeout(LONG, server.client()).await.unwrap();
    assert_eq!(client.initialized().protocol_version, PROTOCOL_VERSION);
    // The oldest had to go; an ended connection reads as its end or as a reset.
    let mut byte = [0];
    let read = timeout(LONG, slow[0].read(&mut byte)).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    server.stop().await;
}

#[tokio::test]
async fn s_134_a_request_that_never_ends_is_ended_within_its_limit() {
    let server = Running::start().await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: ")
        .await
        .unwrap();
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    challenge(&mut idle, server.address, &server.token).await;
    for tcp in [&mut silent, &mut slow, &mut idle] {
        let mut rest = Vec::new();
        let read = timeout(LONG, tcp.read_to_end(&mut rest)).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    server.stop().await;
}

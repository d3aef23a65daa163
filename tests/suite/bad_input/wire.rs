//! What a client may send wrongly.

use openvaala_protocol::PROTOCOL_VERSION;
use openvaala_protocol::handshake::Token;
use openvaala_tests::raw_client::{RawClient, RawMessage};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const NO_CONVERSATION: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";

fn open(server: &Server) -> RawClient {
    RawClient::open(&server.discovery.address, &server.discovery.token())
}

fn initialized(server: &Server) -> RawClient {
    let mut client = open(server);
    let answer = initialize(&mut client, PROTOCOL_VERSION);
    assert_eq!(
        answer["result"]["protocol_version"], PROTOCOL_VERSION,
        "{answer}"
    );
    client
}

fn initialize(client: &mut RawClient, version: &str) -> Value {
    let peer = json!({ "name": "raw", "version": "1" });
    client.call(
        "initialize",
        &json!({ "protocol_version": version, "client": peer }),
    )
}

/// The code and the message of an error.
#[track_caller]
fn error(answer: &Value) -> (i64, String) {
    let error = &answer["error"];
    let code = error["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no error: {answer}"));
    (code, error["message"].as_str().unwrap().to_owned())
}

#[track_caller]
fn expect_error(answer: &Value, code: i64, texts: &[&str]) {
    let (found, message) = error(answer);
    assert_eq!(found, code, "{message}");
    for text in texts {
        assert!(message.contains(text), "{text:?} is not in {message:?}");
    }
}

#[test]
fn an_unknown_method_is_named() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut client = initialized(&server);
    let answer = client.call("conversation/fly", &json!({}));
    expect_error(&answer, -32601, &["conversation/fly"]);
    // The connection goes on.
    assert!(client.call("server/status", &json!({}))["result"]["pid"].is_u64());
}

#[test]
fn wrong_params_are_named_with_method_and_field() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut client = initialized(&server);
    for (method, params, texts) in [
        (
            "conversation/get",
            json!({}),
            ["conversation/get", "conversation_id"],
        ),
        (
            "conversation/get",
            json!({ "conversation_id": "not an id" }),
            ["conversation/get", "not an id"],
        ),
        (
            "conversation/list",
            json!({ "limmit": 5 }),
            ["conversation/list", "limmit"],
        ),
        (
            "session/send",
            json!({ "conversation_id": NO_CONVERSATION }),
            ["session/send", "item_id"],
        ),
        ("conversation/list", json!([5]), ["conversation/list", ""]),
    ] {
        expect_error(&client.call(method, &params), -32602, &texts);
    }
    let absent = json!({ "conversation_id": NO_CONVERSATION });
    let answer = client.call("conversation/get", &absent);
    expect_error(&answer, -32002, &[NO_CONVERSATION]);
}

#[test]
fn s_132_what_is_no_request_gets_an_error_and_the_connection_lives() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut client = initialized(&server);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/status","params":{deep}}}"#);
    for (text, code) in [
        ("{", -32700),
        ("", -32700),
        ("null", -32600),
        ("[]", -32600),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"server/status"}"#,
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"server/status"}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (deep_params.as_str(), -32700),
    ] {
        client.send_text(text);
        let (found, message) = error(&client.read_response());
        let shown: String = text.chars().take(80).collect();
        assert_eq!(found, code, "{shown}: {message}");
    }
    assert!(client.call("server/status", &json!({}))["result"]["pid"].is_u64());
}

#[test]
fn nothing_is_answered_before_initialize() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut client = open(&server);
    let answer = client.call("conversation/list", &json!({}));
    expect_error(&answer, -32600, &["initialize"]);
}

#[test]
fn s_01_a_wrong_token_is_refused_and_the_right_one_still_works() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let address = &server.discovery.address;
    let wrong = Token::generate().unwrap();
    let reply = RawClient::connect(address).upgrade(&wrong, &[]);
    assert_eq!(reply.status, 401, "{reply:?}");
    assert!(!reply.body.is_empty(), "the reason is missing");
    // Without any proof, and with a header that is none.
    let upgrade = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for authorization in [
        None,
        Some("Bearer abc"),
        Some(server.discovery.token.as_str()),
    ] {
        let mut headers = upgrade.to_vec();
        headers.extend(authorization.map(|value| ("Authorization", value)));
        let reply = RawClient::connect(address).get(openvaala_protocol::ENDPOINT, &headers);
        assert_eq!(reply.status, 401, "{reply:?}");
    }
    // The server shows that it holds the right token, and not just any.
    assert!(RawClient::server_holds(address, &server.discovery.token()));
    assert!(!RawClient::server_holds(address, &wrong));
    drop(initialized(&server));
}

#[test]
fn s_03_s_06_requests_of_web_pages_and_for_other_hosts_are_refused() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let token = server.discovery.token();
    let address = &server.discovery.address;
    let evil = RawClient::connect(address).upgrade(&token, &[("Origin", "https://evil.example")]);
    assert_eq!(evil.status, 403, "{evil:?}");
    let port = address.rsplit(':').next().unwrap();
    let host = format!("evil.example:{port}");
    let reply = RawClient::connect(address).get("/healthz", &[("Host", &host)]);
    assert_eq!(reply.status, 403, "{reply:?}");
}

#[test]
fn another_version_is_refused_with_the_way_out_and_can_still_stop_the_server() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut client = open(&server);
    let answer = initialize(&mut client, "9.9");
    expect_error(
        &answer,
        -32600,
        &["9.9", PROTOCOL_VERSION, "openvaala serve stop"],
    );
    let answer = client.call("server/status", &json!({}));
    assert_eq!(error(&answer).0, -32600, "{answer}");
    let answer = client.call("server/shutdown", &json!({}));
    assert_eq!(answer["result"]["pid"], server.pid());
    wait::until("the end of the server", || {
        match sandbox.servers().as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        }
    });
}

#[test]
fn s_130_a_message_that_is_too_large_ends_that_connection_alone() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut other = initialized(&server);
    let mut client = initialized(&server);
    // The server may close while this is still being written.
    let _ = client.send_frame(0x81, &vec![b' '; (16 << 20) + 1]);
    let end = client.read_message();
    assert!(
        matches!(end, RawMessage::Close(1009) | RawMessage::Ended),
        "{end:?}"
    );
    assert!(other.call("server/status", &json!({}))["result"]["pid"].is_u64());
}

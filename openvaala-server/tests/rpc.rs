//! The envelope, the order of things, and what cannot be taken.

use std::time::Duration;

use futures::SinkExt;
use openvaala_protocol::client::shut_down;
use openvaala_protocol::rpc::method::{ProviderList, ProviderTest, ServerStatus};
use openvaala_protocol::rpc::params::provider;
use openvaala_protocol::rpc::params::server::StatusParams;
use openvaala_protocol::rpc::{MAX_REQUEST_BYTES, METHODS};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::support::{LONG, Place, Running, initialize};

/// Code and message of an error.
fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (
        error["code"].as_i64().unwrap_or_default(),
        error["message"].as_str().unwrap_or_default(),
    )
}

#[tokio::test]
async fn initialize_comes_first_and_once() {
    let server = Running::start().await;
    let mut raw = server.raw_new().await;
    for method in METHODS
        .iter()
        .map(|method| method.name)
        .filter(|name| *name != "initialize")
    {
        let answer = raw.call(method, json!({})).await;
        assert_eq!(
            error(&answer),
            (-32600, "send `initialize` first"),
            "{method}"
        );
    }
    let answer = raw
        .call(
            "initialize",
            initialize(openvaala_protocol::PROTOCOL_VERSION),
        )
        .await;
    assert_eq!(
        answer["result"]["default_model"],
        json!({ "provider": "demo", "model": "demo" })
    );
    let notice = answer["result"]["notice"].as_str().unwrap();
    assert!(
        notice.contains("no AI") && notice.contains("openvaala provider add"),
        "{notice}"
    );
    let answer = raw
        .call(
            "initialize",
            initialize(openvaala_protocol::PROTOCOL_VERSION),
        )
        .await;
    assert_eq!(
        error(&answer),
        (-32600, "this connection is initialized already")
    );
    server.stop().await;
}

#[tokio::test]
async fn after_a_version_mismatch_only_shutdown_works() {
    let server = Running::start().await;
    let mut raw = server.raw_new().await;
    let answer = raw.call("initialize", initialize("99.9")).await;
    let (code, message) = error(&answer);
    assert_eq!(code, -32600);
    for part in ["0.1", "99.9", "openvaala serve stop"] {
        assert!(message.contains(part), "{message}");
    }
    for method in ["server/status", "conversation/list", "initialize"] {
        let answer = raw.call(method, json!({})).await;
        let (code, message) = error(&answer);
        assert_eq!(
            (code, message.contains("only `server/shutdown` works")),
            (-32600, true),
            "{method}"
        );
    }
    let answer = raw.call("server/shutdown", json!({})).await;
    assert_eq!(answer["result"], json!({ "pid": std::process::id() }));
    timeout(LONG, server.task).await.unwrap().unwrap();
}

#[tokio::test]
async fn unknown_methods_and_wrong_params_name_what_is_wrong() {
    let server = Running::start().await;
    let mut raw = server.raw().await;
    let answer = raw.call("conversation/destroy", json!({})).await;
    assert_eq!(error(&answer).0, -32601);
    assert!(error(&answer).1.contains("conversation/destroy"));
    let table = [
        (
            "server/status",
            json!({ "verbose": true }),
            "unknown field `verbose`",
        ),
        (
            "conversation/get",
            json!({}),
            "missing field `conversation_id`",
        ),
        (
            "conversation/get",
            json!({ "conversation_id": "../../etc" }),
            "is no conversation id",
        ),
        (
            "session/send",
            json!({ "conversation_id": 1 }),
            "invalid type: integer",
        ),
        ("session/items", json!([]), "params of session/items"),
    ];
    for (method, params, part) in table {
        let answer = raw.call(method, params).await;
        let (code, message) = error(&answer);
        assert_eq!(
            (code, message.contains(part)),
            (-32602, true),
            "{method}: {message}"
        );
    }
    let id = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
    let answer = raw
        .call("conversation/get", json!({ "conversation_id": id }))
        .await;
    assert_eq!(
        error(&answer),
        (-32002, format!("there is no conversation {id}").as_str())
    );
    let params = json!({ "model": { "provider": "acme", "model": "x" } });
    let answer = raw.call("conversation/create", params).await;
    assert_eq!(
        error(&answer),
        (
            -32602,
            r#"there is no model provider "acme"; there are: demo"#
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn s_141_a_thousand_frames_of_garbage_are_answered_and_change_nothing() {
    let server = Running::start().await;
    let mut raw = server.raw().await;
    let deep = "[".repeat(100_000);
    let garbage = [
        ("", Some(-32700)),
        ("{", Some(-32700)),
        ("null", Some(-32600)),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/status\"}]",
            Some(-32600),
        ),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"server/status\"}",
            Some(-32600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"server/status\"}",
            Some(-32600),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"server/status\"}",
            Some(-32600),
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}", None),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"server/shutdown\"}", None),
        (deep.as_str(), Some(-32600)),
    ];
    for round in 0..100 {
        for (text, code) in garbage {
            raw.send(text).await;
            if let Some(code) = code {
                let answer = raw.receive().await;
                assert_eq!(error(&answer).0, code, "round {round}: {text:.40}");
            }
        }
    }
    raw.socket
        .send(Message::binary(vec![1, 2, 3]))
        .await
        .unwrap();
    let answer = raw.receive().await;
    assert_eq!(error(&answer).0, -32600);
    assert_eq!(
        raw.call("server/status", json!({})).await["result"]["clients"],
        1
    );
    server.stop().await;
}

#[tokio::test]
async fn s_132_deep_params_are_refused_without_an_overflow() {
    let server = Running::start().await;
    let mut raw = server.raw().await;
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    raw.send(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/status\",\"params\":{deep}}}"
    ))
    .await;
    let answer = raw.receive().await;
    assert!(
        matches!(error(&answer).0, -32700 | -32602 | -32600),
        "{answer}"
    );
    assert_eq!(
        raw.call("server/status", json!({})).await["result"]["clients"],
        1
    );
    server.stop().await;
}

#[tokio::test]
async fn s_130_a_message_over_the_limit_closes_with_1009_and_others_are_served() {
    let server = Running::start().await;
    let (other, _notices) = server.client().await;
    let mut raw = server.raw().await;
    let text = "x".repeat(MAX_REQUEST_BYTES + 1);
    // The server may hang up before it has taken all of it.
    let _ = raw.socket.send(Message::text(text)).await;
    let frame = raw.closed().await.unwrap();
    assert_eq!(frame.code, CloseCode::Size);
    assert!(frame.reason.contains("16777216"), "{}", frame.reason);
    let status = other.call::<ServerStatus>(StatusParams {}).await.unwrap();
    assert_eq!(status.address, server.address.to_string());
    server.stop().await;
}

#[tokio::test]
async fn s_139_more_requests_at_once_than_are_worked_on_are_refused_as_overloaded() {
    // A model server that takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    let text = format!("type: openai_chat\nbase_url: {url}\ndefault_model: m\n");
    place.write("providers/silent.yaml", &text);
    let server = Running::start_in(place).await;
    let mut raw = server.raw().await;
    for _ in 0..64 {
        raw.request("provider/test", json!({ "name": "silent" }))
            .await;
    }
    let answer = raw.call("server/status", json!({})).await;
    assert_eq!(
        error(&answer),
        (
            -32005,
            "64 requests of this client are worked on: wait for some of them"
        )
    );
    let (other, _notices) = server.client().await;
    assert_eq!(
        other
            .call::<ServerStatus>(StatusParams {})
            .await
            .unwrap()
            .clients,
        2
    );
    server.stop().await;
}

#[tokio::test]
async fn a_client_of_the_protocol_can_stop_the_server() {
    let server = Running::start().await;
    let (client, mut notices) = server.client().await;
    let result = shut_down(server.connect_options(), Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(result.pid, std::process::id());
    let notice = timeout(LONG, notices.recv()).await.unwrap().unwrap();
    assert_eq!(
        (notice.name(), notice.params().unwrap().get()),
        ("server/stopping", r#"{"reason":"a client asked for it"}"#)
    );
    timeout(LONG, server.task).await.unwrap().unwrap();
    timeout(LONG, client.closed()).await.unwrap();
}

#[tokio::test]
async fn providers_are_listed_with_their_origin_and_tested() {
    let place = Place::new();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = format!(
        "type: openai_chat\nbase_url: http://{nobody}/v1\napi_key: sk-canary\ndefault_model: m\n"
    );
    place.write("providers/acme.yaml", &text);
    place.write(
        "providers/other.yaml",
        &text.replace("openai_chat", "openai_responses"),
    );
    place.write("openvaala.yaml", "default_model: {provider: demo}\n");
    let server = Running::start_in(place).await;
    let (client, _notices) = server.client().await;
    let list = client
        .call::<ProviderList>(provider::ListParams {})
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(list).unwrap(),
        json!({
            "default_model": { "provider": "demo", "model": "demo" },
            "providers": [
                {
                    "name": "acme", "type": "openai_chat", "base_url": format!("http://{nobody}/v1"),
                    "default_model": "m", "origin": "providers/acme.yaml",
                },
                {
                    "name": "demo", "type": "demo", "base_url": null,
                    "default_model": "demo", "origin": "built in",
                },
                {
                    "name": "other", "type": "openai_responses", "base_url": format!("http://{nobody}/v1"),
                    "default_model": "m", "origin": "providers/other.yaml",
                },
            ],
        })
    );
    let test = |name: &str| {
        let params = provider::TestParams {
            name: name.to_owned(),
            model: None,
        };
        client.call::<ProviderTest>(params)
    };
    assert!(test("demo").await.unwrap().ok);
    let acme = test("acme").await.unwrap();
    assert_eq!(
        (acme.ok, acme.message.contains(&nobody.to_string())),
        (false, true),
        "{}",
        acme.message
    );
    assert!(!acme.message.contains("canary"));
    let error = test("nobody").await.unwrap_err();
    assert!(
        error.to_string().contains("there are: acme, demo, other"),
        "{error}"
    );
    server.stop().await;
}

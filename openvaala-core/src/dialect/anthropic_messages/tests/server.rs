//! The provider against a real HTTP server.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::dialect::anthropic_messages::{AnthropicMessages, AnthropicMessagesOptions};
use crate::dialect::http::test_server::{Script, TestServer};
use crate::dialect::http::{HttpOptions, Secret, default_client};
use crate::dialect::test_answer::{self, Answer, fixture, question, shown};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelProvider};

const KEY: &str = "sk-ant-canary";

fn options(url: &str) -> HttpOptions {
    HttpOptions::new(default_client().unwrap(), url)
        .with_api_key(Secret::new(KEY))
        .with_idle_timeout(Duration::from_millis(200))
}

fn provider(http: HttpOptions) -> AnthropicMessages {
    AnthropicMessages::new(AnthropicMessagesOptions::new(http)).unwrap()
}

async fn ask(http: HttpOptions) -> Answer {
    test_answer::ask(&provider(http), question("claude")).await
}

async fn error_of(script: Script) -> ModelError {
    let server = TestServer::start(script).await;
    ask(options(&server.url())).await.1.unwrap()
}

#[tokio::test]
async fn a_recorded_answer_comes_over_the_network_as_it_is() {
    let bytes = fixture("aimock-messages-tools2");
    let pieces = bytes.chunks(7).map(<[u8]>::to_vec);
    let script = pieces.fold(Script::events(), |script, piece| script.send(piece));
    let mut server = TestServer::start(script).await;
    assert_eq!(
        shown(ask(options(&server.url())).await),
        shown(super::read(&bytes))
    );
    let seen = server.seen().await;
    assert_eq!(seen.uri, "/v1/messages");
    assert_eq!(seen.headers["x-api-key"], KEY);
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    assert!(!seen.headers.contains_key("authorization"));
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(
        (&body["max_tokens"], &body["stream"]),
        (&32_000.into(), &true.into())
    );
}

#[tokio::test]
async fn headers_of_the_options_win_over_those_of_the_dialect() {
    let mut server = TestServer::start(Script::events()).await;
    let http = HttpOptions::new(default_client().unwrap(), server.url())
        .with_header("Anthropic-Version", Secret::new("2030-01-01"))
        .with_header("Authorization", Secret::new("Bearer other"));
    ask(http).await;
    let seen = server.seen().await;
    assert_eq!(seen.headers["anthropic-version"], "2030-01-01");
    assert_eq!(seen.headers["authorization"], "Bearer other");
    assert!(!seen.headers.contains_key("x-api-key"));
}

#[test]
fn what_is_missing_of_the_address_is_added() {
    for (base, place) in [
        (
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1/messages",
        ),
        ("http://h/", "http://h/v1/messages"),
        ("http://h/v1", "http://h/v1/messages"),
        ("http://h/v1/", "http://h/v1/messages"),
        ("http://h/v1/messages", "http://h/v1/messages"),
        ("http://h/anthropic", "http://h/anthropic/v1/messages"),
        (
            "http://h/anthropic/v1?beta=true",
            "http://h/anthropic/v1/messages",
        ),
    ] {
        assert_eq!(provider(options(base)).endpoint.place(), place);
    }
}

#[tokio::test]
async fn the_end_of_the_connection_is_not_waited_for_after_message_stop() {
    let script = Script::events()
        .send(fixture("aimock-messages-text"))
        .stall();
    let server = TestServer::start(script).await;
    let (events, error) = ask(options(&server.url())).await;
    assert!(error.is_none(), "{error:?}");
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
}

#[tokio::test]
async fn m_20_every_way_of_breaking_off_is_a_connection_error() {
    let cut = fixture("aimock-slow-messages-cut");
    let script = || Script::events().send(cut.clone());
    for script in [
        script(),
        script().reset(),
        script().stall(),
        script().send("data: {\"typ"),
        Script::events(),
    ] {
        let error = error_of(script.clone()).await;
        assert_eq!(error.kind, ModelErrorKind::Connection, "{script:?}");
    }
}

#[tokio::test]
async fn m_16_garbage_is_a_bad_answer() {
    let garbage = Script::events().send("data: \u{0}\u{1}garbage\n\n");
    assert_eq!(error_of(garbage).await.kind, ModelErrorKind::BadAnswer);
}

#[tokio::test]
async fn recorded_errors_have_their_kinds() {
    for (name, status, kind) in [
        ("aimock-messages-err429", 429, ModelErrorKind::RateLimited),
        ("aimock-messages-err529", 529, ModelErrorKind::Unavailable),
        (
            "litellm-mock-messages-err429",
            429,
            ModelErrorKind::RateLimited,
        ),
        (
            "litellm-mock-messages-err500",
            500,
            ModelErrorKind::Unavailable,
        ),
        (
            "litellm-over-anthropic-messages-err529",
            529,
            ModelErrorKind::Unavailable,
        ),
        (
            "litellm-over-openai-chat-messages-cut",
            500,
            ModelErrorKind::Unavailable,
        ),
    ] {
        let error = error_of(Script::status(status).send(fixture(name))).await;
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{name}");
    }
}

#[tokio::test]
async fn s_19_a_service_that_echoes_the_key_does_not_show_it() {
    let echo = format!(
        "{{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"x-api-key {KEY} is odd\"}}}}"
    );
    let within = Script::events().send(format!("event: error\ndata: {echo}\n\n"));
    for script in [Script::status(401).send(echo), within] {
        let error = error_of(script).await;
        assert!(
            error.message.contains("x-api-key [secret] is odd"),
            "{error}"
        );
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
}

#[test]
fn the_account_is_a_hash_of_the_key() {
    let provider = provider(options("http://h"));
    assert_eq!(provider.account().unwrap().len(), 16);
    assert!(!format!("{provider:?}").contains(KEY), "{provider:?}");
}

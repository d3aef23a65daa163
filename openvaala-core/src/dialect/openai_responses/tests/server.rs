//! The provider against a real HTTP server.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::dialect::http::test_server::{Script, TestServer};
use crate::dialect::http::{HttpOptions, Secret, default_client};
use crate::dialect::openai_responses::{OpenAiResponses, OpenAiResponsesOptions};
use crate::dialect::test_answer::{self, Answer, fixture, question, shown};
use crate::model::{ModelErrorKind, ModelEvent, ModelProvider};

fn provider(server: &TestServer) -> OpenAiResponses {
    let http = HttpOptions::new(default_client().unwrap(), server.url())
        .with_api_key(Secret::new("sk-canary"))
        .with_idle_timeout(Duration::from_millis(200));
    OpenAiResponses::new(OpenAiResponsesOptions::new(http)).unwrap()
}

async fn ask(server: &TestServer) -> Answer {
    test_answer::ask(&provider(server), question("gpt")).await
}

async fn error_of(script: Script) -> ModelErrorKind {
    let server = TestServer::start(script).await;
    ask(&server).await.1.unwrap().kind
}

#[tokio::test]
async fn a_recorded_answer_comes_over_the_network_as_it_is() {
    let bytes = fixture("aimock-responses-tools2");
    let pieces = bytes.chunks(7).map(<[u8]>::to_vec);
    let script = pieces.fold(Script::events(), |script, piece| script.send(piece));
    let mut server = TestServer::start(script).await;
    assert_eq!(shown(ask(&server).await), shown(super::read(&bytes)));
    let seen = server.seen().await;
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(
        (seen.uri.path(), &body["store"]),
        ("/v1/responses", &json!(false))
    );
}

#[tokio::test]
async fn the_end_of_the_stream_is_not_waited_for_after_completed() {
    let server = TestServer::start(
        Script::events()
            .send(fixture("aimock-responses-text"))
            .stall(),
    )
    .await;
    let (events, error) = ask(&server).await;
    assert!(error.is_none(), "{error:?}");
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
}

#[tokio::test]
async fn m_20_every_way_of_breaking_off_is_a_connection_error() {
    let cut = fixture("aimock-slow-responses-cut");
    let script = || Script::events().send(cut.clone());
    assert_eq!(error_of(script()).await, ModelErrorKind::Connection);
    assert_eq!(error_of(script().reset()).await, ModelErrorKind::Connection);
    assert_eq!(error_of(script().stall()).await, ModelErrorKind::Connection);
    assert_eq!(
        error_of(script().send("data: {\"typ")).await,
        ModelErrorKind::Connection
    );
    assert_eq!(error_of(Script::events()).await, ModelErrorKind::Connection);
}

#[tokio::test]
async fn m_16_garbage_is_a_bad_answer() {
    let garbage = Script::events().send("data: \u{0}\u{1}garbage\n\ndata: [DONE]\n\n");
    assert_eq!(error_of(garbage).await, ModelErrorKind::BadAnswer);
}

#[tokio::test]
async fn recorded_errors_have_their_kinds() {
    for (name, status, kind) in [
        ("aimock-responses-err429", 429, ModelErrorKind::RateLimited),
        ("aimock-responses-err529", 529, ModelErrorKind::Unavailable),
        (
            "litellm-mock-responses-err429",
            200,
            ModelErrorKind::Unavailable,
        ),
        (
            "litellm-over-anthropic-responses-err529",
            529,
            ModelErrorKind::Unavailable,
        ),
        (
            "litellm-over-anthropic-responses-cut",
            500,
            ModelErrorKind::Unavailable,
        ),
    ] {
        let script = Script::status(status).send(fixture(name));
        assert_eq!(error_of(script).await, kind, "{name}");
    }
}

#[tokio::test]
async fn the_account_is_a_hash_of_the_key() {
    let server = TestServer::start(Script::events()).await;
    let provider = provider(&server);
    let account = provider.account().unwrap();
    assert_eq!(account.len(), 16);
    assert!(
        !format!("{provider:?}").contains("sk-canary"),
        "{provider:?}"
    );
}

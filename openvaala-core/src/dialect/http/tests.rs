use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pretty_assertions::assert_eq;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::events::{EventStream, Received};
use super::{Auth, Endpoint, HttpOptions, Secret, default_client};
use crate::dialect::http::test_server::{Script, TestServer, hangs_up, nobody};
use crate::model::{ModelError, ModelErrorKind};

const KEY: &str = "sk-canary-0123456789";

fn options(url: &str) -> HttpOptions {
    HttpOptions::new(default_client().unwrap(), url).with_api_key(Secret::new(KEY))
}

fn endpoint(options: HttpOptions) -> Endpoint {
    Endpoint::new(options, &["chat", "completions"], Auth::Bearer).unwrap()
}

async fn ask(script: Script) -> Result<EventStream, ModelError> {
    let server = TestServer::start(script).await;
    endpoint(options(&server.url())).post(b"{}".to_vec()).await
}

async fn failure(script: Script) -> ModelError {
    ask(script).await.unwrap_err()
}

/// Reads a whole answer: the data of its events, and the error that it ends with.
async fn read(script: Script, idle_timeout: Duration) -> (Vec<String>, Option<ModelError>) {
    let server = TestServer::start(script).await;
    let endpoint = endpoint(options(&server.url()).with_idle_timeout(idle_timeout));
    let mut data = Vec::new();
    let mut stream = match endpoint.post(b"{}".to_vec()).await {
        Ok(stream) => stream,
        Err(error) => return (data, Some(error)),
    };
    loop {
        match stream.next().await {
            Ok(Some(Received::Whole(event) | Received::Last(event))) => data.push(event.data),
            Ok(None) => return (data, None),
            Err(error) => return (data, Some(error)),
        }
    }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

fn json_error(message: &str, kind: &str, code: &str) -> String {
    serde_json::json!({ "error": { "message": message, "type": kind, "code": code } }).to_string()
}

#[tokio::test]
async fn a_request_carries_the_key_the_headers_and_the_body() {
    let mut server = TestServer::start(Script::events().send("data: a\n\n")).await;
    let options = options(&server.url()).with_header("x-title", Secret::new("OpenVaala"));
    endpoint(options).post(b"{\"a\":1}".to_vec()).await.unwrap();
    let seen = server.seen().await;
    assert_eq!(seen.uri, "/v1/chat/completions");
    assert_eq!(seen.body.as_ref(), b"{\"a\":1}");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(seen.headers["x-title"], "OpenVaala");
    assert_eq!(seen.headers["content-type"], "application/json");
}

#[tokio::test]
async fn events_come_as_they_are_sent() {
    let script = Script::events()
        .send("data: a\n")
        .send("\ndata: b\r\n\r\nda")
        .send("ta: c");
    let (data, error) = read(script, LONG).await;
    assert_eq!(data, ["a", "b", "c"]);
    assert!(error.is_none(), "{error:?}");
}

#[tokio::test]
async fn m_11_every_status_has_its_kind() {
    for (status, kind) in [
        (400, ModelErrorKind::BadRequest),
        (401, ModelErrorKind::Unauthorized),
        (402, ModelErrorKind::Quota),
        (403, ModelErrorKind::Unauthorized),
        (404, ModelErrorKind::NotFound),
        (408, ModelErrorKind::Unavailable),
        (409, ModelErrorKind::Unavailable),
        (422, ModelErrorKind::BadRequest),
        (429, ModelErrorKind::RateLimited),
        (500, ModelErrorKind::Unavailable),
        (502, ModelErrorKind::Unavailable),
        (503, ModelErrorKind::Unavailable),
        (504, ModelErrorKind::Unavailable),
        (529, ModelErrorKind::Unavailable),
    ] {
        let error = failure(Script::status(status)).await;
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        assert!(error.message.contains(&format!("HTTP {status}")), "{error}");
    }
}

#[tokio::test]
async fn m_11_a_refused_key_names_the_address_and_what_to_check() {
    let body = json_error(
        "Incorrect API key provided.",
        "invalid_request_error",
        "invalid_api_key",
    );
    let server = TestServer::start(Script::status(401).send(body)).await;
    let error = endpoint(options(&server.url()))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    let expected = format!(
        "{}/chat/completions refuses the key (HTTP 401): Incorrect API key provided; check that the \
         key is right, belongs to this address, and may use this model",
        server.url(),
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn s_19_a_body_that_echoes_the_key_does_not_show_it() {
    let echo = json_error(&format!("wrong header 'Bearer {KEY}'"), "", "");
    let scripts = [
        Script::status(401).send(echo.clone()),
        Script::status(500).send(format!("<html><title>{KEY}</title></html>")),
        Script::status(301).header("location", format!("http://evil.example/?key={KEY}")),
        Script::status(200)
            .header("content-type", "application/json")
            .send(echo),
        Script::status(200)
            .header("content-type", "application/json")
            .send(format!("[\"{KEY}\"]")),
    ];
    for script in scripts {
        let error = failure(script.clone()).await;
        assert!(error.message.contains("[secret]"), "{script:?}: {error}");
        assert!(
            !format!("{error:?} {error}").contains(KEY),
            "{script:?}: {error:?}"
        );
    }
}

#[test]
fn s_19_debug_output_of_options_and_endpoint_shows_no_secret() {
    let options = options("http://user:sk-url@example.com/v1?key=sk-query")
        .with_header("x-api-key", Secret::new("sk-header"));
    let mut shown = format!("{options:?}");
    let endpoint = endpoint(options);
    shown.push_str(&format!("{endpoint:?} {:?}", endpoint.headers()));
    assert!(shown.contains("example.com/v1"), "{shown}");
    for secret in [KEY, "sk-header", "sk-url", "sk-query"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn s_19_secrets_within_the_address_are_taken_out_of_foreign_texts() {
    let endpoint = endpoint(options(
        "http://user:sk-url-1@h/v1?key=sk-query-1&api-version=2026-01-01",
    ));
    let cleaned = endpoint.redactor().clean("sk-url-1 sk-query-1 2026-01-01");
    assert_eq!(cleaned, "[secret] [secret] 2026-01-01");
}

#[tokio::test]
async fn m_05_a_rate_limit_says_how_long_to_wait() {
    for (script, millis) in [
        (Script::status(429).header("retry-after", "2"), 2_000),
        (Script::status(429).header("retry-after-ms", "1500"), 1_500),
        (Script::status(503).header("retry-after", "7"), 7_000),
        (
            Script::status(429).send(json_error("Please try again in 1.3s.", "tokens", "")),
            1_300,
        ),
        (
            Script::status(429)
                .header("date", "Wed, 02 Dec 2026 04:22:41 GMT")
                .header("retry-after", "Wed, 02 Dec 2026 04:22:44 GMT"),
            3_000,
        ),
    ] {
        let error = failure(script).await;
        assert_eq!(
            error.retry_after,
            Some(Duration::from_millis(millis)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn m_07_no_credit_is_no_rate_limit() {
    let body = json_error(
        "You exceeded your current quota",
        "insufficient_quota",
        "insufficient_quota",
    );
    let error = failure(Script::status(429).header("retry-after", "2").send(body)).await;
    assert_eq!(
        (error.kind, error.retry_after),
        (ModelErrorKind::Quota, None)
    );
}

#[tokio::test]
async fn m_12_a_request_that_is_too_long_is_told_from_a_wrong_one() {
    for (status, body) in [
        (
            400,
            json_error(
                "too long",
                "invalid_request_error",
                "context_length_exceeded",
            ),
        ),
        (
            413,
            json_error("This model's maximum context length is 8192 tokens", "", ""),
        ),
        (
            400,
            json_error(
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                "INVALID_ARGUMENT",
                "400",
            ),
        ),
        (
            400,
            json_error(
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
                "",
                "Client specified an invalid argument",
            ),
        ),
        (
            400,
            json_error(
                "the request exceeds the available context size",
                "exceed_context_size_error",
                "400",
            ),
        ),
    ] {
        let error = failure(Script::status(status).send(body)).await;
        assert_eq!(error.kind, ModelErrorKind::ContextTooLong, "{error}");
    }
}

#[tokio::test]
async fn m_23_a_content_filter_is_a_refusal() {
    let body = json_error(
        "blocked by policy",
        "invalid_request_error",
        "content_policy_violation",
    );
    assert_eq!(
        failure(Script::status(400).send(body)).await.kind,
        ModelErrorKind::Refused
    );
}

#[tokio::test]
async fn m_08_an_html_error_page_is_called_by_its_title() {
    let page =
        "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>x</body></html>";
    let error = failure(
        Script::status(502)
            .header("content-type", "text/html")
            .send(page),
    )
    .await;
    assert!(
        error
            .message
            .contains("an HTML page titled \"502 Bad Gateway\""),
        "{error}"
    );
    assert!(!error.message.contains('<'), "{error}");
}

#[tokio::test]
async fn m_08_an_error_page_that_never_ends_is_cut() {
    let (data, error) = read(Script::status(500).send("x".repeat(1 << 20)).stall(), SHORT).await;
    let error = error.unwrap();
    assert!(
        data.is_empty() && error.message.chars().count() < 800,
        "{error}"
    );
}

#[tokio::test]
async fn a_document_in_the_place_of_a_stream_is_a_bad_answer() {
    for (media_type, body) in [
        (
            "application/json",
            r#"{"choices":[{"message":{"content":"hi"}}]}"#,
        ),
        (
            "text/html; charset=utf-8",
            "<html><title>Sign in</title></html>",
        ),
    ] {
        let error = failure(
            Script::status(200)
                .header("content-type", media_type)
                .send(body),
        )
        .await;
        assert_eq!(error.kind, ModelErrorKind::BadAnswer);
        assert!(error.message.contains("check the base URL"), "{error}");
    }
}

#[tokio::test]
async fn an_error_with_status_200_is_read_as_the_error_that_it_is() {
    let body = r#"{"error":{"message":"slow down","code":429}}"#;
    let script = Script::status(200)
        .header("content-type", "application/json")
        .send(body);
    let error = failure(script).await;
    assert_eq!(
        (error.kind, error.status),
        (ModelErrorKind::RateLimited, Some(429))
    );
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_named() {
    let error = failure(Script::status(307).header("location", "https://else.example/v1")).await;
    assert_eq!(error.kind, ModelErrorKind::BadRequest);
    assert!(
        error
            .message
            .contains("redirects to https://else.example/v1"),
        "{error}"
    );
}

#[tokio::test]
async fn m_01_a_refused_connection_names_the_address_and_what_to_check() {
    let url = nobody().await;
    let error = endpoint(options(&url))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    let start = format!(
        "no connection to {url}/chat/completions (check the address, the network, and that the \
         service runs): Connection refused"
    );
    assert!(error.message.starts_with(&start), "{error}");
}

#[tokio::test]
async fn m_01_a_host_that_does_not_exist_is_a_connection_error() {
    let error = endpoint(options("http://nowhere.invalid/v1"))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message.contains("nowhere.invalid"), "{error}");
}

#[tokio::test]
async fn m_01_a_connection_that_breaks_before_the_answer_is_a_connection_error() {
    let (url, task) = hangs_up().await;
    let error = endpoint(options(&url))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    task.abort();
    assert_eq!(error.kind, ModelErrorKind::Connection, "{error}");
}

#[tokio::test]
async fn m_01_plain_text_where_tls_is_expected_is_a_connection_error() {
    let server = TestServer::start(Script::events()).await;
    let url = server.url().replace("http://", "https://");
    let error = endpoint(options(&url))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection, "{error}");
}

/// An address with a certificate that nobody trusts; it takes one connection.
fn self_signed() -> (String, JoinHandle<()>) {
    let certificate = include_bytes!("../../../tests/fixtures/tls/self-signed.der");
    let key = include_bytes!("../../../tests/fixtures/tls/self-signed.key.der");
    let key = PrivateKeyDer::try_from(key.as_slice()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.as_slice().into()], key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let (mut tcp, _) = listener.accept().unwrap();
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        // The client hangs up once it has seen the certificate.
        while tls.is_handshaking() && tls.complete_io(&mut tcp).is_ok() {}
    });
    (url, thread)
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_apart_and_says_what_to_do() {
    let (url, thread) = self_signed();
    let error = endpoint(options(&url))
        .post(b"{}".to_vec())
        .await
        .unwrap_err();
    thread.join().unwrap();
    assert_eq!(error.kind, ModelErrorKind::Certificate, "{error}");
    let advice = "its certificate is not trusted: install the CA certificates of the system";
    assert!(error.message.contains(advice), "{error}");
}

#[tokio::test]
async fn m_02_a_reset_in_the_middle_keeps_what_came_and_is_a_connection_error() {
    let (data, error) = read(Script::events().send("data: a\n\ndata: b").reset(), LONG).await;
    let error = error.unwrap();
    assert_eq!(
        (data, error.kind),
        (vec!["a".to_owned()], ModelErrorKind::Connection)
    );
    assert!(error.message.contains("the connection broke"), "{error}");
}

#[tokio::test]
async fn m_18_silence_within_the_answer_is_a_connection_error() {
    let (data, error) = read(Script::events().send("data: a\n\n").stall(), SHORT).await;
    let error = error.unwrap();
    assert_eq!(
        (data, error.kind),
        (vec!["a".to_owned()], ModelErrorKind::Connection)
    );
    assert!(
        error.message.contains("has sent nothing for 50ms"),
        "{error}"
    );
}

#[tokio::test]
async fn m_18_silence_before_the_answer_is_a_connection_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let options = options(&url).with_idle_timeout(SHORT);
    let error = endpoint(options).post(b"{}".to_vec()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(
        error.message.contains("has sent nothing for 50ms"),
        "{error}"
    );
}

#[test]
fn a_wrong_address_key_or_header_is_named_at_once() {
    let wrong = |options| Endpoint::new(options, &["x"], Auth::Bearer).unwrap_err();
    for url in ["", "api.openai.com/v1", "ftp://example.com", "http://"] {
        let error = wrong(options(url));
        assert_eq!(error.kind, ModelErrorKind::BadRequest, "{url}");
        assert!(
            error.message.contains("expected something like https://"),
            "{error}"
        );
    }
    let key = options("http://x/v1").with_api_key(Secret::new("sk-a\nb"));
    assert_eq!(wrong(key).kind, ModelErrorKind::Unauthorized);
    let header = options("http://x/v1").with_header("a b", Secret::new("c"));
    assert!(wrong(header).message.contains("\"a b\""));
}

#[test]
fn the_address_is_added_to_the_base_url_once() {
    for (base, place) in [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        (" http://h ", "http://h/chat/completions"),
        (
            "http://h/v1/chat/completions",
            "http://h/v1/chat/completions",
        ),
        ("http://h/v1?api-version=2", "http://h/v1/chat/completions"),
    ] {
        assert_eq!(endpoint(options(base)).place(), place);
    }
}

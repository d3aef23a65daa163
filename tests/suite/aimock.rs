//! A model double that others wrote: aimock, through `openvaala exec`.
//!
//! Needs two variables, which `tests/run` sets: `OPENVAALA_AIMOCK` (the program `llmock`) and
//! `OPENVAALA_SPEC_PYTHON` (a Python with `tests/counterparts/requirements.txt` installed). What was asked is
//! checked against OpenAI's own description of its API.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::binary::workspace;
use openvaala_tests::raw_client::RawClient;
use openvaala_tests::running::Running;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{json_lines, logged_items, of_kind, result_text};

/// The double, running with our fixtures.
struct Aimock {
    address: String,
    _running: Running,
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run these tests by `tests/run`"))
}

impl Aimock {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(variable("OPENVAALA_AIMOCK"));
        command
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "--latency",
                "30",
            ])
            .args(["--validate-on-load", "--strict", "-f"])
            .arg(workspace().join("tests/counterparts/aimock.json"));
        let mut running = Running::start(command);
        wait::until("aimock to listen", || match running.try_wait() {
            Some(status) => Ok(Err(status)),
            None => TcpStream::connect(&address).map(|_| Ok(())),
        })
        .unwrap_or_else(|status| panic!("aimock ended by itself: {status}"));
        Self {
            address,
            _running: running,
        }
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.use_model(&self.base_url());
        sandbox.write_project("README.md", "# Paper plane\n\nFolds paper planes.\n");
        sandbox
    }

    /// The bodies of all requests that came.
    fn bodies(&self) -> Vec<Value> {
        let reply = RawClient::connect(&self.address).get("/__aimock/journal", &[]);
        let journal: Vec<Value> = serde_json::from_str(&reply.body).unwrap();
        let asked = journal
            .into_iter()
            .filter(|entry| entry["path"] == "/v1/chat/completions");
        asked.map(|entry| entry["body"].clone()).collect()
    }

    /// Checks that so many requests came and that OpenAI would take each of them.
    #[track_caller]
    fn expect_valid_requests(&self, count: usize) {
        let mut command = Command::new(variable("OPENVAALA_SPEC_PYTHON"));
        command.arg(workspace().join("tests/counterparts/validate_chat.py"));
        if let Some(cache) = env::var_os("OPENVAALA_SPEC_CACHE") {
            command.arg("--cache").arg(cache);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = piped.expect("OPENVAALA_SPEC_PYTHON can be started");
        let bodies = serde_json::to_vec(&self.bodies()).unwrap();
        child.stdin.take().unwrap().write_all(&bodies).unwrap();
        let output = child.wait_with_output().unwrap();
        let [report] = json_lines(&String::from_utf8_lossy(&output.stdout))
            .try_into()
            .unwrap();
        assert_eq!(report, json!({ "checked": count, "errors": [] }));
    }
}

#[test]
fn aimock_text_comes_through_whole() {
    let aimock = Aimock::start();
    let outcome = aimock.sandbox().run(&["exec", "hello"]).expect_code(0);
    assert_eq!(
        outcome.stdout.trim_end(),
        "Hello from the far side: héllo, 你好, 🦀."
    );
    assert!(outcome.stdout_pieces > 1, "not streamed: {outcome:?}");
    aimock.expect_valid_requests(1);
}

#[test]
fn aimock_one_tool_is_called_and_answered() {
    let aimock = Aimock::start();
    let sandbox = aimock.sandbox();
    let outcome = sandbox
        .run(&["exec", "[tool] what is in the README?"])
        .expect_code(0);
    assert!(
        outcome.stdout.contains("I will read the file."),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    let items = logged_items(&sandbox.conversations()[0]);
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    assert!(result_text(result).contains("# Paper plane"), "{result}");
    aimock.expect_valid_requests(2);
}

#[test]
fn aimock_the_first_command_of_the_readme_uses_two_tools_at_once() {
    let aimock = Aimock::start();
    let mut sandbox = Sandbox::with_empty_home();
    sandbox.write_project("README.md", "# Paper plane\n");
    sandbox.set("OPENAI_API_KEY", "test-key");
    sandbox.set("OPENAI_BASE_URL", aimock.base_url());
    let prompt = "[two tools] look around this folder and tell me what it is";
    let outcome = sandbox.run(&["exec", prompt]).expect_code(0);
    assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
    let items = logged_items(&sandbox.conversations()[0]);
    let results = of_kind(&items, "tool_result");
    let texts: Vec<String> = results.iter().map(|result| result_text(result)).collect();
    assert_eq!(texts.len(), 2);
    assert!(
        texts[0].contains("# Paper plane") && texts[1] == "README.md\n",
        "{texts:?}"
    );
    aimock.expect_valid_requests(2);
}

#[tokio::test]
async fn aimock_a_cut_stream_fails_the_turn_keeps_the_text_and_runs_no_cut_call() {
    let aimock = Aimock::start();
    let sandbox = aimock.sandbox();
    let outcome = sandbox.run(&["exec", "[cut] please"]).expect_code(1);
    assert!(outcome.stdout.starts_with("This "), "{outcome:?}");
    let items = logged_items(&sandbox.conversations()[0]);
    let [message] = of_kind(&items, "assistant_message").try_into().unwrap();
    assert_eq!(message["body"]["cut"], true);
    assert_eq!(of_kind(&items, "model_error").len(), 1);

    let _ = sandbox.run(&["exec", "[cut call] please"]).expect_code(1);
    assert!(!sandbox.project().join("cut-call-ran.txt").exists());
    sandbox.stop_server();

    // A conversation whose answer was cut can go on.
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    assert_eq!(
        watcher.ask(conversation, "[cut]").await.status,
        TurnStatus::Failed
    );
    assert_eq!(
        watcher.ask(conversation, "[two tools]").await.status,
        TurnStatus::Completed
    );
    assert_eq!(
        watcher.ask(conversation, "hello").await.status,
        TurnStatus::Completed
    );
    aimock.expect_valid_requests(6);
}

#[test]
fn aimock_errors_of_the_provider_are_told_with_what_to_do() {
    let aimock = Aimock::start();
    let sandbox = aimock.sandbox();
    for (prompt, texts) in [
        ("[429]", &["Rate limit reached for ever", "429"][..]),
        ("[401]", &["Incorrect API key provided"]),
        ("[404]", &["no-such-model"]),
        ("[500]", &["The server had an error"]),
    ] {
        let outcome = sandbox
            .run(&["exec", prompt])
            .expect_code(1)
            .expect_stderr(texts);
        assert_eq!(outcome.stdout.trim(), "", "{outcome:?}");
    }
    aimock.expect_valid_requests(4);
}

#[test]
fn aimock_odd_tool_calls_are_answered_and_the_turn_goes_on() {
    let aimock = Aimock::start();
    let sandbox = aimock.sandbox();
    for (prompt, text) in [
        ("[unknown tool]", "no_such_tool"),
        ("[wrong arguments]", "path"),
        ("[missing file]", "no/such/file.txt"),
    ] {
        let before = sandbox.conversations();
        let outcome = sandbox.run(&["exec", prompt]).expect_code(0);
        assert!(outcome.stdout.contains("the work is done."), "{outcome:?}");
        let mut new = sandbox.conversations();
        new.retain(|folder| !before.contains(folder));
        let items = logged_items(&new[0]);
        let [result] = of_kind(&items, "tool_result").try_into().unwrap();
        assert_eq!(result["body"]["status"], "failed");
        assert!(result_text(result).contains(text), "{result}");
    }
    aimock.expect_valid_requests(6);
}

//! Tool calls that cannot work, and commands that do not end.

use std::fs;
use std::path::Path;

use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{logged_items, of_kind, result_text};

/// Lets the model make one call; gives its result as it is logged.
///
/// The turn must go on after it, whatever it was.
#[track_caller]
fn result_of(sandbox: &Sandbox, tool: &'static str, arguments: &str) -> Value {
    let arguments = arguments.to_owned();
    let mut model = FakeModel::start(move |asked| match asked.results().as_slice() {
        [] => Answer::tool("call_1", tool, &arguments),
        _ => Answer::text("and so it goes on"),
    });
    sandbox.use_model(&model.base_url());
    let outcome = sandbox.run(&["exec", "go"]).expect_code(0);
    assert!(outcome.stdout.contains("and so it goes on"), "{outcome:?}");
    model.expect_sound_requests();
    let items = logged_items(&sandbox.conversations()[0]);
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    result.clone()
}

#[track_caller]
fn expect_failed(result: &Value, texts: &[&str]) {
    assert_eq!(result["body"]["status"], "failed", "{result}");
    let said = result_text(result);
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in {said:?}");
    }
}

#[test]
fn m_29_an_unknown_tool_is_named_with_those_that_there_are() {
    let result = result_of(&Sandbox::new(), "fly_to_the_moon", "{}");
    expect_failed(&result, &["fly_to_the_moon", "bash", "read_file"]);
}

#[test]
fn broken_tool_json_is_not_run_and_the_model_is_told() {
    let sandbox = Sandbox::new();
    let result = result_of(&sandbox, "bash", r#"{"command": touch ran.txt}"#);
    expect_failed(&result, &["JSON"]);
    assert!(!sandbox.project().join("ran.txt").exists());
}

#[test]
fn m_27_arguments_that_stop_in_the_middle_are_not_run_and_the_model_is_told() {
    let sandbox = Sandbox::new();
    let result = result_of(&sandbox, "bash", r#"{"command":"touch ran.txt"#);
    expect_failed(&result, &["cut off"]);
    assert!(!sandbox.project().join("ran.txt").exists());
}

#[test]
fn m_29_arguments_of_the_wrong_type_name_the_field() {
    let result = result_of(&Sandbox::new(), "bash", r#"{"command":["ls"]}"#);
    expect_failed(&result, &["command"]);
}

#[test]
fn a_binary_file_is_not_read_as_text_and_bash_is_pointed_to() {
    let sandbox = Sandbox::new();
    sandbox.write_project("data.bin", [0u8, 159, 146, 150, 255, 0, 1, 2]);
    let result = result_of(&sandbox, "read_file", r#"{"path":"data.bin"}"#);
    expect_failed(&result, &["data.bin", "bash"]);
}

#[test]
fn an_endless_command_is_ended_and_its_output_is_cut() {
    let sandbox = Sandbox::new();
    let arguments = json!({ "command": "echo begin; yes no-end", "timeout_ms": 500 });
    let result = result_of(&sandbox, "bash", &arguments.to_string());
    expect_failed(&result, &["begin\n", "timed out"]);
    assert!(
        result_text(&result).len() < 200_000,
        "the model sees all of it"
    );
    assert!(
        !sandbox
            .processes()
            .iter()
            .any(|process| process.line.contains("yes no-end"))
    );
}

#[test]
fn u_054_a_command_that_reads_its_input_ends_at_once() {
    let result = result_of(&Sandbox::new(), "bash", r#"{"command":"cat; echo after"}"#);
    assert_eq!(result["body"]["status"], "ok");
    assert_eq!(result_text(&result), "after\n");
}

#[test]
fn s_18_s_80_secrets_reach_no_command_no_log_and_no_screen() {
    let mut sandbox = Sandbox::new();
    let canaries = [
        ("OPENAI_API_KEY", "canary-one-7f3a"),
        ("MY_SECRET_THING", "canary-two-9b1c"),
        ("GITHUB_TOKEN", "canary-three-4d2e"),
    ];
    for (name, value) in canaries {
        sandbox.set(name, value);
    }
    sandbox.set("HARMLESS", "seen-by-commands");
    let result = result_of(&sandbox, "bash", r#"{"command":"env | sort"}"#);
    let said = result_text(&result);
    assert!(
        said.contains("HARMLESS=seen-by-commands") && said.contains("HOME="),
        "{said}"
    );
    let [server] = openvaala_tests::server::Discovery::all(sandbox.state())
        .try_into()
        .unwrap();
    let mut secrets: Vec<&str> = canaries.iter().map(|(_, value)| *value).collect();
    secrets.push("test-key");
    secrets.push(&server.token);
    for secret in &secrets {
        assert!(!said.contains(secret), "{said}");
    }
    sandbox.stop_server();
    // Only the files that are there to hold them may hold them.
    let config = sandbox.config().to_owned();
    for (path, bytes) in files(sandbox.root()) {
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<_> = secrets
            .iter()
            .filter(|secret| text.contains(**secret))
            .collect();
        assert!(
            found.is_empty() || path.starts_with(&config),
            "{}: {found:?}",
            path.display()
        );
    }
}

fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if let Ok(bytes) = fs::read(&path) {
            found.push((path, bytes));
        }
    }
    found
}

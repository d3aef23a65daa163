//! The examples run and do what they say.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use openvaala_tests::binary::{target, workspace};
use openvaala_tests::running::{Outcome, Running};

/// Runs an example: the one in the folder `OPENVAALA_EXAMPLES`, else one that is built now.
fn run(name: &str) -> Outcome {
    let given = env::var_os("OPENVAALA_EXAMPLES").map(PathBuf::from);
    let mut command = Command::new(given.unwrap_or_else(build).join(name));
    command.current_dir(workspace());
    Running::start(command).finish().expect_code(0)
}

/// Builds all examples beside this test, which takes no time when they are there; gives their folder.
fn build() -> PathBuf {
    let target = target();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "-p",
            "openvaala-examples",
            "--examples",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(workspace())
        .status();
    let built = built.expect("cargo can be started");
    assert!(built.success(), "the examples cannot be built: {built}");
    target.join("debug/examples")
}

#[test]
fn embed_minimal_answers_with_tools() {
    let outcome = run("embed_minimal");
    for kind in [
        "user_message: ",
        "tool_call: ",
        "tool_result: ",
        "assistant_message: ",
    ] {
        assert!(
            outcome.stdout.lines().any(|line| line.starts_with(kind)),
            "{kind}: {outcome:?}"
        );
    }
}

#[test]
fn custom_tool_runs_the_tool() {
    let outcome = run("custom_tool");
    assert_eq!(outcome.stdout, "the sum is 9\n", "{outcome:?}");
}

#[test]
fn custom_provider_streams_the_echo() {
    let outcome = run("custom_provider");
    assert_eq!(outcome.stdout, "hello from the far side\n", "{outcome:?}");
}

#[test]
fn in_memory_lists_what_it_never_wrote() {
    let before = files_here();
    let outcome = run("in_memory");
    assert!(
        outcome.stdout.contains("items, the newest first:"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("user_message"), "{outcome:?}");
    let listed = r#"in the list: Some("what can you do?")"#;
    assert!(outcome.stdout.contains(listed), "{outcome:?}");
    assert_eq!(files_here(), before);
}

/// What lies in the folder that the examples run in.
fn files_here() -> Vec<OsString> {
    let entries = fs::read_dir(workspace()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

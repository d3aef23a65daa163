//! The examples run and do what they say.

use std::path::PathBuf;
use std::process::Command;

use openvaala_tests::binary::{target, workspace};
use openvaala_tests::running::{Outcome, Running};

/// Runs an example: the one in the folder `OPENVAALA_EXAMPLES`, else one that was built with the tests, else one
/// that is built now.
fn run(name: &str) -> Outcome {
    let folder = std::env::var_os("OPENVAALA_EXAMPLES").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| target().join("debug/examples"));
    let built = folder.join(name);
    let mut command = if built.is_file() {
        Command::new(built)
    } else {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let package = [
            "run",
            "--quiet",
            "-p",
            "openvaala-examples",
            "--example",
            name,
        ];
        cargo.args(package).arg("--target-dir").arg(target());
        cargo
    };
    command.current_dir(workspace());
    Running::start(command).finish().expect_code(0)
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
fn files_here() -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(workspace()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

//! The tool `bash`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use openvaala_executor::tool::{Cancel, NoOutput, ToolContext, ToolError, ToolOutput, ToolStatus};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::support::{Place, assert_gone, text, watched};

async fn bash(command: &str) -> ToolOutput {
    Place::open()
        .await
        .call("bash", json!({ "command": command }))
        .await
        .unwrap()
}

fn ok(text: &str) -> ToolOutput {
    ToolOutput::text(text).with_exit_code(Some(0))
}

fn failed(text: &str, exit_code: Option<i32>) -> ToolOutput {
    ToolOutput::failed(text).with_exit_code(exit_code)
}

/// Runs a command that writes the number of its group after `setup`, and cancels it then.
async fn cancelled(setup: &str, command: &str) -> (ToolOutput, Duration, i32) {
    let place = Place::open().await;
    let (context, handle, mut output) = watched();
    let arguments = json!({ "command": format!("{setup}\necho $$; {command}") }).to_string();
    let tool = place.tool("bash");
    let cancelling = async {
        let bytes = output.recv().await.unwrap();
        handle.cancel();
        (
            Instant::now(),
            String::from_utf8_lossy(&bytes)
                .lines()
                .next()
                .unwrap()
                .parse()
                .unwrap(),
        )
    };
    let (result, (at, group)) = futures::join!(tool.call(context, &arguments), cancelling);
    (result.unwrap(), at.elapsed(), group)
}

#[tokio::test]
async fn output_and_exit_code_are_shown() {
    assert_eq!(bash("echo hi").await, ok("hi\n"));
    assert_eq!(bash("true").await, ok("[no output]"));
    assert_eq!(
        bash("printf x; exit 3").await,
        failed("x\n[exit code 3]", Some(3))
    );
    assert_eq!(
        bash("false").await,
        failed("[no output]\n[exit code 1]", Some(1))
    );
    let killed = failed("[no output]\n[ended by signal 9 (SIGKILL)]", None);
    assert_eq!(bash("kill -9 $$").await, killed);
}

#[tokio::test]
async fn both_outputs_come_in_the_order_of_writing() {
    assert_eq!(
        bash("echo 1; echo 2 >&2; echo 3; echo 4 >&2").await,
        ok("1\n2\n3\n4\n")
    );
}

#[tokio::test]
async fn the_sink_gets_raw_bytes_and_the_model_plain_text() {
    let place = Place::open().await;
    let (context, _handle, mut output) = watched();
    let arguments = json!({ "command": r"printf '\033[31mred\033[0m\0\377\r\n'" }).to_string();
    let result = place.tool("bash").call(context, &arguments).await.unwrap();
    assert_eq!(result, ok("red\u{fffd}\n"));
    let mut raw = Vec::new();
    while let Some(bytes) = output.recv().await {
        raw.extend_from_slice(&bytes);
    }
    assert_eq!(raw, b"\x1b[31mred\x1b[0m\0\xff\r\n");
}

#[tokio::test]
async fn s_98_a_flood_is_cut_to_head_and_tail() {
    let output = bash("echo first; seq 1 200000; echo last").await;
    let text = text(&output);
    assert!(text.starts_with("first\n1\n2\n") && text.ends_with("\n200000\nlast\n"));
    assert!(
        text.contains("bytes left out …]") && text.len() <= 30_000,
        "{}",
        text.len()
    );
    assert!(output.cut);
}

#[tokio::test]
async fn s_98_an_endless_flood_ends_at_its_time() {
    let place = Place::open().await;
    let started = Instant::now();
    let output = place
        .call("bash", json!({ "command": "yes", "timeout_ms": 300 }))
        .await
        .unwrap();
    assert!(started.elapsed() < Duration::from_secs(2));
    let end = "\n[timed out after 0.3 s: the command and its children were ended]";
    assert!(text(&output).ends_with(end), "{}", text(&output));
    assert_eq!(
        (output.status, output.exit_code),
        (ToolStatus::Failed, None)
    );
}

#[tokio::test]
async fn a_timeout_keeps_what_came_before_it() {
    let place = Place::open().await;
    let arguments = json!({ "command": "echo partial; sleep 1000", "timeout_ms": 500 });
    let output = place.call("bash", arguments).await.unwrap();
    let end = "[timed out after 0.5 s: the command and its children were ended]";
    assert_eq!(output, failed(&format!("partial\n{end}"), None));
}

#[tokio::test]
async fn s_99_a_cancelled_tree_is_gone_in_time() {
    let trees = [
        ("", "sleep 1000 & sleep 1000"),
        ("", "bash -c 'sleep 1000 & sleep 1000'"),
        ("trap '' TERM", "sleep 1000 & sleep 1000; sleep 1000"),
        ("", "exec >/dev/null 2>&1; sleep 1000 & sleep 1000"),
        (
            "trap '' TERM",
            "exec >/dev/null 2>&1; sleep 1000 & sleep 1000; sleep 1000",
        ),
        ("", "yes"),
    ];
    for (setup, tree) in trees {
        let (output, took, group) = cancelled(setup, tree).await;
        // The exact time is proven with a paused clock; here other tests may hold the processor.
        assert!(took < Duration::from_secs(1), "{tree}: it took {took:?}");
        assert_gone(group);
        let end = "[interrupted: the command and its children were ended]";
        assert!(text(&output).ends_with(end), "{tree}: {}", text(&output));
        assert_eq!(
            (output.status, output.exit_code),
            (ToolStatus::Interrupted, None)
        );
    }
}

#[tokio::test]
async fn a_cancelled_command_may_tidy_up() {
    let setup = "trap 'echo tidy; exit 0' TERM";
    let (output, _, group) = cancelled(setup, "while true; do sleep 0.02; done").await;
    assert!(
        text(&output).contains("tidy\n[interrupted"),
        "{}",
        text(&output)
    );
    assert_gone(group);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_starts_runs_nothing() {
    let place = Place::open().await;
    let (handle, cancel) = Cancel::new();
    handle.cancel();
    let context = ToolContext::new("call".to_owned(), cancel, std::sync::Arc::new(NoOutput));
    let result = place
        .tool("bash")
        .call(context, r#"{"command":"echo >file"}"#)
        .await;
    assert!(matches!(result, Err(ToolError::Cancelled)), "{result:?}");
    assert!(!place.path().join("file").exists());
}

#[tokio::test]
async fn a_child_in_the_background_does_not_hold_the_call() {
    let started = Instant::now();
    let output = bash("sleep 1000 & echo $$; exit 0").await;
    assert!(started.elapsed() < Duration::from_secs(2));
    let (group, rest) = text(&output)
        .split_once('\n')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(rest, "[background processes were ended with the call]");
    assert_eq!((output.status, output.exit_code), (ToolStatus::Ok, Some(0)));
    assert_gone(group.parse().unwrap());
}

#[tokio::test]
async fn a_child_that_closed_its_output_is_found_too() {
    let output = bash("sleep 1000 >/dev/null 2>&1 & echo $$").await;
    let (group, rest) = text(&output)
        .split_once('\n')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(rest, "[background processes were ended with the call]");
    assert_gone(group.parse().unwrap());
}

#[tokio::test]
async fn a_flood_from_the_background_does_not_hold_the_call() {
    let started = Instant::now();
    let output = bash("yes & exit 0").await;
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(text(&output).ends_with("[background processes were ended with the call]"));
}

#[tokio::test]
async fn a_child_that_ends_soon_after_its_shell_is_not_lost() {
    let place = Place::open().await;
    let command = "echo data > >(sleep 0.05; cat >file)";
    let output = place
        .call("bash", json!({ "command": command }))
        .await
        .unwrap();
    assert_eq!(output, ok("[no output]"));
    assert_eq!(
        std::fs::read_to_string(place.path().join("file")).unwrap(),
        "data\n"
    );
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    assert_eq!(bash("cat; read x || echo none").await, ok("none\n"));
}

#[tokio::test]
async fn a_working_directory_can_be_given_and_a_wrong_one_is_named() {
    let place = Place::open().await;
    std::fs::create_dir(place.path().join("folder")).unwrap();
    let arguments = json!({ "command": "basename $PWD", "workdir": "folder" });
    assert_eq!(place.call("bash", arguments).await.unwrap(), ok("folder\n"));
    let arguments = json!({ "command": "pwd", "workdir": "missing" });
    let error = place.call("bash", arguments).await.unwrap_err();
    let path = place.path().join("missing");
    assert_eq!(
        error.to_string(),
        format!("there is no file or directory {}", path.display())
    );
}

#[tokio::test]
async fn arguments_out_of_bounds_are_named() {
    let place = Place::open().await;
    let cases = [
        (
            json!({ "command": "true", "timeout_ms": 600_001 }),
            "invalid arguments for bash: timeout_ms is 600001; it must be 1 to 600000",
        ),
        (
            json!({ "command": "true", "timeout_ms": 0 }),
            "invalid arguments for bash: timeout_ms is 0; it must be 1 to 600000",
        ),
        (
            json!({ "command": "x".repeat(131_072) }),
            "invalid arguments for bash: command has 131072 bytes, at most 131071 are possible; \
             write large data to a file in several calls",
        ),
        (
            json!({ "command": "a\0b" }),
            "invalid arguments for bash: command contains a NUL character, which no shell takes",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            place.call("bash", arguments).await.unwrap_err().to_string(),
            expected
        );
    }
    assert_eq!(
        place
            .call(
                "bash",
                json!({ "command": format!(": {}", "x".repeat(131_069)) })
            )
            .await
            .unwrap(),
        ok("[no output]")
    );
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_running() {
    let place = Place::open().await;
    let (context, _handle, mut output) = watched();
    let tool = place.tool("bash");
    let call = tool.call(context, r#"{"command":"echo $$; sleep 1000 & sleep 1000"}"#);
    let group: Bytes = tokio::select! {
        result = call => panic!("it ended: {result:?}"),
        bytes = output.recv() => bytes.unwrap(),
    };
    assert_gone(String::from_utf8_lossy(&group).trim().parse().unwrap());
}

#[tokio::test]
async fn the_text_of_all_tools_is_small() {
    let place = Place::open().await;
    let size = |spec: &openvaala_executor::tool::ToolSpec| {
        spec.name.len() + spec.description.len() + spec.parameters.get().len()
    };
    let total: usize = place
        .workspace
        .tools()
        .iter()
        .map(|tool| size(tool.spec()))
        .sum();
    assert!(total < 2_100, "{total} bytes are sent with each request");
}

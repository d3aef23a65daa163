//! The commands of a session, through the tools that the model has for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use openvaala_executor::commands::{
    CommandError, CommandId, CommandStatus, CommandsOptions, StartOptions, StoppedBy,
};
use openvaala_executor::output::MemoryOutput;
use openvaala_executor::process::{Command, ExitStatus};
use openvaala_executor::tool::{
    Cancel, Kept, NoOutput, OutputSink, ToolContext, ToolOutput, ToolStatus,
};
use openvaala_executor::tools::command_tools;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::session::Session;
use super::support::{text, watched};

const SOON: Duration = Duration::from_secs(10);

/// Starts a command that goes on, and returns when it has said `ready`.
async fn going_on(session: &Session, line: &str) {
    let args = json!({ "command": line, "yield_ms": 250 });
    let output = session.call("bash", args).await.unwrap();
    let mut said = text(&output);
    while !said.contains("ready") {
        let args = json!({ "id": 1, "wait_ms": 10_000 });
        said = text(&session.call("bash_output", args).await.unwrap());
    }
}

#[tokio::test]
async fn a_command_goes_on_after_its_yield_time_and_is_read_later() {
    let session = Session::open().await;
    let line = "echo first; read line <fifo; echo second; exit 3";
    let made = session
        .call("bash", json!({ "command": "mkfifo fifo" }))
        .await;
    assert_eq!(
        made.unwrap(),
        ToolOutput::text("[no output]").with_exit_code(Some(0))
    );
    let args = json!({ "command": line, "yield_ms": 300 });
    let output = session.call("bash", args).await.unwrap();
    let mark = "[still running after 0.3 s as command 2; read on with bash_output]";
    assert_eq!(output, ToolOutput::text(format!("first\n{mark}")));
    let nothing = session
        .call("bash_output", json!({ "id": 2 }))
        .await
        .unwrap();
    assert_eq!(
        nothing,
        ToolOutput::text("[nothing new]\n[still running]").with_goes_on(true)
    );
    let go = session
        .call("bash", json!({ "command": "echo go >fifo" }))
        .await;
    assert_eq!(go.unwrap().status, ToolStatus::Ok);
    session
        .commands
        .get(CommandId::new(2))
        .await
        .unwrap()
        .ended()
        .await;
    let output = session
        .call("bash_output", json!({ "id": 2 }))
        .await
        .unwrap();
    assert_eq!(output, ToolOutput::text("second\n[exit code 3]"));
}

#[tokio::test]
async fn waiting_for_output_ends_with_news_with_the_end_and_with_the_cancel() {
    let session = Session::open().await;
    going_on(&session, "echo ready; sleep 1000").await;
    let (handle, cancel) = Cancel::new();
    let args = json!({ "id": 1, "wait_ms": 600_000 });
    let wait = session.call_with("bash_output", args.clone(), cancel, Arc::new(NoOutput));
    let (waited, ()) = futures::join!(wait, async { handle.cancel() });
    let nothing = ToolOutput::text("[nothing new]\n[still running]").with_goes_on(true);
    assert_eq!(
        waited.unwrap(),
        nothing.with_status(ToolStatus::Interrupted)
    );
    let wait = session.call("bash_output", args);
    let kill = session.call("bash_kill", json!({ "id": 1 }));
    let (waited, killed) = timeout(SOON, async { futures::join!(wait, kill) })
        .await
        .unwrap();
    assert_eq!(
        killed.unwrap(),
        ToolOutput::text("[command 1: ended by signal 15 (SIGTERM)]")
    );
    let end = "[nothing new]\n[killed: the command and its children were ended]";
    assert_eq!(waited.unwrap(), ToolOutput::text(end));
    session.assert_empty().await;
}

#[tokio::test]
async fn what_is_left_in_the_background_goes_on_as_a_command() {
    let session = Session::open().await;
    let args = json!({ "command": "sleep 300 & echo started; exit 4" });
    let output = timeout(SOON, session.call("bash", args)).await;
    let output = output.unwrap().unwrap();
    let marks = "[exit code 4]\n[processes left in the background go on as command 1]";
    let expected = ToolOutput::failed(format!("started\n{marks}")).with_exit_code(Some(4));
    assert_eq!(output, expected);
    let list = session.commands.list().await;
    let shell = Some(ExitStatus::exited(4));
    assert_eq!(list[0].status, CommandStatus::Running { shell });
    assert!(list[0].left);
    assert_eq!(session.processes().len(), 1);
    let kill = session.call("bash_kill", json!({ "id": 1 })).await.unwrap();
    assert_eq!(kill, ToolOutput::text("[command 1: exit code 4]"));
    session.assert_empty().await;
}

#[tokio::test]
async fn what_is_left_and_ends_by_itself_is_noticed() {
    let session = Session::open().await;
    let line = "(while [ ! -e go ]; do sleep 0.05; done; echo bye) & exit 0";
    let output = session
        .call("bash", json!({ "command": line }))
        .await
        .unwrap();
    let mark = "[processes left in the background go on as command 1]";
    assert_eq!(text(&output), format!("[no output]\n{mark}"));
    std::fs::write(session.place.path().join("go"), "").unwrap();
    let command = session.commands.get(CommandId::new(1)).await.unwrap();
    timeout(SOON, command.ended()).await.unwrap();
    let read = session
        .call("bash_output", json!({ "id": 1 }))
        .await
        .unwrap();
    assert_eq!(read, ToolOutput::text("bye\n[exit code 0]"));
}

#[tokio::test]
async fn a_cancelled_call_ends_its_own_command_and_no_other() {
    let session = Session::open().await;
    going_on(&session, "echo ready; sleep 1000").await;
    let (context, handle, mut output) = watched();
    let context = context.with_commands(session.commands.clone());
    let bash = session.tool("bash");
    let call = bash.call(
        context,
        r#"{"command":"trap '' TERM; echo up; sleep 999; sleep 999"}"#,
    );
    let cancelling = async {
        assert_eq!(output.recv().await, Some(Bytes::from("up\n")));
        handle.cancel();
    };
    let both = async { futures::join!(call, cancelling) };
    let (ended, ()) = timeout(SOON, both).await.unwrap();
    let mark = "[interrupted: the command and its children were ended]";
    let expected = ToolOutput::text(format!("up\n{mark}"));
    assert_eq!(
        ended.unwrap(),
        expected.with_status(ToolStatus::Interrupted)
    );
    let running = |status: &CommandStatus| status.is_running();
    let list = session.commands.list().await;
    let states: Vec<bool> = list.iter().map(|info| running(&info.status)).collect();
    assert_eq!(states, [true, false]);
}

#[tokio::test]
async fn a_dropped_call_ends_its_own_command() {
    let session = Session::open().await;
    let (context, _handle, mut output) = watched();
    let context = context.with_commands(session.commands.clone());
    let bash = session.tool("bash");
    let call = bash.call(context, r#"{"command":"echo up; sleep 1000 & sleep 1000"}"#);
    tokio::select! {
        result = call => panic!("it ended: {result:?}"),
        _ = output.recv() => {}
    }
    session.assert_empty().await;
    let command = session.commands.get(CommandId::new(1)).await.unwrap();
    timeout(SOON, command.ended()).await.unwrap();
    let status = ExitStatus::signalled(15);
    let stopped = Some(StoppedBy::Call);
    assert_eq!(command.status(), CommandStatus::Exited { status, stopped });
}

#[tokio::test]
async fn a_timeout_also_ends_a_command_that_went_on() {
    let session = Session::open().await;
    let args = json!({ "command": "echo up; sleep 1000", "yield_ms": 250, "timeout_ms": 600 });
    let output = session.call("bash", args).await.unwrap();
    assert!(text(&output).contains("still running"), "{output:?}");
    let args = json!({ "id": 1, "wait_ms": 10_000 });
    let read = session.call("bash_output", args).await.unwrap();
    let end = "[nothing new]\n[timed out: the command and its children were ended]";
    assert_eq!(read, ToolOutput::text(end));
    session.assert_empty().await;
}

#[tokio::test]
async fn input_is_written_and_ended() {
    let session = Session::open().await;
    let line = "printf 'name? '; read name; echo \"hi $name\"; cat; echo end";
    let args = json!({ "command": line, "input": true, "yield_ms": 250 });
    let output = session.call("bash", args).await.unwrap();
    let mark = "[still running after 0.25 s as command 1; read on with bash_output]";
    assert_eq!(text(&output), format!("name? \n{mark}"));
    let args = json!({ "id": 1, "text": "Ada\n" });
    let written = session.call("bash_input", args).await.unwrap();
    assert_eq!(written, ToolOutput::text("[4 bytes written to command 1]"));
    let args = json!({ "id": 1, "text": "rest\n", "end": true });
    let written = session.call("bash_input", args).await.unwrap();
    assert_eq!(
        text(&written),
        "[5 bytes written to command 1, and stdin is closed]"
    );
    let command = session.commands.get(CommandId::new(1)).await.unwrap();
    timeout(SOON, command.ended()).await.unwrap();
    let read = session
        .call("bash_output", json!({ "id": 1 }))
        .await
        .unwrap();
    assert_eq!(read, ToolOutput::text("hi Ada\nrest\nend\n[exit code 0]"));
    let late = session
        .call("bash_input", json!({ "id": 1, "text": "x" }))
        .await;
    assert_eq!(late.unwrap_err().to_string(), "command 1 has ended");
}

#[tokio::test]
async fn input_that_nobody_takes_is_an_error_that_names_the_command() {
    let session = Session::open().await;
    going_on(&session, "echo ready; sleep 1000").await;
    let args = json!({ "id": 1, "text": "x" });
    let error = session.call("bash_input", args).await.unwrap_err();
    let expected = "command 1 was started without input; start it again with `input` true";
    assert_eq!(error.to_string(), expected);
    let args = json!({ "command": "sleep 1000", "input": true, "yield_ms": 250 });
    session.call("bash", args).await.unwrap();
    let much = json!({ "id": 2, "text": "x".repeat(1 << 20) });
    let error = session.call("bash_input", much.clone()).await.unwrap_err();
    let begin = "command 2 has not read all of the 1048576 bytes within 5 s";
    assert!(error.to_string().starts_with(begin), "{error}");
    let error = session.call("bash_input", much).await.unwrap_err();
    let expected = "command 2 has not read its earlier input yet; nothing was written";
    assert_eq!(error.to_string(), expected);
    let kill = session
        .call("bash_kill", json!({ "id": 2, "signal": "KILL" }))
        .await;
    assert_eq!(
        text(&kill.unwrap()),
        "[command 2: ended by signal 9 (SIGKILL)]"
    );
}

#[tokio::test]
async fn the_list_shows_what_runs_and_what_ended_in_the_background() {
    let session = Session::open().await;
    let list = async || text(&session.call("bash_list", json!({})).await.unwrap());
    assert_eq!(list().await, "[no commands]");
    session
        .call("bash", json!({ "command": "true" }))
        .await
        .unwrap();
    let args = json!({ "command": "echo ab; sleep 1000", "yield_ms": 250 });
    session.call("bash", args).await.unwrap();
    let shown = list().await;
    let (begin, end) = (
        "2: still running, started ",
        " ago, 3 bytes: echo ab; sleep 1000",
    );
    assert!(shown.starts_with(begin) && shown.ends_with(end), "{shown}");
    session.call("bash_kill", json!({ "id": 2 })).await.unwrap();
    let shown = list().await;
    let begin = "2: killed: the command and its children were ended";
    assert!(shown.starts_with(begin), "{shown}");
    assert_eq!(
        shown.lines().count(),
        1,
        "what ended within its call is not listed"
    );
}

#[tokio::test]
async fn lines_and_patterns_are_found_in_all_of_the_output() {
    let session = Session::open().await;
    let line = "seq 1 100000; printf 'a\\r\\033[Kb\\n'; echo last";
    let output = session
        .call("bash", json!({ "command": line }))
        .await
        .unwrap();
    assert!(
        output.cut
            && text(&output).ends_with(
                "last\n[all of it is kept: bash_output with id 1 reads lines or finds a pattern]"
            )
    );
    let read = async |args| session.call("bash_output", args).await.unwrap();
    let range = read(json!({ "id": 1, "from_line": 50_000, "lines": 2 })).await;
    let expected = "50000: 50000\n50001: 50001\n[more: go on with from_line 50002]\n[exit code 0]";
    assert_eq!(range, ToolOutput::text(expected).with_cut(true));
    let tail = read(json!({ "id": 1, "from_line": 100_000 })).await;
    let expected = "100000: 100000\n100001: b\n100002: last\n[exit code 0]";
    assert_eq!(tail, ToolOutput::text(expected));
    let matches = read(json!({ "id": 1, "pattern": r"^7777\d$", "lines": 3 })).await;
    let rows = "77770: 77770\n77771: 77771\n77772: 77772\n";
    let expected = format!("{rows}[more: go on with from_line 77773]\n[exit code 0]");
    assert_eq!(matches, ToolOutput::text(expected).with_cut(true));
    let none = read(json!({ "id": 1, "pattern": "nowhere" })).await;
    assert_eq!(
        text(&none),
        "[no such line; there are 100002 so far]\n[exit code 0]"
    );
    let wrong = session
        .call("bash_output", json!({ "id": 1, "pattern": "(" }))
        .await;
    let error = wrong.unwrap_err().to_string();
    let begin = "invalid arguments for bash_output: pattern is no regular expression";
    assert!(error.starts_with(begin), "{error}");
}

#[tokio::test]
async fn a_hole_in_what_is_kept_is_shown() {
    let session = Session::open().await;
    let sink = Arc::new(MemoryOutput::new(20));
    let args = json!({ "command": "seq -w 1 20" });
    let bash = session.call_with("bash", args, Cancel::never(), sink);
    assert_eq!(bash.await.unwrap().status, ToolStatus::Ok);
    let read = session
        .call("bash_output", json!({ "id": 1, "from_line": 1 }))
        .await;
    let hole = "[… 40 bytes are not kept; line numbers go on behind them …]";
    let expected = format!("1: 01\n2: 02\n3: 03\n4: 0\n{hole}\n5: \n6: 18\n7: 19\n8: 20\n");
    assert_eq!(text(&read.unwrap()), format!("{expected}[exit code 0]"));
}

#[tokio::test]
async fn what_is_not_kept_is_named_and_what_is_unknown_too() {
    let session = Session::open().await;
    let args = json!({ "command": "true" });
    let bash = session.call_with("bash", args, Cancel::never(), Arc::new(NoOutput));
    bash.await.unwrap();
    let read = session
        .call("bash_output", json!({ "id": 1, "lines": 5 }))
        .await;
    let expected = "the output of command 1 is not kept here, only what is new can be read: leave \
                    out from_line, lines and pattern";
    assert_eq!(read.unwrap_err().to_string(), expected);
    for tool in ["bash_output", "bash_kill", "bash_input"] {
        let error = session.call(tool, json!({ "id": 7 })).await.unwrap_err();
        assert_eq!(error.to_string(), "there is no command 7; there is 1");
    }
    for tool in command_tools() {
        let context = ToolContext::unattended("call");
        let error = tool.call(context, r#"{"id":1}"#).await.unwrap_err();
        let expected = "nothing runs in the background here: every command ends with its call";
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn no_more_commands_run_than_may() {
    let session = Session::with(CommandsOptions::default().with_max_running(1)).await;
    going_on(&session, "echo ready; sleep 1000").await;
    let error = session
        .call("bash", json!({ "command": "touch file" }))
        .await
        .unwrap_err();
    let expected = "1 commands are running, no more may; end one with bash_kill";
    assert_eq!(error.to_string(), expected);
    assert!(!session.place.path().join("file").exists());
    session.call("bash_kill", json!({ "id": 1 })).await.unwrap();
    session
        .call("bash", json!({ "command": "touch file" }))
        .await
        .unwrap();
    assert!(session.place.path().join("file").exists());
}

#[tokio::test]
async fn the_last_fifty_that_ended_are_remembered_and_no_id_comes_twice() {
    let session = Session::open().await;
    for n in 1..=55 {
        let args = json!({ "command": format!("echo {n}") });
        session.call("bash", args).await.unwrap();
    }
    let ids: Vec<u32> = session
        .commands
        .list()
        .await
        .iter()
        .map(|info| info.id.get())
        .collect();
    // The newest one was running when the oldest was forgotten.
    assert_eq!(ids, (5..=55).collect::<Vec<_>>());
    let read = session
        .call("bash_output", json!({ "id": 5, "from_line": 1 }))
        .await;
    assert_eq!(text(&read.unwrap()), "1: 5\n[exit code 0]");
}

#[tokio::test]
async fn closing_ends_everything_and_lets_nothing_start() {
    let session = Session::open().await;
    for line in [
        "echo ready; sleep 1000",
        "trap '' TERM; echo; sleep 1000; sleep 1000",
        "sleep 1000 & exit 0",
        "yes",
    ] {
        let args = json!({ "command": line, "yield_ms": 250 });
        session.call("bash", args).await.unwrap();
    }
    assert!(session.processes().len() >= 4);
    timeout(SOON, session.commands.close()).await.unwrap();
    session.assert_empty().await;
    session.commands.close().await;
    assert_eq!(session.commands.list().await, []);
    let start = session.commands.start(
        session.workspace().processes(),
        Command::new("true"),
        StartOptions::new(Arc::new(NoOutput)),
    );
    let refused = start.await.map(|attended| attended.handle().id());
    assert!(matches!(refused, Err(CommandError::Closed)), "{refused:?}");
    session.task.await.unwrap();
}

#[tokio::test]
async fn dropping_the_loop_kills_every_group() {
    let session = Session::open().await;
    going_on(
        &session,
        "trap '' TERM; echo ready; sleep 1000 & sleep 1000",
    )
    .await;
    session.task.abort();
    session.assert_empty().await;
}

/// A sink that takes one piece each time it is let.
#[derive(Debug)]
struct Gate(Semaphore);

#[async_trait]
impl OutputSink for Gate {
    async fn write(&self, _bytes: Bytes) {
        self.0.acquire().await.unwrap().forget();
    }

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

#[tokio::test]
async fn a_sink_that_takes_nothing_holds_the_command_back_and_not_its_end() {
    let session = Session::open().await;
    let sink = Arc::new(Gate(Semaphore::new(2)));
    let args = json!({ "command": "yes", "yield_ms": 500 });
    let output = session
        .call_with("bash", args, Cancel::never(), sink)
        .await
        .unwrap();
    assert!(text(&output).contains("still running"), "{output:?}");
    let bytes = session.commands.list().await[0].bytes;
    assert!(bytes <= 3 * 64 * 1024, "{bytes} bytes were read");
    timeout(SOON, session.commands.close()).await.unwrap();
    session.assert_empty().await;
}

#[derive(Debug)]
struct Broken;

#[async_trait]
impl OutputSink for Broken {
    async fn write(&self, _bytes: Bytes) {
        panic!("a fault in a sink");
    }

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

#[tokio::test]
async fn a_fault_in_a_sink_costs_its_own_command_only() {
    let session = Session::open().await;
    going_on(&session, "echo ready; sleep 1000").await;
    let args = json!({ "command": "echo hi; sleep 1000" });
    let call = session.call_with("bash", args, Cancel::never(), Arc::new(Broken));
    let failed = timeout(SOON, call).await.unwrap().unwrap_err();
    let expected = "command 2 is gone: the session was closed, or its output could not be taken";
    assert_eq!(failed.to_string(), expected);
    let states: Vec<bool> = session
        .commands
        .list()
        .await
        .iter()
        .map(|info| info.status.is_running())
        .collect();
    assert_eq!(states, [true, false]);
    session.call("bash_kill", json!({ "id": 1 })).await.unwrap();
    session.assert_empty().await;
}

#[tokio::test]
async fn the_texts_of_the_command_tools_are_short() {
    let tools = command_tools();
    for tool in &tools {
        let length = tool.spec().description.len();
        let parameters = tool.spec().parameters.get();
        assert!(
            !parameters.contains("null"),
            "some providers refuse it: {parameters}"
        );
        assert!(length <= 350, "{}: {length} bytes", tool.spec().name);
    }
    let sizes = tools
        .iter()
        .map(|tool| tool.spec().description.len() + tool.spec().parameters.get().len());
    let total: usize = sizes.sum();
    assert!(total < 2_000, "{total} bytes are sent with each request");
}

#[tokio::test]
async fn u_061_what_left_the_group_of_a_command_ends_when_the_command_is_interrupted() {
    let session = Session::open().await;
    going_on(&session, "setsid sleep 1000 & echo ready; sleep 1000").await;
    let line = "setsid sh -c \"trap '' TERM; echo ready; while :; do sleep 0.1; echo on; done\" & \
                sleep 1000";
    let (context, cancel, mut output) = watched();
    let context = context.with_commands(session.commands.clone());
    let bash = session.tool("bash");
    let args = json!({ "command": line }).to_string();
    let interrupt = async {
        while output
            .recv()
            .await
            .is_some_and(|bytes| !bytes.starts_with(b"ready"))
        {}
        assert!(session.processes().len() > 3);
        cancel.cancel();
    };
    let (ended, ()) = futures::join!(bash.call(context, &args), interrupt);
    assert_eq!(ended.unwrap().status, ToolStatus::Interrupted);
    // The shell in the background and both of its sleeping commands go on.
    let deadline = Instant::now() + Duration::from_secs(3);
    while session.processes().len() > 3 {
        assert!(Instant::now() < deadline, "{:?}", session.processes());
        yield_now().await;
    }
    let kill = session.call("bash_kill", json!({ "id": 1 })).await.unwrap();
    assert_eq!(kill.status, ToolStatus::Ok);
    session.assert_empty().await;
}

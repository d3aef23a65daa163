//! Running commands.

use super::{Ran, Target, ok, refused, run, spawn, within};
use crate::error::ExecutorError;
use crate::process::{
    Command, ExitStatus, Input, OutputStream, Process, ProcessEvent, ProcessInput, Signal,
};

const SUCCESS: ExitStatus = ExitStatus::exited(0);

/// Standard output and standard error are told apart.
pub async fn both_outputs_arrive_each_on_its_stream(target: Target) {
    let workspace = target.open().await;
    let ran = run(&*workspace, Command::new("echo out; echo err >&2")).await;
    assert_eq!(ran, Ran::new("out\n", "err\n", SUCCESS));
}

/// Merged, they come in the order in which they were written.
pub async fn merged_output_keeps_the_order_of_writing(target: Target) {
    let workspace = target.open().await;
    let line = "for n in 1 2 3 4 5; do echo out $n; echo err $n >&2; done";
    let ran = run(&*workspace, Command::new(line).with_merged_output()).await;
    let expected: String = (1..=5).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!(ran, Ran::new(&expected, "", SUCCESS));
}

/// The exit code is that of the shell, and asking again gives it again.
pub async fn the_exit_code_is_told_each_time(target: Target) {
    let workspace = target.open().await;
    for code in [0, 1, 3, 127] {
        let mut process = spawn(&*workspace, Command::new(format!("exit {code}"))).await;
        for _ in 0..2 {
            assert_eq!(ok(within(process.wait()).await), ExitStatus::exited(code));
        }
    }
}

/// A command that reads its input finds the end at once.
pub async fn standard_input_is_closed(target: Target) {
    let workspace = target.open().await;
    assert_eq!(
        run(&*workspace, Command::new("cat; echo end")).await,
        Ran::new("end\n", "", SUCCESS)
    );
}

/// What is written to a piped input is read as it comes, and dropping it is its end.
pub async fn piped_input_is_read_to_its_end(target: Target) {
    let workspace = target.open().await;
    let line = "read first; echo \"got $first\"; cat; echo end";
    let command = Command::new(line).with_input(Input::Piped);
    let mut process = spawn(&*workspace, command).await;
    let mut input = input(&mut *process);
    assert!(
        process.take_input().is_none(),
        "the input must be given out once"
    );
    ok(within(input.write("one\n".into())).await);
    let Some(output) = within(process.next_output()).await else {
        panic!("the output must not end yet")
    };
    assert_eq!(output.bytes, "got one\n");
    ok(within(input.write("two\n".into())).await);
    drop(input);
    assert_eq!(stdout_until_closed(&mut *process).await, "two\nend\n");
}

/// A command that reads nothing holds the writer back, not the rest.
pub async fn input_that_is_not_read_does_not_stall_the_output(target: Target) {
    let workspace = target.open().await;
    let line = "n=0; while [ $n -lt 1000 ]; do echo $n; n=$((n+1)); done; wc -c";
    let command = Command::new(line).with_input(Input::Piped);
    let mut process = spawn(&*workspace, command).await;
    let mut input = input(&mut *process);
    let writing = async move { input.write(vec![b'x'; 1 << 20].into()).await };
    let (written, output) = futures::join!(within(writing), stdout_until_closed(&mut *process));
    ok(written);
    assert_eq!(output.lines().count(), 1_001);
    assert_eq!(
        output.lines().last().map(str::trim),
        Some("1048576"),
        "all bytes must arrive"
    );
}

/// Writing to a command that is gone is an error, not a hang.
pub async fn input_of_an_ended_command_is_refused(target: Target) {
    let workspace = target.open().await;
    let command = Command::new("exit 0").with_input(Input::Piped);
    let mut process = spawn(&*workspace, command).await;
    let mut input = input(&mut *process);
    ok(within(process.wait()).await);
    // Pipes and channels may take a little before they tell.
    let writing = async {
        loop {
            if let Err(error) = input.write(vec![b'x'; 1 << 16].into()).await {
                return error;
            }
        }
    };
    let error = within(writing).await;
    assert!(matches!(error, ExecutorError::Process { .. }), "{error:?}");
}

#[track_caller]
fn input(process: &mut dyn Process) -> Box<dyn ProcessInput> {
    match process.take_input() {
        Some(input) => input,
        None => panic!("a piped input must be there"),
    }
}

/// Variables of the command are added; a later one wins.
pub async fn a_command_gets_its_own_variables(target: Target) {
    let workspace = target.open().await;
    let command = Command::new(r#"printf '%s|%s' "$FIRST" "$SECOND""#)
        .with_env("FIRST", "old")
        .with_env("SECOND", "two words 漢")
        .with_env("FIRST", "new");
    assert_eq!(
        run(&*workspace, command).await,
        Ran::new("new|two words 漢", "", SUCCESS)
    );
}

/// A command runs in the root, or where it was told to.
pub async fn a_command_runs_where_it_was_told(target: Target) {
    let workspace = target
        .prepared("mkdir folder; echo root >name; echo folder >folder/name")
        .await;
    let absolute = format!("{}/folder", target.root);
    let cat = || Command::new("cat name");
    assert_eq!(
        run(&*workspace, cat()).await,
        Ran::new("root\n", "", SUCCESS)
    );
    for cwd in ["folder", "./folder/", &absolute] {
        assert_eq!(
            run(&*workspace, cat().with_cwd(cwd)).await,
            Ran::new("folder\n", "", SUCCESS)
        );
    }
}

/// A working directory that does not exist is named.
pub async fn a_missing_working_directory_is_named(target: Target) {
    let workspace = target.prepared("echo >file").await;
    let spawn = |cwd| {
        workspace
            .processes()
            .spawn(Command::new("true").with_cwd(cwd))
    };
    let error = refused(within(spawn("missing")).await);
    let path = format!("{}/missing", target.root);
    assert!(
        matches!(&error, ExecutorError::NotFound { path: named } if *named == path),
        "{error:?}"
    );
    let error = refused(within(spawn("file")).await);
    assert!(
        matches!(error, ExecutorError::NotADirectory { .. }),
        "{error:?}"
    );
}

/// A megabyte arrives whole and in order.
pub async fn big_output_arrives_whole(target: Target) {
    let workspace = target.open().await;
    let line = "n=0; while [ $n -lt 10000 ]; do echo $n 0123456789012345678901234567890123456789\
                0123456789012345678901234567890123456789; n=$((n+1)); done";
    let ran = run(&*workspace, Command::new(line)).await;
    let expected: String = (0..10_000)
        .map(|n| format!("{n} {}\n", "0123456789".repeat(8)))
        .collect();
    assert!(
        ran == Ran::new(&expected, "", SUCCESS),
        "{} bytes came",
        ran.stdout.len()
    );
}

/// A command that nobody reads from comes to its end while it is waited for.
pub async fn wait_does_not_stall_on_unread_output(target: Target) {
    let workspace = target.open().await;
    let line = "n=0; while [ $n -lt 5000 ]; do echo 0123456789012345678901234567890123456789; \
                n=$((n+1)); done; exit 4";
    let mut process = spawn(&*workspace, Command::new(line)).await;
    assert_eq!(ok(within(process.wait()).await), ExitStatus::exited(4));
}

/// A child that holds the output open does not hide that the shell has gone.
pub async fn the_exit_is_told_before_a_child_in_the_background_ends(target: Target) {
    let workspace = target.open().await;
    let mut process = spawn(&*workspace, Command::new("sleep 1000 & exit 5")).await;
    let event = ok(within(process.next_event()).await);
    assert_eq!(event, ProcessEvent::Exited(ExitStatus::exited(5)));
    assert!(
        process.is_alive(),
        "the child in the background must be known of"
    );
    ok(process.signal(Signal::Kill));
    assert_eq!(ok(within(process.next_event()).await), ProcessEvent::Closed);
}

/// A kill reaches children in the background, too; a second one is no error.
pub async fn kill_ends_the_whole_group(target: Target) {
    let workspace = target.open().await;
    let mut process = spawn(
        &*workspace,
        Command::new("echo ready; sleep 1000 & sleep 1000"),
    )
    .await;
    assert!(matches!(
        ok(within(process.next_event()).await),
        ProcessEvent::Output(_)
    ));
    ok(process.signal(Signal::Kill));
    let status = ok(within(process.wait()).await);
    assert!(!status.success(), "{status:?}");
    // The output is closed when the last member is gone.
    assert_eq!(within(process.next_output()).await, None);
    ok(process.signal(Signal::Kill));
}

/// A command may tidy up when it is asked to end.
pub async fn terminate_can_be_caught(target: Target) {
    let workspace = target.open().await;
    let line = "trap 'echo tidy; exit 7' TERM; echo ready; while true; do sleep 0.05; done";
    let mut process = spawn(&*workspace, Command::new(line)).await;
    assert!(matches!(
        ok(within(process.next_event()).await),
        ProcessEvent::Output(_)
    ));
    ok(process.signal(Signal::Terminate));
    assert_eq!(stdout_until_closed(&mut *process).await, "tidy\n");
    assert_eq!(ok(within(process.wait()).await), ExitStatus::exited(7));
}

/// Who drops a process leaves nothing behind.
pub async fn dropping_a_process_kills_its_group(target: Target) {
    let workspace = target.open().await;
    let mut process = spawn(
        &*workspace,
        Command::new("echo ready; sleep 1000 & sleep 1000"),
    )
    .await;
    assert!(matches!(
        ok(within(process.next_event()).await),
        ProcessEvent::Output(_)
    ));
    let Some(group) = process.id() else { return };
    drop(process);
    // A member that has ended but was not waited for by its new parent is a zombie (Z).
    let line = format!(
        "n=0; while ps -A -o pgid= -o stat= | grep -q '^ *{group} [^Z]'; do \
         n=$((n+1)); [ $n -lt 200 ] || exit 1; sleep 0.02; done"
    );
    assert_eq!(
        run(&*workspace, Command::new(line)).await,
        Ran::new("", "", SUCCESS)
    );
}

/// A shell may add lines of its own to standard error, about the child that it was waiting for.
async fn stdout_until_closed(process: &mut dyn Process) -> String {
    let mut bytes = Vec::new();
    while let Some(output) = within(process.next_output()).await {
        if output.stream == OutputStream::Stdout {
            bytes.extend_from_slice(&output.bytes);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

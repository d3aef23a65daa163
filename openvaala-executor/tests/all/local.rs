//! What is particular to this machine.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command as StdCommand;
use std::time::Duration;

use openvaala_executor::file::FileKind;
use openvaala_executor::local::{LocalExecutor, LocalOptions};
use openvaala_executor::process::{Command, ExitStatus, Process, ProcessEvent, Signal};
use openvaala_executor::{Executor, ExecutorError, Workspace};
use pretty_assertions::assert_eq;
use tokio::time::timeout;

use super::support::{Place, assert_gone, executor, members, temp_dir};

async fn output(workspace: &dyn Workspace, line: &str) -> (String, ExitStatus) {
    let mut process = workspace
        .processes()
        .spawn(Command::new(line))
        .await
        .unwrap();
    let mut bytes = Vec::new();
    while let Some(output) = process.next_output().await {
        bytes.extend_from_slice(&output.bytes);
    }
    (
        String::from_utf8(bytes).unwrap(),
        process.wait().await.unwrap(),
    )
}

async fn started(workspace: &dyn Workspace, line: &str) -> (Box<dyn Process>, i32) {
    let mut process = workspace
        .processes()
        .spawn(Command::new(line))
        .await
        .unwrap();
    let group = process.id().unwrap().try_into().unwrap();
    assert!(matches!(
        process.next_event().await.unwrap(),
        ProcessEvent::Output(_)
    ));
    (process, group)
}

#[tokio::test]
async fn s_48_what_is_no_regular_file_is_refused_in_time() {
    let place = Place::open().await;
    assert!(
        StdCommand::new("mkfifo")
            .arg(place.path().join("fifo"))
            .status()
            .unwrap()
            .success()
    );
    let _listener = UnixListener::bind(place.path().join("socket")).unwrap();
    symlink("fifo", place.path().join("link")).unwrap();
    let cases = [
        ("fifo", FileKind::Fifo),
        ("link", FileKind::Fifo),
        ("socket", FileKind::Socket),
        ("/dev/zero", FileKind::CharDevice),
        ("/dev/tty", FileKind::CharDevice),
    ];
    for (path, expected) in cases {
        let read = place.workspace.files().read(path, 0, 10);
        let error = timeout(Duration::from_secs(2), read)
            .await
            .unwrap()
            .unwrap_err();
        let refused = matches!(&error, ExecutorError::NotRegular { kind, .. } if *kind == expected);
        assert!(refused, "{path}: {error:?}");
    }
}

#[tokio::test]
async fn s_48_a_huge_sparse_file_is_read_in_part() {
    let place = Place::open().await;
    File::create(place.path().join("sparse"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    let read = place.workspace.files().read("sparse", (10 << 30) - 5, 100);
    assert_eq!(read.await.unwrap(), vec![0; 5]);
}

#[tokio::test]
async fn files_made_by_the_kernel_have_content_although_no_length() {
    let place = Place::open().await;
    let bytes = place
        .workspace
        .files()
        .read("/proc/self/stat", 0, 1_000)
        .await
        .unwrap();
    assert!(bytes.ends_with(b"\n"), "{bytes:?}");
}

#[tokio::test]
async fn s_81_a_command_sees_only_the_environment_it_was_given() {
    let (_folder, root) = temp_dir();
    let environment = [("PATH", "/usr/bin:/bin"), ("ONLY", "old"), ("ONLY", "new")];
    let environment = environment
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let executor = LocalExecutor::new(LocalOptions::new(environment).with_shell("sh"));
    let workspace = executor.open(&root).await.unwrap();
    let (text, _) = output(&*workspace, "exec env").await;
    let mut names: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("PWD=") && !line.starts_with("OPENVAALA_WORKSPACE="))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["ONLY=new", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn s_81_files_that_this_process_has_open_are_not_inherited() {
    let place = Place::open().await;
    let _open = File::create(place.path().join("canary")).unwrap();
    let (text, _) = output(&*place.workspace, "exec ls -l /proc/self/fd").await;
    assert!(
        text.contains("/dev/null") && !text.contains("canary"),
        "{text}"
    );
}

#[tokio::test]
async fn a_missing_shell_gives_way_to_sh() {
    let (_folder, root) = temp_dir();
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    let options = LocalOptions::new(vec![path]).with_shell("no-such-shell");
    let workspace = LocalExecutor::new(options).open(&root).await.unwrap();
    assert!(
        workspace.environment().shell.ends_with("/sh"),
        "{:?}",
        workspace.environment()
    );
    assert_eq!(
        output(&*workspace, "echo $0").await.1,
        ExitStatus::exited(0)
    );
}

#[tokio::test]
async fn no_shell_at_all_is_an_error_that_says_where_it_looked() {
    let (_folder, root) = temp_dir();
    let options = LocalOptions::new(vec![("PATH".to_owned(), root.clone())]);
    let error = LocalExecutor::new(options).open(&root).await.unwrap_err();
    let message = format!("executor local could not find the shell bash or sh in {root}");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn a_command_leads_a_process_group_of_its_own() {
    let place = Place::open().await;
    let (_process, group) = started(&*place.workspace, "echo ready; sleep 1000").await;
    assert!(members(group).contains(&group));
}

#[tokio::test]
async fn a_command_ended_by_a_signal_says_which() {
    let place = Place::open().await;
    assert_eq!(
        output(&*place.workspace, "kill -9 $$").await.1,
        ExitStatus::signalled(9)
    );
}

#[tokio::test]
async fn s_99_a_kill_leaves_no_member_and_no_zombie() {
    let place = Place::open().await;
    let line = "sleep 1000 & (sleep 1000 & sleep 1000) & echo ready; sleep 1000";
    let (mut process, group) = started(&*place.workspace, line).await;
    process.signal(Signal::Kill).unwrap();
    assert_eq!(process.wait().await.unwrap(), ExitStatus::signalled(9));
    assert_gone(group);
    assert!(
        !fs::exists(format!("/proc/{group}")).unwrap(),
        "the shell was not waited for"
    );
}

#[tokio::test]
async fn s_99_a_dropped_process_leaves_no_member() {
    let place = Place::open().await;
    let line = "sleep 1000 & echo ready; sleep 1000";
    let (process, group) = started(&*place.workspace, line).await;
    drop(process);
    assert_gone(group);
}

#[tokio::test]
async fn closing_leaves_no_member_of_any_group_although_nobody_reads() {
    let place = Place::open().await;
    let mut all = Vec::new();
    for line in [
        "sleep 1000 & echo; sleep 1000",
        "trap '' TERM; echo; sleep 1000; sleep 1000",
    ] {
        all.push(started(&*place.workspace, line).await);
    }
    place.workspace.close().await;
    all.iter().for_each(|(_, group)| assert_gone(*group));
}

#[tokio::test]
async fn a_process_may_be_waited_for_after_its_future_was_dropped() {
    let place = Place::open().await;
    let (mut process, _) = started(&*place.workspace, "echo ready; sleep 1000").await;
    assert!(
        timeout(Duration::from_millis(1), process.next_event())
            .await
            .is_err()
    );
    process.signal(Signal::Terminate).unwrap();
    let exited = ProcessEvent::Exited(ExitStatus::signalled(15));
    assert_eq!(process.next_event().await.unwrap(), exited);
    for _ in 0..2 {
        assert_eq!(process.next_event().await.unwrap(), ProcessEvent::Closed);
    }
}

#[tokio::test]
async fn a_command_line_that_the_system_refuses_is_an_error() {
    let place = Place::open().await;
    for line in [
        "echo \0".to_owned(),
        format!("echo {}", "x".repeat(200_000)),
    ] {
        let error = place
            .workspace
            .processes()
            .spawn(Command::new(line))
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                ExecutorError::Process {
                    operation: "start",
                    ..
                }
            ),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_root_is_taken_without_its_final_slash() {
    let (_folder, root) = temp_dir();
    let workspace = executor().open(&format!("{root}/./")).await.unwrap();
    assert_eq!(workspace.root(), root);
}

#[tokio::test]
async fn a_hundred_commands_run_at_once() {
    let place = Place::open().await;
    let runs = (0..100).map(|n| {
        let workspace = &place.workspace;
        async move { output(&**workspace, &format!("echo {n}")).await.0 }
    });
    let expected: Vec<String> = (0..100).map(|n| format!("{n}\n")).collect();
    assert_eq!(futures::future::join_all(runs).await, expected);
}

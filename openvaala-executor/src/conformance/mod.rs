//! The suite that an executor must pass (feature `conformance`; no part of the stable interface).
//!
//! [`executor_conformance!`](crate::executor_conformance) writes one test a case.

#![expect(clippy::panic, reason = "a case fails by a panic, as every test does")]

mod changes;
mod files;
mod open;
mod processes;
mod tools;

use std::any::Any;
use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

pub use self::changes::*;
pub use self::files::*;
pub use self::open::*;
pub use self::processes::*;
pub use self::tools::*;
use crate::executor::Executor;
use crate::process::{Command, ExitStatus, OutputStream, Process, ProcessEvent};
use crate::workspace::Workspace;

/// Nothing in the suite takes this long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// An executor to be tested, and an empty directory on it.
#[derive(Debug)]
pub struct Target {
    executor: Arc<dyn Executor>,
    root: String,
    _keep: Box<dyn Keep>,
}

/// Anything that lives as long as a test, such as a temporary directory or a server.
pub trait Keep: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> Keep for T {}

impl Target {
    /// An executor with the absolute path of an empty directory on it; `keep` is dropped at the
    /// end of the test.
    pub fn new(executor: Arc<dyn Executor>, root: impl Into<String>, keep: impl Keep) -> Self {
        Self {
            executor,
            root: root.into(),
            _keep: Box::new(keep),
        }
    }

    async fn open(&self) -> Arc<dyn Workspace> {
        ok(within(self.executor.open(&self.root)).await)
    }

    /// Opens a workspace and runs a line in it that prepares the case.
    async fn prepared(&self, line: &str) -> Arc<dyn Workspace> {
        let workspace = self.open().await;
        let ran = run(&*workspace, Command::new(line)).await;
        assert!(
            ran.status.success(),
            "could not prepare with {line:?}: {ran:?}"
        );
        workspace
    }
}

/// Writes one test for each case that an executor must pass.
///
/// The argument is an async function or closure that makes a [`Target`](crate::conformance::Target).
/// The crate that uses it needs `tokio` with the features `macros` and `rt-multi-thread`. The
/// environment of the executor must have a POSIX shell with the usual utilities.
///
/// ```
/// # #[cfg(feature = "local")]
/// mod local {
///     use std::sync::Arc;
///
///     use openvaala_executor::conformance::Target;
///     use openvaala_executor::local::{LocalExecutor, LocalOptions};
///
///     async fn make() -> Target {
///         let folder = tempfile::tempdir().unwrap();
///         let root = folder.path().to_str().unwrap().to_owned();
///         Target::new(Arc::new(LocalExecutor::new(LocalOptions::default())), root, folder)
///     }
///
///     openvaala_executor::executor_conformance!(make);
/// }
/// ```
#[macro_export]
macro_rules! executor_conformance {
    ($make:expr) => {
        $crate::executor_conformance! { @cases $make;
            open_of_a_missing_root_names_it,
            open_of_a_file_is_refused,
            open_of_a_relative_path_is_refused,
            a_workspace_says_what_and_where_it_is,
            a_closed_workspace_starts_nothing,
            closing_ends_what_runs,
            metadata_tells_kind_and_length,
            read_gives_a_range_of_bytes,
            read_refuses_what_is_no_file,
            a_missing_file_is_named_as_resolved,
            list_is_sorted_by_name,
            a_home_directory_is_not_expanded,
            a_change_writes_and_removes_files,
            a_refused_change_changes_nothing,
            a_change_says_why_it_is_refused,
            a_change_finds_what_it_expects,
            a_change_keeps_links,
            a_change_keeps_permissions,
            both_outputs_arrive_each_on_its_stream,
            merged_output_keeps_the_order_of_writing,
            the_exit_code_is_told_each_time,
            standard_input_is_closed,
            piped_input_is_read_to_its_end,
            input_that_is_not_read_does_not_stall_the_output,
            input_of_an_ended_command_is_refused,
            a_command_gets_its_own_variables,
            a_command_runs_where_it_was_told,
            a_missing_working_directory_is_named,
            big_output_arrives_whole,
            wait_does_not_stall_on_unread_output,
            the_exit_is_told_before_a_child_in_the_background_ends,
            kill_ends_the_whole_group,
            terminate_can_be_caught,
            dropping_a_process_kills_its_group,
            the_environment_tools_are_offered,
            the_tools_work_together,
            a_cancelled_command_ends_in_time,
        }
    };
    (@cases $make:expr; $($case:ident,)*) => {
        $(
            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::conformance::$case(($make)().await).await;
            }
        )*
    };
}

/// What a command left behind.
#[derive(Debug, Eq, PartialEq)]
struct Ran {
    stdout: String,
    stderr: String,
    status: ExitStatus,
}

impl Ran {
    fn new(stdout: &str, stderr: &str, status: ExitStatus) -> Self {
        Self {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            status,
        }
    }
}

async fn spawn(workspace: &dyn Workspace, command: Command) -> Box<dyn Process> {
    ok(within(workspace.processes().spawn(command)).await)
}

/// Runs a command until its outputs are closed.
async fn run(workspace: &dyn Workspace, command: Command) -> Ran {
    let mut process = spawn(workspace, command).await;
    let (mut stdout, mut stderr, mut exited) = (Vec::new(), Vec::new(), None);
    loop {
        match ok(within(process.next_event()).await) {
            ProcessEvent::Closed => break,
            ProcessEvent::Exited(status) => {
                assert_eq!(exited.replace(status), None, "the exit must be told once");
            }
            ProcessEvent::Output(output) => match output.stream {
                OutputStream::Stdout => stdout.extend_from_slice(&output.bytes),
                OutputStream::Stderr => stderr.extend_from_slice(&output.bytes),
            },
        }
    }
    let Some(status) = exited else {
        panic!("the exit must be told before the end")
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran {
        stdout: text(stdout),
        stderr: text(stderr),
        status,
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    match timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("it hangs"),
    }
}

#[track_caller]
fn ok<T, E: Display + Debug>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error} ({error:?})"),
    }
}

#[track_caller]
fn refused<T, E: Debug>(result: Result<T, E>) -> E {
    match result {
        Ok(_) => panic!("it must be refused"),
        Err(error) => error,
    }
}

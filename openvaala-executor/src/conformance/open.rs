//! Opening and closing workspaces.

use super::{Target, ok, refused, spawn, within};
use crate::error::ExecutorError;
use crate::process::{Command, ProcessEvent};

/// Opening what does not exist names the path.
pub async fn open_of_a_missing_root_names_it(target: Target) {
    let path = format!("{}/missing", target.root);
    let error = refused(within(target.executor.open(&path)).await);
    assert!(
        matches!(&error, ExecutorError::NotFound { path: named } if *named == path),
        "{error:?}"
    );
}

/// A file is no working directory.
pub async fn open_of_a_file_is_refused(target: Target) {
    target.prepared("echo >file").await;
    let error = refused(within(target.executor.open(&format!("{}/file", target.root))).await);
    assert!(
        matches!(error, ExecutorError::NotADirectory { .. }),
        "{error:?}"
    );
}

/// A relative path has no meaning before there is a working directory.
pub async fn open_of_a_relative_path_is_refused(target: Target) {
    let error = refused(within(target.executor.open("folder")).await);
    assert!(
        matches!(error, ExecutorError::InvalidPath { .. }),
        "{error:?}"
    );
}

/// A workspace knows its executor, its root and its environment.
pub async fn a_workspace_says_what_and_where_it_is(target: Target) {
    let workspace = target.open().await;
    assert_eq!(workspace.executor(), target.executor.id());
    assert_eq!(workspace.root(), target.root);
    let environment = workspace.environment();
    for text in [&environment.os, &environment.arch, &environment.shell] {
        assert!(!text.is_empty(), "{environment:?}");
    }
}

/// After closing, nothing starts; closing again does nothing.
pub async fn a_closed_workspace_starts_nothing(target: Target) {
    let workspace = target.open().await;
    within(workspace.close()).await;
    within(workspace.close()).await;
    let error = refused(within(workspace.processes().spawn(Command::new("true"))).await);
    assert!(matches!(error, ExecutorError::Closed { .. }), "{error:?}");
}

/// Closing ends running commands, also those that do not end when asked.
pub async fn closing_ends_what_runs(target: Target) {
    let workspace = target.open().await;
    let line = "trap '' TERM; echo ready; while true; do sleep 0.1; done";
    let mut process = spawn(&*workspace, Command::new(line)).await;
    assert!(matches!(
        ok(within(process.next_event()).await),
        ProcessEvent::Output(_)
    ));
    within(workspace.close()).await;
    let status = ok(within(process.wait()).await);
    assert!(!status.success(), "{status:?}");
}

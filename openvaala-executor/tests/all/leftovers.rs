//! What is left of a runtime that died.

use std::fs;
use std::time::{Duration, Instant};

use openvaala_executor::Executor;
use openvaala_executor::local::{Leftover, LocalExecutor, LocalOptions, end_leftovers, leftovers};
use openvaala_executor::process::Command;
use pretty_assertions::assert_eq;
use tokio::task::yield_now;

use super::session::marked;
use super::support::{Place, temp_dir};

const RUNTIME: &str = "OPENVAALA_RUNTIME";

/// Runs a line with a marker, in a workspace that is left as a crash would leave it.
async fn run_marked(marker: &str, line: &str) {
    let (folder, root) = temp_dir();
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    let options = LocalOptions::new(vec![path]).with_marker(marker);
    let workspace = LocalExecutor::new(options).open(&root).await.unwrap();
    let mut process = workspace
        .processes()
        .spawn(Command::new(line))
        .await
        .unwrap();
    assert!(process.wait().await.unwrap().success());
    drop(folder);
}

/// Both are out of their group when the line has ended: each says so by a file, since `setsid -f` returns before that.
const ESCAPES: &str = "setsid -f sh -c ': >first; exec sleep 1000' >/dev/null 2>&1 </dev/null; \
     setsid -f sh -c \": >second; trap '' TERM; sleep 1000; sleep 1000\" >/dev/null 2>&1 </dev/null; \
     until [ -e first ] && [ -e second ]; do sleep 0.01; done";

fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// Waits until both run: while one becomes what it runs it shows no marker.
async fn two_are_marked(variable: &str, marker: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while marked(variable, marker).len() < 2 {
        assert!(Instant::now() < deadline, "{marker:?} does not run");
        yield_now().await;
    }
}

#[tokio::test]
async fn leftovers_of_other_runtimes_are_ended_and_own_ones_are_not() {
    let prefix = unique("leftover");
    let (old, own, other) = (
        format!("{prefix}/1"),
        format!("{prefix}/2"),
        unique("stranger"),
    );
    for marker in [&old, &own, &other] {
        run_marked(marker, ESCAPES).await;
    }
    // What setsid left behind takes a moment to become what it runs.
    let deadline = Instant::now() + Duration::from_secs(10);
    let found = loop {
        let found = leftovers(&prefix, &own);
        let sleeps = |leftover: &Leftover| leftover.command == "sleep 1000";
        if found.len() >= 2 && found.iter().any(sleeps) {
            break found;
        }
        assert!(Instant::now() < deadline, "{found:?}");
        yield_now().await;
    };
    assert!(
        found.iter().all(|leftover| leftover.marker == old),
        "{found:?}"
    );
    let ended = end_leftovers(&prefix, &own).await;
    assert!(ended.len() >= 2, "{ended:?}");
    assert_eq!(leftovers(&prefix, &own), []);
    two_are_marked(RUNTIME, &own).await;
    two_are_marked(RUNTIME, &other).await;
    end_leftovers(&prefix, "").await;
    end_leftovers(&other, "").await;
    assert!(marked(RUNTIME, &own).is_empty() && marked(RUNTIME, &other).is_empty());
    assert_eq!(
        end_leftovers(&prefix, "").await,
        [],
        "nothing is left to end"
    );
}

#[tokio::test]
async fn closing_a_workspace_ends_what_left_its_group() {
    let place = Place::open().await;
    let line = format!("echo $OPENVAALA_WORKSPACE >mark; {ESCAPES}");
    let command = Command::new(line).with_env("OPENVAALA_WORKSPACE", "hidden");
    let mut process = place.workspace.processes().spawn(command).await.unwrap();
    assert!(process.wait().await.unwrap().success());
    let mark = fs::read_to_string(place.path().join("mark")).unwrap();
    two_are_marked("OPENVAALA_WORKSPACE", mark.trim()).await;
    place.workspace.close().await;
    assert!(marked("OPENVAALA_WORKSPACE", mark.trim()).is_empty());
}

//! One data directory has one server, whatever lies around in it.

use std::fs;
use std::process;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::mounts::{self, Bound};
use openvaala_tests::notice::is_long;
use openvaala_tests::running::Outcome;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Fault};
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use rustix::process::Signal;

use crate::support::{sandbox_with_model, stop};

/// The exit code of a server whose data directory another one has.
const IN_USE: i32 = 4;

/// How often a server is killed and another one started.
const ROUNDS: usize = 10;

#[tokio::test]
async fn p_01_u_018_a_second_server_is_told_who_has_the_directory_and_the_first_goes_on() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    expect_refused(sandbox.run(&["serve"]), server.pid(), &sandbox);
    expect_it_serves(&sandbox, server).await;
}

#[tokio::test]
async fn p_02_a_killed_server_never_stands_in_the_way_of_the_next() {
    let (sandbox, _model) = sandbox_with_model();
    for _ in 0..if is_long() { 10 * ROUNDS } else { ROUNDS } {
        sandbox.serve().kill();
    }
    expect_it_serves(&sandbox, sandbox.serve()).await;
}

#[tokio::test]
async fn p_03_u_018_a_lock_file_that_names_a_living_stranger_is_only_information() {
    let (sandbox, _model) = sandbox_with_model();
    sandbox.serve().kill();
    for stranger in [1, process::id()] {
        let text =
            format!(r#"{{"pid":{stranger},"host":"elsewhere","started_at":1,"address":null}}"#);
        fs::write(sandbox.data().join("openvaala.lock"), text).unwrap();
        expect_it_serves(&sandbox, sandbox.serve()).await;
    }
}

#[tokio::test]
async fn p_05_a_removed_or_replaced_lock_file_admits_no_second_server() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let lock = sandbox.data().join("openvaala.lock");
    fs::remove_file(&lock).unwrap();
    let refused = sandbox.run(&["serve"]);
    assert_eq!(refused.code, Some(IN_USE), "{refused:?}");
    let other = sandbox.root().join("other.lock");
    fs::write(&other, "{}").unwrap();
    fs::rename(&other, &lock).unwrap();
    let refused = sandbox.run(&["serve"]);
    assert_eq!(refused.code, Some(IN_USE), "{refused:?}");
    expect_it_serves(&sandbox, server).await;
}

#[tokio::test]
async fn p_06_a_data_directory_is_the_same_by_any_way_to_it() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let link = sandbox.root().join("link");
    std::os::unix::fs::symlink(sandbox.data(), &link).unwrap();
    let roundabout = sandbox.root().join("project/../data");
    for way in [
        link.to_str().unwrap(),
        roundabout.to_str().unwrap(),
        "../data",
        "../data/.",
    ] {
        let refused = sandbox.run(&["serve", "--data-dir", way]);
        expect_refused(refused, server.pid(), &sandbox);
    }
    if mounts::available("p_06: a bind mount of the data directory") {
        let at = sandbox.root().join("bound");
        let bound = Bound::mount(sandbox.data(), &at);
        let refused = sandbox.run(&["serve", "--data-dir", at.to_str().unwrap()]);
        assert_eq!(refused.code, Some(IN_USE), "{refused:?}");
        drop(bound);
    }
    expect_it_serves(&sandbox, server).await;
}

#[test]
fn p_07_a_file_system_that_cannot_lock_is_refused_with_an_explanation() {
    if !strace::available("p_07: ENOLCK on flock") {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    for error in ["ENOLCK", "EOPNOTSUPP"] {
        let log = sandbox.root().join("strace");
        let fault = Fault::error("flock", error);
        let refused = sandbox.serve_under(&fault.wrapper(&log)).unwrap_err();
        let data = sandbox.data().to_str().unwrap();
        let _ = refused.expect_code(1).expect_stderr(&["lock", data]);
    }
}

#[tokio::test]
async fn p_16_signals_and_a_lost_terminal_end_no_server() {
    let (sandbox, _model) = sandbox_with_model();
    for redirection in [">&- 2>&-", ">/dev/full 2>/dev/full", ""] {
        let script = format!(r#"exec "$0" "$@" {redirection}"#);
        let wrapper = ["sh", "-c", &script].map(str::to_owned);
        let server = sandbox.serve_under(&wrapper).unwrap();
        for signal in [Signal::HUP, Signal::PIPE] {
            server.signal(signal);
        }
        expect_it_serves(&sandbox, server).await;
    }
}

/// The lock says where the server is, so that somebody else can ask it (u_022).
#[tokio::test]
async fn u_022_two_data_directories_have_two_servers_and_each_lock_names_its_host() {
    let (first, _model) = sandbox_with_model();
    let (second, _other) = sandbox_with_model();
    let servers = [first.serve(), second.serve()];
    for (sandbox, server) in [&first, &second].into_iter().zip(servers) {
        let lock = fs::read_to_string(sandbox.data().join("openvaala.lock")).unwrap();
        let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
        assert_eq!(lock["pid"], server.pid());
        assert_eq!(lock["address"], server.discovery.address.as_str());
        assert!(lock["host"].as_str().is_some_and(|host| !host.is_empty()));
        expect_it_serves(sandbox, server).await;
    }
}

#[track_caller]
fn expect_refused(outcome: Outcome, pid: u32, sandbox: &Sandbox) {
    let data = fs::canonicalize(sandbox.data()).unwrap();
    let data = data.to_str().unwrap();
    let _ = outcome
        .expect_code(IN_USE)
        .expect_stderr(&[&pid.to_string(), data]);
}

async fn expect_it_serves(sandbox: &Sandbox, server: openvaala_tests::server::Server) {
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation, "look around").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
}

//! A server that is killed exactly at its n-th system call, for n = 1, 2, 3 … until it lives to the end.

use std::fs;
use std::path::PathBuf;

use openvaala_protocol::client::ClientError;
use openvaala_tests::checker::{When, check};
use openvaala_tests::journal::Journal;
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::watcher::{TurnEnd, Watcher};
use rustix::process::Signal;

use crate::support::{conversations_on_disk, expect_recovered, sandbox_with_model, stop};

/// After how many calls to look for the end at the latest.
const END: u32 = 3_000;

/// The next n: with `OPENVAALA_LONG` every one, else ever larger steps after the first ones.
fn after(n: u32) -> u32 {
    if is_long() { n + 1 } else { n + 1 + n / 8 }
}

#[tokio::test]
async fn r_03_killed_at_any_mkdir_or_rename_nothing_acknowledged_is_lost() {
    at_every("mkdir,mkdirat").await;
    at_every("rename,renameat,renameat2").await;
}

#[tokio::test]
async fn r_03_killed_at_any_unlink_nothing_acknowledged_is_lost() {
    at_every("unlink,unlinkat,rmdir").await;
}

#[tokio::test]
async fn r_03_killed_at_any_openat_nothing_acknowledged_is_lost() {
    at_every("openat").await;
}

#[tokio::test]
async fn r_03_killed_at_any_write_nothing_acknowledged_is_lost() {
    at_every("write,pwrite64,writev").await;
}

#[tokio::test]
async fn r_03_killed_at_any_flush_nothing_acknowledged_is_lost() {
    at_every("fdatasync").await;
    at_every("fsync").await;
}

#[tokio::test]
async fn r_03_killed_at_any_truncation_nothing_acknowledged_is_lost() {
    at_every("ftruncate").await;
}

#[tokio::test]
async fn r_03_killed_at_any_call_on_the_logs_of_a_conversation_nothing_acknowledged_is_lost() {
    for calls in ["write,pwrite64,writev", "fdatasync"] {
        at_every_in_a_conversation(calls).await;
    }
}

/// Runs the script with a kill at the n-th of these calls, until it is met no more.
async fn at_every(calls: &str) {
    if !strace::available(&format!("r_03: kills at {calls}")) {
        return;
    }
    let (mut n, mut kills) = (1, 0);
    while at(calls, n).await {
        kills += 1;
        assert!(n < END, "{calls}: there is no end to them");
        n = after(n);
    }
    println!("{calls}: {kills} kills, none at {n}");
}

/// Whether the n-th of these calls was met.
async fn at(calls: &str, n: u32) -> bool {
    let (sandbox, _model) = sandbox_with_model();
    let log = sandbox.root().join("strace");
    let fault = Fault::kill(calls).nth(n);
    let mut journal = Journal::default();
    if let Ok(server) = sandbox.serve_under(&fault.wrapper(&log)) {
        if let Ok(mut watcher) = Watcher::try_connect(&server.discovery).await {
            // What fails here fails since the server is gone.
            let done = script(&mut watcher, &sandbox).await;
            let end = tokio::task::spawn_blocking(move || {
                server.signal(Signal::TERM);
                server.finish()
            });
            let end = end.await.unwrap();
            watcher.drain_to_the_end().await;
            journal = watcher.journal;
            assert!(
                done.is_ok() || end.code.is_none(),
                "{calls} {n}: it failed, and the server lived: {done:?}"
            );
        } else {
            drop(server);
        }
    }
    println!("{calls} {n}: {} entries were acknowledged", journal.len());
    check(sandbox.data(), &journal, When::Crashed);
    expect_recovered(&sandbox, journal).await;
    was_killed(&log)
}

/// What a client does: two conversations, three turns, one tool call.
async fn script(watcher: &mut Watcher, sandbox: &Sandbox) -> Result<(), ClientError> {
    let first = watcher.try_create(&sandbox.project()).await?;
    watcher.try_ask(first, "look around").await?;
    watcher.try_ask(first, "one").await?;
    let second = watcher.try_create(&sandbox.project()).await?;
    watcher.try_ask(second, "two").await?;
    watcher.list().await?;
    Ok(())
}

/// As [`at_every`], for the calls on the logs of one conversation alone.
async fn at_every_in_a_conversation(calls: &str) {
    if !strace::available(&format!("r_03: kills at {calls} of a conversation")) {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    let (mut n, mut journal) = (1, Journal::default());
    loop {
        let server = sandbox.serve();
        let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
        let conversation = watcher.create(&sandbox.project()).await;
        watcher.ask(conversation, "first").await;
        let log = sandbox.root().join("strace");
        let mut fault = Fault::kill(calls).nth(n);
        for path in logs(&sandbox, &conversation.to_string()) {
            fault = fault.on(&path);
        }
        let attached = Attached::to(server.pid(), &fault, &log);
        let done = watcher.try_ask(conversation, "look around").await;
        drop(attached);
        if done.as_ref().is_ok_and(TurnEnd::is_completed) {
            stop(server).await;
            assert!(n > 1, "{calls}: not even the first was met");
            println!("{calls} of a conversation: none at {n}");
            return;
        }
        let ended = tokio::task::spawn_blocking(|| server.finish()).await;
        assert_eq!(ended.unwrap().code, None, "{calls} {n}: {done:?}");
        watcher.drain_to_the_end().await;
        check(sandbox.data(), &watcher.journal, When::Crashed);
        journal = expect_recovered(&sandbox, watcher.journal).await;
        assert!(!conversations_on_disk(&sandbox).is_empty());
        n += 1;
    }
}

fn logs(sandbox: &Sandbox, conversation: &str) -> Vec<PathBuf> {
    let folder = sandbox.data().join("conversations").join(conversation);
    let entries = fs::read_dir(folder).expect("the conversation is on disk");
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Whether a log of strace tells of a kill.
fn was_killed(log: &std::path::Path) -> bool {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.contains("killed by SIGKILL")
}

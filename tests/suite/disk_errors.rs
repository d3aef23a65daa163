//! Errors of the disk under the real server: each is told, harms nobody else, and is over when it is over.

use std::path::PathBuf;

use openvaala_protocol::client::ClientError;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::server::StatusParams;
use openvaala_tests::checker::{When, check};
use openvaala_tests::mounts::{self, SmallDisk};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::watcher::{TurnEnd, Watcher};
use pretty_assertions::assert_eq;

use crate::support::{conversations_on_disk, expect_recovered, sandbox_with_model, stop};

/// Where no loop over n comes to.
const END: u32 = 200;

const WRITES: &str = "write,pwrite64,writev";

#[tokio::test]
async fn r_17_a_failed_flush_of_a_log_is_told_and_the_log_goes_on_without_a_restart() {
    each_call_of_a_log("fdatasync", "EIO").await;
}

#[tokio::test]
async fn r_16_a_failed_write_of_a_log_is_told_and_the_log_goes_on_without_a_restart() {
    each_call_of_a_log(WRITES, "EIO").await;
}

#[tokio::test]
async fn r_12_no_space_at_any_write_of_a_log_is_told_and_the_log_goes_on_without_a_restart() {
    each_call_of_a_log(WRITES, "ENOSPC").await;
}

#[tokio::test]
async fn r_14_a_quota_that_is_used_up_is_told_and_the_log_goes_on_without_a_restart() {
    each_call_of_a_log(WRITES, "EDQUOT").await;
}

#[tokio::test]
async fn r_15_a_write_that_would_block_is_told_and_the_log_goes_on_without_a_restart() {
    each_call_of_a_log(WRITES, "EAGAIN").await;
}

#[tokio::test]
async fn r_15_an_interrupted_write_is_completed_and_nobody_notices() {
    let Some(mut world) = World::new("r_15: EINTR").await else {
        return;
    };
    let attached = world.attach(&Fault::error(WRITES, "EINTR").when("1+2"));
    let turn = world.ask_first("look around").await;
    assert!(turn.as_ref().is_ok_and(TurnEnd::is_completed), "{turn:?}");
    assert!(attached.injected() > 0);
    drop(attached);
    world.end().await;
}

#[tokio::test]
async fn r_16_a_log_that_cannot_be_read_is_told_and_read_when_it_can_be() {
    let Some(world) = World::new("r_16: EIO on read").await else {
        return;
    };
    // A fresh server has nothing of it in memory.
    let (sandbox, first, journal) = (world.sandbox, world.first, world.watcher.journal);
    stop(world.server).await;
    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
    let log = sandbox.root().join("strace");
    let mut fault = Fault::error("read,pread64", "EIO");
    for path in logs(&sandbox, first) {
        fault = fault.on(&path);
    }
    let attached = Attached::to(server.pid(), &fault, &log);
    match watcher.get(first).await {
        Err(ClientError::Rpc(error)) => assert!(error.message.len() > 10, "{error}"),
        other => assert_eq!(attached.injected(), 0, "{other:?}"),
    }
    watcher.subscribe(world.second, None).await;
    let second = watcher.ask(world.second, "and you?").await;
    assert_eq!(second.status, TurnStatus::Completed, "I-5");
    drop(attached);
    watcher.subscribe(first, None).await;
    let turn = watcher.ask(first, "now again").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    stop(server).await;
    expect_recovered(&sandbox, watcher.journal).await;
    drop(world.model);
}

#[tokio::test]
async fn r_18_a_failed_flush_of_a_directory_creates_nothing_and_a_later_try_succeeds() {
    if !strace::available("r_18: EIO on fsync") {
        return;
    }
    let mut n = 1;
    while creation_meets(&Fault::error("fsync", "EIO").nth(n)).await {
        n += 1;
        assert!(n < END, "there is no end to them");
    }
    assert!(n > 1, "not even the first flush was met");
    println!("fsync: none at {n}");
}

#[tokio::test]
async fn r_16_a_log_that_cannot_be_opened_creates_nothing_and_a_later_try_succeeds() {
    if !strace::available("r_16: EIO on open") {
        return;
    }
    // Half of the calls of each thread fail, in turn.
    for when in ["1+2", "2+2"] {
        let met = creation_meets(&Fault::error("openat,mkdir", "EIO").when(when)).await;
        assert!(met, "{when}");
    }
}

#[tokio::test]
async fn r_13_a_first_message_on_a_full_disk_is_not_lost_and_nothing_half_is_listed() {
    if !mounts::available("r_13: a disk that is full at the first message") {
        return;
    }
    let (sandbox, mut model) = sandbox_with_model();
    let disk = SmallDisk::mount(sandbox.data());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    disk.fill_but(0);
    let large = "x".repeat(64 << 10);
    for _ in 0..2 {
        match watcher.send(conversation, &large).await {
            Err(ClientError::Rpc(error)) => {
                assert!(error.message.to_lowercase().contains("space"), "{error}");
            }
            other => panic!("a full disk took an input: {other:?}"),
        }
        assert_eq!(watcher.list().await.unwrap(), []);
        assert_eq!(conversations_on_disk(&sandbox), []);
    }
    disk.free();
    let turn = watcher.ask(conversation, "now there is room").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    model.expect_sound_requests();
    stop(server).await;
    expect_recovered(&sandbox, watcher.journal).await;
    drop(disk);
}

#[tokio::test]
async fn r_14_a_limit_of_the_size_of_files_is_told_and_ends_nothing() {
    let (sandbox, mut model) = sandbox_with_model();
    let limit = ["prlimit", "--fsize=1048576"].map(str::to_owned);
    let server = sandbox.serve_under(&limit).unwrap();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let first = watcher.create(&sandbox.project()).await;
    let second = watcher.create(&sandbox.project()).await;
    watcher.ask(first, "one").await;
    watcher.ask(second, "one").await;
    let large = "x".repeat(3 << 20);
    match watcher.send(first, &large).await {
        Err(ClientError::Rpc(error)) => {
            let text = error.message.to_lowercase();
            assert!(
                text.contains("too large") || text.contains("space"),
                "{error}"
            );
        }
        other => panic!("a limited file took an input: {other:?}"),
    }
    for conversation in [second, first] {
        let turn = watcher.ask(conversation, "look around").await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    }
    model.expect_sound_requests();
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
    expect_recovered(&sandbox, watcher.journal).await;
}

/// Fails the n-th of these calls on a conversation's logs, for n = 1, 2, 3 … until none is met.
async fn each_call_of_a_log(calls: &str, error: &str) {
    let Some(mut world) = World::new(&format!("{error} at {calls}")).await else {
        return;
    };
    for n in 1..END {
        let attached = world.attach(&Fault::error(calls, error).nth(n));
        let answer = world.ask_first("look around").await;
        match &answer {
            Err(ClientError::Rpc(told)) => {
                assert!(told.message.len() > 10, "{calls} {n}: {told}");
            }
            Err(other) => panic!("{calls} {n}: {other:?}"),
            Ok(end) => assert_ne!(*end, TurnEnd::Gone, "{calls} {n}"),
        }
        let met = attached.injected();
        let failed = !answer.as_ref().is_ok_and(TurnEnd::is_completed);
        // A failed write is taken back and over; after a failed flush nobody knows what is on disk.
        if failed && calls == "fdatasync" {
            let status = world
                .watcher
                .client
                .call::<method::ServerStatus>(StatusParams {});
            let degraded = status.await.unwrap().degraded;
            assert!(
                !degraded.is_empty(),
                "{calls} {n}: the status tells nothing"
            );
        }
        // The fault is still there, but only for the first one.
        let second = world.watcher.ask(world.second, "and you?").await;
        assert_eq!(second.status, TurnStatus::Completed, "I-5: {calls} {n}");
        drop(attached);
        assert!(world.server.is_alive(), "{calls} {n}");
        let again = world.ask_first("now again").await;
        assert!(
            again.as_ref().is_ok_and(TurnEnd::is_completed),
            "{calls} {n}: it stays broken: {again:?}"
        );
        println!("{calls} {n}: met {met} times, {answer:?}");
        if met == 0 {
            assert!(n > 1, "{calls}: not even the first was met");
            let completed = answer.as_ref().is_ok_and(TurnEnd::is_completed);
            assert!(completed, "{calls} {n}: {answer:?}");
            return world.end().await;
        }
    }
    panic!("{calls}: there is no end to them");
}

/// A server with two conversations.
struct World {
    sandbox: Sandbox,
    model: openvaala_tests::fake_model::FakeModel,
    server: Server,
    watcher: Watcher,
    first: ConversationId,
    second: ConversationId,
}

impl World {
    /// Starts it, if strace can be used here.
    async fn new(what: &str) -> Option<Self> {
        if !strace::available(what) {
            return None;
        }
        let (sandbox, model) = sandbox_with_model();
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let first = watcher.create(&sandbox.project()).await;
        let second = watcher.create(&sandbox.project()).await;
        for conversation in [first, second] {
            let turn = watcher.ask(conversation, "hello").await;
            assert_eq!(turn.status, TurnStatus::Completed);
        }
        Some(Self {
            sandbox,
            model,
            server,
            watcher,
            first,
            second,
        })
    }

    /// Lets calls on the logs of the first conversation fail.
    fn attach(&self, fault: &Fault) -> Attached {
        let mut fault = fault.clone();
        for path in logs(&self.sandbox, self.first) {
            fault = fault.on(&path);
        }
        let log = self.sandbox.root().join("strace");
        Attached::to(self.server.pid(), &fault, &log)
    }

    async fn ask_first(&mut self, text: &str) -> Result<TurnEnd, ClientError> {
        self.watcher.try_ask(self.first, text).await
    }

    /// Everything acknowledged is there, now and after a restart.
    async fn end(mut self) {
        self.model.expect_sound_requests();
        stop(self.server).await;
        check(self.sandbox.data(), &self.watcher.journal, When::Settled);
        expect_recovered(&self.sandbox, self.watcher.journal).await;
    }
}

/// Lets a fault meet the creation of a conversation; tells whether it was met.
async fn creation_meets(fault: &Fault) -> bool {
    let (sandbox, _model) = sandbox_with_model();
    let mut server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let log = sandbox.root().join("strace");
    let attached = Attached::to(server.pid(), fault, &log);
    let sent = watcher.try_ask(conversation, "hello").await;
    let met = attached.injected() > 0;
    let listed = watcher.list().await;
    drop(attached);
    assert!(server.is_alive());
    match sent {
        Ok(_) => {}
        Err(ClientError::Rpc(error)) => {
            assert!(error.message.len() > 10, "{error}");
            // What was not acknowledged is not listed either, if the list could be read.
            assert_eq!(listed.unwrap_or_default(), []);
        }
        Err(other) => panic!("{fault:?}: {other:?}"),
    }
    let turn = watcher.ask(conversation, "now again").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let journal = std::mem::take(&mut watcher.journal);
    stop(server).await;
    expect_recovered(&sandbox, journal).await;
    met
}

fn logs(sandbox: &Sandbox, conversation: ConversationId) -> Vec<PathBuf> {
    let folder = sandbox
        .data()
        .join("conversations")
        .join(conversation.to_string());
    let entries = std::fs::read_dir(folder).expect("the conversation is on disk");
    entries.map(|entry| entry.unwrap().path()).collect()
}

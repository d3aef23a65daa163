//! The index follows from the logs, whatever happens to it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::server::{ReindexParams, StatusParams};
use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::journal::Journal;
use openvaala_tests::notice::is_long;
use openvaala_tests::running::Running;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::many::many;
use crate::support::{
    conversation_in, conversations_on_disk, expect_index_follows, fill, listed, sandbox_with_model,
    stop,
};

const DATABASE: &str = "metadata.db";

#[tokio::test]
async fn x_01_u_006_an_index_that_was_deleted_is_made_again_and_lists_the_same() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 5).await;
    let before = listed(&sandbox).await;
    assert_eq!(before.len(), 5);
    for path in database_files(&sandbox) {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(listed(&sandbox).await, before, "I-6");
}

#[tokio::test]
async fn x_02_u_016_whatever_lies_there_as_the_index_the_list_is_complete() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 5).await;
    let before = listed(&sandbox).await;
    let path = sandbox.data().join(DATABASE);
    let good = fs::read(&path).unwrap();
    let mut dice = Dice::from_environment("x_02");
    let mut damages: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"This is a letter to my grandmother.\n".to_vec(),
        good[..good.len() / 2].to_vec(),
        [&[0xa5; 100], &good[100..]].concat(),
        (0..good.len()).map(|_| dice.byte()).collect(),
    ];
    for _ in 0..if is_long() { 200 } else { 15 } {
        let mut flipped = good.clone();
        let page = usize::try_from(dice.below(good.len() as u64 / 4096)).unwrap() * 4096;
        flipped[page..page + 4096].fill_with(|| dice.byte());
        damages.push(flipped);
    }
    for (n, damage) in damages.into_iter().enumerate() {
        for path in database_files(&sandbox) {
            fs::remove_file(path).unwrap();
        }
        fs::write(&path, &damage).unwrap();
        assert_eq!(listed(&sandbox).await, before, "I-6: damage {n}");
    }
}

#[tokio::test]
async fn x_04_killed_between_log_and_index_the_index_catches_up_before_the_first_list() {
    let (sandbox, _model) = sandbox_with_model();
    let mut journal = Journal::default();
    let mut dice = Dice::from_environment("x_04");
    let rounds = if is_long() { 500 } else { 20 };
    for round in 0..rounds {
        let server = sandbox.serve();
        let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
        let conversation = watcher.create(&sandbox.project()).await;
        let turn = watcher.ask(conversation, &format!("round {round}")).await;
        assert_eq!(turn.status, TurnStatus::Completed);
        // Rows gather for 50 ms: the kill comes before, while, or after they are written.
        tokio::time::sleep(Duration::from_millis(dice.below(70))).await;
        server.kill();
        watcher.drain_to_the_end().await;
        journal = watcher.journal;
        let server = sandbox.serve();
        let watcher = Watcher::connect(&server.discovery).await;
        let first = watcher.list().await.unwrap();
        assert_eq!(first.len(), round + 1, "I-6: round {round}");
        assert_eq!(first[0].id, conversation, "I-6: round {round}");
        expect_index_follows(&watcher).await;
        stop(server).await;
    }
    check(sandbox.data(), &journal, When::Settled);
    println!("{rounds} kills");
}

#[tokio::test]
async fn x_05_u_007_rows_whose_log_has_gone_are_dropped() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 6).await;
    assert_eq!(listed(&sandbox).await.len(), 6);
    for folder in sandbox.conversations().iter().take(3) {
        fs::remove_dir_all(folder).unwrap();
    }
    let left = conversations_on_disk(&sandbox);
    assert_eq!(left.len(), 3);
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let mut ids: Vec<_> = watcher
        .list()
        .await
        .unwrap()
        .iter()
        .map(|one| one.id)
        .collect();
    ids.sort();
    assert_eq!(ids, left, "I-6");
    expect_index_follows(&watcher).await;
    stop(server).await;
}

#[tokio::test]
async fn x_05_a_log_that_was_restored_from_a_backup_is_what_is_listed() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 1).await;
    let backup = sandbox.root().join("backup");
    copy_tree(&sandbox.data().join("conversations"), &backup);
    let before = listed(&sandbox).await;
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = before[0].id;
    watcher.subscribe(conversation, None).await;
    watcher.ask(conversation, "later").await;
    assert_ne!(watcher.list().await.unwrap(), before);
    stop(server).await;
    fs::remove_dir_all(sandbox.data().join("conversations")).unwrap();
    copy_tree(&backup, &sandbox.data().join("conversations"));
    assert_eq!(listed(&sandbox).await, before, "I-6");
}

#[tokio::test]
async fn x_07_another_program_that_locks_the_index_stops_neither_appends_nor_lists() {
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let first = watcher.create(&sandbox.project()).await;
    watcher.ask(first, "before").await;
    assert_eq!(watcher.list().await.unwrap().len(), 1);
    let stranger = Stranger::lock(&sandbox);
    let second = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(second, "meanwhile").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    // It may not know the second one yet.
    let meanwhile = watcher.list().await.unwrap();
    assert!(meanwhile.iter().any(|one| one.id == first), "{meanwhile:?}");
    stranger.leave();
    lists_two(&watcher).await;
    expect_index_follows(&watcher).await;
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

#[tokio::test]
async fn x_08_a_fault_of_the_index_alone_fails_no_append_and_is_told_and_repaired() {
    if !strace::available("x_08: EIO and ENOSPC of the index") {
        return;
    }
    for error in ["EIO", "ENOSPC"] {
        let (sandbox, _model) = sandbox_with_model();
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let first = watcher.create(&sandbox.project()).await;
        watcher.ask(first, "before").await;
        watcher.list().await.unwrap();
        let log = sandbox.root().join("strace");
        let mut fault = Fault::error("write,pwrite64,fdatasync,fsync,ftruncate", error);
        for path in database_files(&sandbox) {
            fault = fault.on(&path);
        }
        let attached = Attached::to(server.pid(), &fault, &log);
        let second = watcher.create(&sandbox.project()).await;
        let turn = watcher.ask(second, "meanwhile").await;
        assert_eq!(turn.status, TurnStatus::Completed);
        wait::until("the index to meet the fault", || {
            (attached.injected() > 0).then_some(()).ok_or("not yet")
        });
        wait::eventually("the index to be told as degraded", async || {
            let status = watcher.client.call::<method::ServerStatus>(StatusParams {});
            let degraded = status.await.unwrap().degraded;
            let is_told = degraded.iter().any(|part| part.contains("index"));
            is_told.then_some(()).ok_or_else(|| format!("{degraded:?}"))
        })
        .await;
        drop(attached);
        lists_two(&watcher).await;
        expect_index_follows(&watcher).await;
        stop(server).await;
        check(sandbox.data(), &watcher.journal, When::Settled);
    }
}

#[tokio::test]
async fn x_09_a_reindex_that_is_killed_at_any_time_leaves_nothing_half() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 12).await;
    let before = listed(&sandbox).await;
    let mut dice = Dice::from_environment("x_09");
    for _ in 0..if is_long() { 200 } else { 15 } {
        let reindex = sandbox.start(&["reindex"]);
        tokio::time::sleep(Duration::from_micros(dice.below(60_000))).await;
        reindex.kill();
        assert_eq!(listed(&sandbox).await, before, "I-6");
    }
    if !strace::available("x_09: kills of reindex at the n-th call") {
        return;
    }
    let log = sandbox.root().join("strace");
    for calls in [
        "pwrite64,write",
        "fsync,fdatasync",
        "rename,unlink",
        "openat",
    ] {
        let mut n = 1;
        loop {
            let wrapper = Fault::kill(calls).nth(n).wrapper(&log);
            let ended = Running::start(sandbox.command_under(&wrapper, &["reindex"])).finish();
            assert_eq!(listed(&sandbox).await, before, "I-6: {calls} {n}");
            if ended.code.is_some() {
                break;
            }
            n += if is_long() { 1 } else { 1 + n / 2 };
        }
        println!("reindex: {calls}: none at {n}");
    }
}

#[tokio::test]
async fn x_10_damaged_conversations_are_named_and_hide_no_other() {
    const ALL: usize = 200;
    let (sandbox, _model) = many(ALL).await;
    let damaged: Vec<PathBuf> = sandbox
        .conversations()
        .into_iter()
        .step_by(90)
        .take(3)
        .collect();
    for folder in &damaged {
        fs::write(
            folder.join("metadata.jsonl"),
            "what was here is gone\n".repeat(9),
        )
        .unwrap();
    }
    for path in database_files(&sandbox) {
        fs::remove_file(path).unwrap();
    }
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let report = watcher
        .client
        .call::<method::ServerReindex>(ReindexParams {});
    let report = report.await.unwrap();
    assert_eq!(report.damaged.len(), 3, "{report:?}");
    for folder in &damaged {
        let id = conversation_in(folder).to_string();
        assert!(
            report.damaged.iter().any(|line| line.contains(&id)),
            "{report:?}"
        );
    }
    let list = watcher.list().await.unwrap();
    let sound = list.iter().filter(|one| {
        !damaged
            .iter()
            .any(|folder| conversation_in(folder) == one.id)
    });
    assert_eq!(sound.count(), ALL - 3, "I-5");
    stop(server).await;
}

#[tokio::test]
async fn u_021_restarts_change_nothing_of_what_is_listed() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 5).await;
    let list = || sandbox.run(&["list", "--json"]).expect_code(0).stdout;
    let first = list();
    sandbox.stop_server();
    assert_eq!(first.lines().count(), 5);
    for _ in 0..5 {
        assert_eq!(list(), first, "I-6");
        sandbox.stop_server();
    }
}

#[tokio::test]
async fn u_006_a_row_that_is_missing_hides_no_conversation_from_who_knows_its_id() {
    let (sandbox, _model) = sandbox_with_model();
    fill(&sandbox, 3).await;
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let script = "import sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1], timeout=30)\n\
        for (name,) in db.execute(\"select name from sqlite_master where type='table'\").fetchall():\n\
        \x20   try: db.execute(f'delete from \"{name}\" where key is not null')\n\
        \x20   except sqlite3.OperationalError: pass\n\
        db.commit()";
    let mut python = Command::new("python3");
    python
        .args(["-c", script])
        .arg(sandbox.data().join(DATABASE));
    let done = python.status();
    assert!(done.is_ok_and(|status| status.success()));
    for conversation in conversations_on_disk(&sandbox) {
        watcher.subscribe(conversation, None).await;
        let turn = watcher.ask(conversation, "go on").await;
        assert_eq!(turn.status, TurnStatus::Completed);
    }
    // What was used is back in the list, too.
    assert_eq!(watcher.list().await.unwrap().len(), 3);
    stop(server).await;
}

/// Another program that has locked the index for writing.
struct Stranger(std::process::Child);

impl Stranger {
    fn lock(sandbox: &Sandbox) -> Self {
        let script = "import sqlite3, sys\n\
            db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n\
            db.execute('BEGIN IMMEDIATE')\n\
            print('locked', flush=True)\n\
            sys.stdin.readline()\n\
            db.execute('ROLLBACK')";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(sandbox.data().join(DATABASE))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "locked");
        Self(child)
    }

    fn leave(mut self) {
        let input = self.0.stdin.as_mut().expect("it is piped");
        input.write_all(b"\n").expect("it still waits");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn database_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(sandbox.data()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_database = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(DATABASE)
    };
    paths.filter(is_database).collect()
}

fn copy_tree(from: &std::path::Path, to: &std::path::Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()));
}

/// Waits until an index that was out of order lists both conversations.
async fn lists_two(watcher: &Watcher) {
    wait::eventually("the index to catch up", async || {
        match watcher.list().await {
            Ok(listed) if listed.len() == 2 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

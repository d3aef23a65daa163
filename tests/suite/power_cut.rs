//! The power is cut under a real ext4 while conversations are written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::journal::Journal;
use openvaala_tests::mounts::{Cut, PowerDisk};
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::support::{expect_recovered, sandbox_with_model};

/// How many conversations are written at the same time.
const WRITERS: usize = 3;

/// How often the power is cut under each set of mount options: both ways in turn.
const ROUNDS: usize = 2;

/// The same with `OPENVAALA_LONG`.
const LONG_ROUNDS: usize = 67;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_21_a_power_cut_under_ext4_loses_nothing_that_was_acknowledged() {
    cut_again_and_again("defaults").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_21_a_power_cut_under_ext4_with_data_written_back_loses_nothing_that_was_acknowledged() {
    cut_again_and_again("data=writeback").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_21_a_power_cut_under_ext4_that_allocates_at_once_loses_nothing_that_was_acknowledged() {
    cut_again_and_again("nodelalloc,data=writeback").await;
}

async fn cut_again_and_again(options: &str) {
    if !PowerDisk::available(&format!("r_21: power cuts under ext4 with {options}")) {
        return;
    }
    let mut dice = Dice::from_environment("power_cut");
    let (sandbox, _model) = sandbox_with_model();
    let image = sandbox.root().join("disk.img");
    let mut disk = PowerDisk::new(&image, sandbox.data(), options);
    let rounds = if is_long() { LONG_ROUNDS } else { ROUNDS };
    for round in 0..rounds {
        let what = [Cut::NothingFlushed, Cut::JournalFlushed][round % 2];
        // Each round begins with an empty disk's worth of room.
        let journal = round_of(&sandbox, &mut disk, what, &mut dice).await;
        println!(
            "{options}, {what:?}: {} entries were acknowledged",
            journal.len()
        );
        for folder in sandbox.conversations() {
            fs::remove_dir_all(folder).expect("a checked conversation can go");
        }
    }
}

/// Writes, cuts the power in the middle of it, starts anew and checks.
async fn round_of(sandbox: &Sandbox, disk: &mut PowerDisk, what: Cut, dice: &mut Dice) -> Journal {
    let server = sandbox.serve();
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let mut watcher = Watcher::connect(&server.discovery).await;
        let folder = sandbox.project();
        writers.spawn(async move {
            write_until_it_fails(&mut watcher, &folder, n).await;
            watcher.drain_to_the_end().await;
            watcher.journal
        });
    }
    // The fault itself is what waits here.
    tokio::time::sleep(Duration::from_millis(30 + dice.below(400))).await;
    // A flush that is under way while ext4 is shut down may return as done and be lost: a plain loop of write and
    // fdatasync shows it. A flush that is done before, or begins after, tells the truth.
    freeze(&server);
    disk.cut(what);
    server.signal(Signal::CONT);
    // What it still tells with the power gone counts as acknowledged, too.
    tokio::time::sleep(Duration::from_millis(dice.below(40))).await;
    tokio::task::spawn_blocking(|| server.kill()).await.unwrap();
    let mut journal = Journal {
        power_was_cut: true,
        ..Journal::default()
    };
    while let Some(written) = writers.join_next().await {
        let written = written.expect("a writer ends by an error of the server");
        journal.conversations.extend(written.conversations);
    }
    disk.restart();
    check(sandbox.data(), &journal, When::Crashed);
    expect_recovered(sandbox, journal).await
}

async fn write_until_it_fails(watcher: &mut Watcher, folder: &Path, n: usize) {
    let Ok(conversation) = watcher.try_create(folder).await else {
        return;
    };
    for turn in 0.. {
        let text = format!("look around {n} {turn} {}", "x".repeat(turn * 97 % 5_000));
        match watcher.try_ask(conversation, &text).await {
            Ok(end) if end.is_completed() => {}
            _ => return,
        }
    }
}

/// Stops all threads of a server where they stand; those in a system call finish it first.
fn freeze(server: &Server) {
    server.signal(Signal::STOP);
    wait::until("all threads to stand still", || {
        let threads = fs::read_dir(format!("/proc/{}/task", server.pid()));
        let statuses = threads
            .expect("the server lives")
            .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok());
        let running: Vec<_> = statuses
            .filter(|status| !status.contains("State:\tT"))
            .collect();
        running
            .is_empty()
            .then_some(())
            .ok_or_else(|| running.concat())
    });
}

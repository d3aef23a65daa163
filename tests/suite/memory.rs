//! What a long conversation costs in memory.

use std::fs;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::stop;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_029_many_turns_with_long_outputs_keep_memory_bounded() {
    const OUTPUT: u64 = 100_000;
    let turns: u64 = if is_long() { 2_000 } else { 100 };
    let model = FakeModel::start(|asked| {
        if asked.step() == 0 {
            let command = format!(r#"{{"command":"head -c {OUTPUT} /dev/zero | tr '\\0' x"}}"#);
            Answer::tool(&format!("call-{}", asked.last_user()), "bash", &command)
        } else {
            Answer::text("done")
        }
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let mut first = 0;
    for turn in 0..turns {
        let ended = watcher.ask(conversation, &format!("turn {turn}")).await;
        assert_eq!(
            (ended.status, ended.steps),
            (TurnStatus::Completed, 2),
            "{ended:?}"
        );
        if turn == 9 {
            first = kib(server.pid(), "VmRSS");
        }
        if turn % 10 == 0 {
            println!(
                "{turn}: {} {}",
                kib(server.pid(), "VmRSS"),
                kib(server.pid(), "VmHWM")
            );
        }
    }
    let (peak, last) = (kib(server.pid(), "VmHWM"), kib(server.pid(), "VmRSS"));
    println!("{turns} turns: {first} KiB after ten, {last} KiB after all, {peak} KiB at the most");
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

/// A number of the memory of a process, in KiB.
fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

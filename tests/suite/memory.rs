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
    // Held whole, the outputs alone would be beyond the limit.
    let (turns, output, limit) = if is_long() {
        (500, 1_000_000, 160 << 10)
    } else {
        (100, 1_000_000, 64 << 10)
    };
    let mut model = FakeModel::start(move |asked| {
        if asked.step() == 0 {
            let command = format!(r#"{{"command":"head -c {output} /dev/zero | tr '\\0' x"}}"#);
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
    for turn in 0..turns {
        let ended = watcher.ask(conversation, &format!("turn {turn}")).await;
        assert_eq!(
            (ended.status, ended.steps),
            (TurnStatus::Completed, 2),
            "{ended:?}"
        );
        model.forget();
    }
    let peak = peak(server.pid());
    println!("{turns} turns with outputs of {output} bytes: {peak} KiB at the most");
    assert!(peak < limit, "I-7: the server had {peak} KiB");
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

/// The most memory that a process has had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

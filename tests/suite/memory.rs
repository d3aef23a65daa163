//! What a server costs in memory and open files: a long conversation, many clients, many definitions.

use std::fs;

use futures::future::join_all;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::server::StatusParams;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{sandbox_with_model, stop};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_033_a_thousand_clients_that_come_and_go_leave_nothing_behind() {
    const AT_ONCE: usize = 20;
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut first = Watcher::connect(&server.discovery).await;
    let conversation = first.create(&sandbox.project()).await;
    first.ask(conversation, "look around").await;
    let mut after = Vec::new();
    // The first fifth warms up: what a server keeps for later use it has by then.
    for clients in [200, 800] {
        for _ in 0..clients / AT_ONCE {
            let visits = (0..AT_ONCE).map(|_| async {
                let mut watcher = Watcher::connect(&server.discovery).await;
                watcher.subscribe(conversation, None).await;
                // Closing says goodbye to nobody: it is the end of the connection.
                drop(watcher);
            });
            join_all(visits).await;
        }
        // Until the server has noticed that all of them are gone.
        wait::eventually(
            "the server to be left by all but one",
            async || match connected(&first).await {
                1 => Ok(()),
                more => Err(format!("{more} clients")),
            },
        )
        .await;
        after.push((resident(server.pid()), open_files(server.pid())));
    }
    println!("memory in KiB and open files, after 200 and 1,000 clients: {after:?}");
    let [(early, files), (late, files_late)] = after[..] else {
        panic!("{after:?}");
    };
    assert_eq!(files_late, files);
    assert!(late < early + (1 << 10), "{after:?}");
    stop(server).await;
}

#[tokio::test]
async fn u_032_thousands_of_files_that_define_agents_cost_no_open_files() {
    let (sandbox, _model) = sandbox_with_model();
    let few = sandbox.serve();
    let before = open_files(few.pid());
    stop(few).await;
    let agents = sandbox.config().join("agents");
    fs::create_dir_all(&agents).unwrap();
    for n in 0..2_000 {
        let text = format!("instructions: You are number {n}. {}\n", "x".repeat(500));
        fs::write(agents.join(format!("agent-{n}.yaml")), text).unwrap();
    }
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation, "look around").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    drop(watcher);
    let after = open_files(server.pid());
    println!("open files: {before} without, {after} with 2,000 files of agents");
    assert!(after < before + 20, "{before} {after}");
    stop(server).await;
}

async fn connected(watcher: &Watcher) -> u32 {
    let status = watcher.client.call::<method::ServerStatus>(StatusParams {});
    status.await.unwrap().clients
}

pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// The most memory that a process has had, in KiB.
pub(crate) fn peak(pid: u32) -> u64 {
    of_status(pid, "VmHWM:")
}

/// The memory that a process has, in KiB.
pub(crate) fn resident(pid: u32) -> u64 {
    of_status(pid, "VmRSS:")
}

pub(crate) fn of_status(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

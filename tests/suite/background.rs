//! Commands in the background: floods of output, and what is left when a server ends without notice.

use std::env;
use std::fs;
use std::time::Duration;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::item::ToolResult;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::conversation::DeleteParams;
use openvaala_protocol::rpc::params::session::BlobParams;
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::json;

/// How many servers come and go; with `OPENVAALA_LONG` set two hundred.
const ROUNDS: usize = 8;
/// How much a command writes, in MiB; with `OPENVAALA_LONG` set a GiB.
const FLOOD: u64 = 300;
/// How much a server may grow while a command of its writes, in KiB.
const GROWTH: u64 = 48 << 10;

fn is_long() -> bool {
    env::var_os("OPENVAALA_LONG").is_some()
}

/// Runs what the user's message says as a command, and ends with the next answer.
fn runs_what_is_said(asked: &Asked) -> Answer {
    if asked.step() > 0 {
        return Answer::text("done");
    }
    let arguments = json!({ "command": asked.last_user(), "yield_ms": 300 });
    Answer::stream()
        .call("call_1", "bash", &arguments.to_string())
        .end()
}

/// How many ways there are to leave something running.
const WAYS: u64 = 8;

/// The n-th way to leave something running; the number makes each one known.
fn command(way: u64, n: usize) -> String {
    let sleep = format!("sleep 1000.{n}");
    match way {
        0 => format!("{sleep} &"),
        1 => sleep,
        2 => format!("setsid {sleep} &"),
        3 => format!("nohup {sleep} >/dev/null 2>&1 &"),
        4 => format!("(setsid sh -c '{sleep} & {sleep}' &) ; true"),
        5 => format!("trap '' TERM; {sleep} & wait"),
        6 => format!("while :; do echo x; done & {sleep}"),
        _ => format!("exec -a other {sleep}"),
    }
}

/// The processes of the sandbox that are no server.
fn left(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.processes().into_iter().map(|process| process.line);
    lines.filter(|line| !line.contains(" serve")).collect()
}

#[track_caller]
fn expect_nothing_left(sandbox: &Sandbox) {
    wait::within(
        Duration::from_secs(20),
        "the end of all commands",
        || match left(sandbox).as_slice() {
            [] => Ok(()),
            left => Err(format!("{left:?}")),
        },
    );
}

async fn leave_something(server: &Server, sandbox: &Sandbox, dice: &mut Dice, n: usize) {
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher
        .ask(conversation, &command(dice.below(WAYS), n))
        .await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_19_nothing_is_left_after_servers_were_killed_stopped_and_started_again() {
    let rounds = if is_long() { 200 } else { ROUNDS };
    let model = FakeModel::start(runs_what_is_said);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut dice = Dice::from_environment("background");
    let mut something = false;
    for n in 0..rounds {
        let server = sandbox.serve();
        for k in 0..1 + dice.below(2) {
            let known = n * 2 + usize::try_from(k).unwrap();
            leave_something(&server, &sandbox, &mut dice, known).await;
        }
        something |= !left(&sandbox).is_empty();
        if dice.below(3) > 0 {
            server.kill();
        } else {
            let ended = tokio::task::spawn_blocking(|| server.terminate()).await;
            let _ = ended.unwrap().expect_code(0);
            expect_nothing_left(&sandbox);
        }
    }
    assert!(something, "there was something to end");
    let server = sandbox.serve();
    expect_nothing_left(&sandbox);
    let ended = tokio::task::spawn_blocking(|| server.terminate()).await;
    let _ = ended.unwrap().expect_code(0);
}

/// Leaves something running in every way, in one conversation.
async fn leave_everything(sandbox: &Sandbox, watcher: &mut Watcher) -> ConversationId {
    let conversation = watcher.create(&sandbox.project()).await;
    for (n, way) in (0..WAYS).enumerate() {
        let turn = watcher.ask(conversation, &command(way, n)).await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    }
    let all = left(sandbox).join("\n");
    for n in 0..WAYS {
        let known = format!("1000.{n}");
        assert!(all.contains(&known), "{known} runs:\n{all}");
    }
    conversation
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_058_what_runs_in_the_background_ends_when_its_conversation_is_deleted() {
    let model = FakeModel::start(runs_what_is_said);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation_id = leave_everything(&sandbox, &mut watcher).await;
    let params = DeleteParams { conversation_id };
    let deleted = watcher.client.call::<method::ConversationDelete>(params);
    deleted.await.unwrap();
    expect_nothing_left(&sandbox);
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_058_what_a_killed_server_has_left_is_found_by_its_mark_and_ended() {
    let model = FakeModel::start(runs_what_is_said);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    leave_everything(&sandbox, &mut watcher).await;
    server.kill();
    assert!(!left(&sandbox).is_empty(), "a kill ends the server only");
    let server = sandbox.serve();
    expect_nothing_left(&sandbox);
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_at_once_still_ends_what_the_one_before_has_left() {
    let model = FakeModel::start(runs_what_is_said);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let _ = watcher
        .ask(conversation, "trap '' TERM; sleep 1000 & wait")
        .await;
    server.kill();
    assert!(!left(&sandbox).is_empty());
    let server = sandbox.serve();
    let ended = tokio::task::spawn_blocking(|| server.terminate()).await;
    let _ = ended.unwrap().expect_code(0);
    assert_eq!(left(&sandbox), Vec::<String>::new());
}

/// The most memory that a process has had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_keeps_memory_flat_and_its_head_and_tail() {
    let mib = if is_long() { 1_024 } else { FLOOD };
    let bytes = mib << 20;
    let flood = format!("head -c {} /dev/zero | tr '\\0' x; echo", bytes - 1);
    let model = FakeModel::start(move |asked| {
        let small = asked.last_user().contains("small");
        match (asked.step(), small) {
            (0, true) => Answer::stream()
                .call("c0", "bash", r#"{"command":"seq 20000"}"#)
                .end(),
            (0, false) => {
                let arguments = json!({ "command": flood, "yield_ms": 600_000 });
                Answer::stream()
                    .call("c1", "bash", &arguments.to_string())
                    .end()
            }
            _ => Answer::text("done"),
        }
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation_id = watcher.create(&sandbox.project()).await;
    let _ = watcher.ask(conversation_id, "something small").await;
    let before = peak(server.pid());
    let turn = watcher.ask(conversation_id, "a flood").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let grown = peak(server.pid()) - before;
    println!("{mib} MiB of output, the server grew by {grown} KiB from {before} KiB");
    assert!(grown < GROWTH, "the server grew by {grown} KiB");

    let items = watcher.items(conversation_id).await;
    let mut results = items.iter().filter_map(|item| item.body::<ToolResult>());
    let blob = results.next_back().unwrap().unwrap().output.unwrap();
    assert_eq!(blob.bytes, bytes);
    let params = |offset| BlobParams {
        conversation_id,
        session_id: None,
        blob,
        offset,
    };
    let head = watcher
        .client
        .call::<method::SessionBlob>(params(255 << 20))
        .await
        .unwrap();
    assert!(
        head.offset >= bytes - (1 << 20),
        "the tail begins at {}",
        head.offset
    );
    let last = watcher
        .client
        .call::<method::SessionBlob>(params(bytes - 3))
        .await
        .unwrap();
    assert_eq!(
        (last.offset, last.data.as_str(), last.next),
        (bytes - 3, "eHgK", None)
    );
}

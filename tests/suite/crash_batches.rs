//! Kills while many things are written at once: long outputs, several conversations.

use std::time::Duration;

use openvaala_protocol::event::Entry;
use openvaala_protocol::item::ItemKind;
use openvaala_protocol::rpc::Notice;
use openvaala_tests::checker::{When, check};
use openvaala_tests::dice::Dice;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::journal::Journal;
use openvaala_tests::notice::is_long;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{expect_recovered, stop};

/// Lengths of the outputs of one step.
const OUTPUTS: [u32; 4] = [100, 4_000, 100_000, 1 << 20];

/// Asks for four outputs at once, for ever.
fn writes_batches(asked: &Asked) -> Answer {
    if asked.last_user() == "go on" {
        return Answer::text("I go on.");
    }
    let step = asked.step();
    OUTPUTS
        .iter()
        .enumerate()
        .fold(Answer::stream(), |answer, (n, bytes)| {
            let command = format!("head -c {bytes} /dev/zero | tr '\\0' x");
            let arguments = json!({ "command": command }).to_string();
            answer.call(&format!("call_{step}_{n}"), "bash", &arguments)
        })
        .end()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_02_killed_while_batches_are_written_nothing_acknowledged_is_lost() {
    campaign("r_02", 1, if is_long() { 100 } else { 8 }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_01_r_02_killed_while_eight_conversations_are_written_nothing_acknowledged_is_lost() {
    campaign("r_01", 8, if is_long() { 100 } else { 5 }).await;
}

/// Kills the server while that many conversations work.
async fn campaign(name: &str, conversations: usize, kills: usize) {
    let mut dice = Dice::from_environment(name);
    let mut entries = 0;
    for _ in 0..kills {
        let mut model = FakeModel::start(writes_batches);
        let sandbox = Sandbox::new();
        sandbox.use_model(&model.base_url());
        let journal = ended(&sandbox, conversations, &mut dice, End::Kill).await;
        entries += journal.len();
        check(sandbox.data(), &journal, When::Crashed);
        expect_recovered(&sandbox, journal).await;
        model.expect_sound_requests();
    }
    println!("{name}: {kills} kills, {entries} entries were acknowledged");
}

/// How a server ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Kill,
    InGoodOrder,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_15_a_server_that_is_stopped_at_any_time_leaves_no_turn_running() {
    let mut dice = Dice::from_environment("p_15");
    for _ in 0..if is_long() { 100 } else { 6 } {
        let model = FakeModel::start(writes_batches);
        let sandbox = Sandbox::new();
        sandbox.use_model(&model.base_url());
        let journal = ended(&sandbox, 8, &mut dice, End::InGoodOrder).await;
        // I-7, without any server having been there since.
        check(sandbox.data(), &journal, When::Settled);
        expect_recovered(&sandbox, journal).await;
    }
}

/// Ends the server while that many conversations work.
async fn ended(sandbox: &Sandbox, conversations: usize, dice: &mut Dice, end: End) -> Journal {
    let server = sandbox.serve();
    let mut clients = JoinSet::new();
    for n in 0..conversations {
        let (discovery, folder) = (server.discovery.clone(), sandbox.project());
        clients.spawn(async move {
            let Ok(mut watcher) = Watcher::try_connect(&discovery).await else {
                return Journal::default();
            };
            if let Ok(conversation) = watcher.try_create(&folder).await {
                let _ = watcher.try_ask(conversation, &format!("work {n}")).await;
            }
            watcher.drain_to_the_end().await;
            watcher.journal
        });
    }
    // The fault itself is what waits here.
    tokio::time::sleep(Duration::from_millis(dice.below(500))).await;
    match end {
        End::Kill => tokio::task::spawn_blocking(|| server.kill()).await.unwrap(),
        End::InGoodOrder => stop(server).await,
    }
    let mut journal = Journal::default();
    while let Some(client) = clients.join_next().await {
        let client = client.expect("a client ends with the server");
        journal.conversations.extend(client.conversations);
    }
    journal
}

#[tokio::test]
async fn r_32_u_004_a_server_that_is_killed_at_the_sight_of_an_item_has_it() {
    let rounds = if is_long() { 200 } else { 12 };
    let model = FakeModel::start(|_| Answer::text("this is on disk"));
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut journal = Journal::default();
    for round in 0..rounds {
        let server = sandbox.serve();
        let mut watcher = Watcher::with_journal(&server.discovery, journal).await;
        let conversation = watcher.create(&sandbox.project()).await;
        watcher.send(conversation, "say it").await.unwrap();
        let wanted = [ItemKind::UserMessage, ItemKind::AssistantMessage][round % 2].clone();
        while let Some(notice) = watcher.next().await {
            if let Notice::ConversationEntry(told) = notice
                && let Entry::Item { item, .. } = told.entry
                && item.head().kind == wanted
            {
                break;
            }
        }
        server.kill();
        watcher.drain_to_the_end().await;
        check(sandbox.data(), &watcher.journal, When::Crashed);
        journal = watcher.journal;
    }
    expect_recovered(&sandbox, journal).await;
}

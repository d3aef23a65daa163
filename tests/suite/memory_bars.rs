//! The bars of memory: a thousand open conversations, and a long one whose model has a window.
//!
//! Whole with `OPENVAALA_LONG`, else a part of the work below the same part of the bar.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::item::ContextSummary;
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::notice::is_long;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::compaction::{QUESTION, sandbox};
use crate::memory::{peak, resident};
use crate::support::{sandbox_with_model, stop};

const MIB: u64 = 1 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_open_conversations_cost_less_than_a_hundred_mebibytes() {
    let (conversations, bar) = if is_long() {
        (1_000, 100 * MIB)
    } else {
        (100, 10 * MIB)
    };
    let (sandbox, mut model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let mut before = 0;
    for n in 0..conversations + 10 {
        // The first ten warm up.
        if n == 10 {
            before = resident(server.pid());
        }
        let conversation = watcher.create(&sandbox.project()).await;
        let turn = watcher.ask(conversation, "look around").await;
        assert_eq!(
            (turn.status, turn.steps),
            (TurnStatus::Completed, 2),
            "{turn:?}"
        );
        model.forget();
    }
    let grown = resident(server.pid()).saturating_sub(before);
    println!("{conversations} open conversations: {grown} KiB more than the {before} KiB before");
    assert!(
        grown < bar,
        "{conversations} open conversations cost {grown} KiB"
    );
    stop(server).await;
}

/// Prints 100 KB once a turn, and counts what it is asked as a provider would.
fn prints(asked: &Asked) -> Answer {
    let text = asked.last_user();
    if text.contains(QUESTION) {
        return Answer::text("Much was printed.");
    }
    if asked.step() == 0 {
        let command = "head -c 99000 /dev/zero | tr '\\0' x | fold -w 99";
        let arguments = json!({ "command": command }).to_string();
        return Answer::tool(&format!("call-{text}"), "bash", &arguments);
    }
    let tokens = asked.body.to_string().len() / 4;
    Answer::stream().say("done").end_after(tokens as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u_029_a_conversation_of_two_thousand_turns_that_is_summarised_stays_below_its_bar() {
    const WINDOW: u64 = 100_000;
    // A server with one window of text has about 20 MiB; what grows with the turns would be seen in the rest.
    let (turns, bar) = if is_long() {
        (2_000, 300 * MIB)
    } else {
        (40, 32 * MIB)
    };
    let mut model = FakeModel::start(prints);
    let sandbox = sandbox(&model, WINDOW);
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
    let (most, last) = (peak(server.pid()), resident(server.pid()));
    let items = watcher.items(conversation).await;
    let summaries = items
        .iter()
        .filter_map(|item| item.body::<ContextSummary>());
    let summaries = summaries.count();
    println!("{turns} turns and {summaries} summaries: {last} KiB, at the most {most} KiB");
    // Ten outputs or so fit into the window.
    assert!(summaries > turns / 20, "{summaries} summaries");
    assert!(most < bar, "{turns} turns: {most} KiB at the most");
    stop(server).await;
}

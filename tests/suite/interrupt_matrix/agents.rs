//! Agents that hang: what waits for them is interrupted, and they with it.

use openvaala_protocol::id::ConversationId;
use openvaala_protocol::item::{Item, ItemKind, ToolResult, ToolResultStatus};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Hung, bodies, matrix, printed};

/// What the prompt of an agent says that another one has started.
const PLACE: &str = "You are the agent main/";

pub(super) fn starts_one() -> Answer {
    Answer::tool("call-0", "spawn_agent", &spawn(false).to_string())
}

pub(super) fn starts_one_in_the_background() -> Answer {
    let command = json!({ "command": "echo ready; sleep 1000" });
    Answer::stream()
        .call("call-0", "spawn_agent", &spawn(true).to_string())
        .call("call-1", "bash", &command.to_string())
        .end()
}

fn spawn(background: bool) -> Value {
    json!({ "name": "helper", "task": "hang", "background": background })
}

/// Whether an agent asks that another one has started.
pub(super) fn is_below(asked: &Asked) -> bool {
    says_its_place(&asked.body)
}

fn says_its_place(body: &Value) -> bool {
    body["messages"][0].to_string().contains(PLACE)
}

/// Waits until the agent hangs, and that many commands of its starter do.
pub(super) async fn begun(
    hung: &Hung,
    others: usize,
    watcher: &mut Watcher,
    model: &mut FakeModel,
) {
    let own = match hung {
        Hung::Commands(lines) => lines.len(),
        _ => 0,
    };
    printed(watcher, ItemKind::ToolResult, own + others, "ready").await;
    wait::eventually("the request of the agent", async || {
        let mut requests = model.requests().iter();
        let found = requests.find(|seen| says_its_place(&seen.body));
        found.map(drop).ok_or("none has come")
    })
    .await;
}

/// The call that waited for the agent says that it was interrupted.
#[track_caller]
pub(super) fn expect_call_ended(items: &[Item]) {
    let results: Vec<_> = bodies::<ToolResult>(items)
        .into_iter()
        .map(|result| result.status)
        .collect();
    assert_eq!(results, [ToolResultStatus::Interrupted]);
}

/// The items of the only agent that was started.
pub(super) async fn items_below(watcher: &Watcher, conversation: ConversationId) -> Vec<Item> {
    let state = watcher.get(conversation).await.unwrap();
    let below: Vec<_> = state
        .sessions
        .iter()
        .filter(|session| session.parent.is_some())
        .collect();
    let [agent] = below.as_slice() else {
        panic!("{below:?}");
    };
    watcher.items_of(conversation, Some(agent.id)).await
}

#[tokio::test]
async fn u_061_an_agent_that_is_waited_for_is_interrupted_with_its_command_that_does_not_listen() {
    const COMMAND: Hung =
        Hung::Commands(&["trap '' TERM; echo ready; while :; do sleep 1000; done"]);
    let what = "an agent whose command ignores SIGTERM";
    matrix(what, Hung::Agent(&COMMAND), false).await;
}

#[tokio::test]
async fn u_061_an_agent_that_is_waited_for_and_whose_model_never_answers_is_interrupted() {
    let what = "an agent whose model never answers";
    matrix(what, Hung::Agent(&Hung::Silence), false).await;
}

#[tokio::test]
async fn u_061_the_whole_tree_is_interrupted_with_an_agent_in_the_background() {
    const COMMANDS: Hung = Hung::Commands(&[
        "echo ready; sleep 1000",
        "trap '' TERM; echo ready; while :; do sleep 1000; done",
    ]);
    let what = "a command, and an agent with two commands in the background, by the scope tree";
    matrix(what, Hung::Tree(&COMMANDS), false).await;
}

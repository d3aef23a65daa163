//! Several clients of one conversation, and what waits in it when nobody is there.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::{Entry, Live};
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::rpc::Notice;
use openvaala_tests::fake_model::{Answer, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

/// A model that answers `wait` in two halves with a door between them, and everything else at once; it opens another door
/// when it is asked `tell`.
fn model(door: &Gate, told: &Gate) -> FakeModel {
    let (door, told) = (door.clone(), told.clone());
    FakeModel::start(move |asked| match asked.last_user().as_str() {
        "wait" => Answer::stream().say("one, ").wait(&door).say("two").end(),
        said => {
            if said == "tell" {
                told.open();
            }
            Answer::text(&format!("heard: {said}"))
        }
    })
}

/// All that a client is told of a conversation up to the end of a turn; pieces of one text are put together.
async fn told_to_the_end(watcher: &mut Watcher, conversation: ConversationId) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let mut growing: Option<ItemId> = None;
    loop {
        let notice = watcher.next().await.expect("the connection lives");
        match notice {
            Notice::ConversationLive(live) => {
                let next = match &live.live {
                    Live::Delta(delta) => Some(delta.item_id),
                    _ => None,
                };
                match (&live.live, told.last_mut()) {
                    (Live::Delta(delta), Some(text)) if growing == next => {
                        text.push_str(&delta.text);
                    }
                    (Live::Delta(delta), _) => {
                        told.push(format!("{}: {}", delta.item_id, delta.text))
                    }
                    (other, _) => told.push(serde_json::to_string(other).unwrap()),
                }
                growing = next;
            }
            Notice::ConversationEntry(entry) => {
                assert_eq!(entry.conversation_id, conversation);
                growing = None;
                told.push(serde_json::to_string(&entry.entry).unwrap());
                if matches!(&entry.entry, Entry::Turn { turn, .. } if turn.ended_at.is_some()) {
                    return told;
                }
            }
            _ => {}
        }
    }
}

/// Waits until the model has begun to answer `wait`.
async fn begun(watcher: &mut Watcher) {
    loop {
        let notice = watcher.next().await.expect("the connection lives");
        if let Notice::ConversationLive(told) = notice
            && matches!(told.live, Live::Delta(_))
        {
            return;
        }
    }
}

#[tokio::test]
async fn u_131_three_clients_of_a_conversation_see_the_same_in_the_same_order() {
    let (door, told) = (Gate::new(), Gate::new());
    door.open();
    let mut model = model(&door, &told);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut one = Watcher::connect(&server.discovery).await;
    let mut two = Watcher::connect(&server.discovery).await;
    let mut three = Watcher::connect(&server.discovery).await;
    let conversation = one.create(&sandbox.project()).await;
    two.subscribe(conversation, None).await;
    three.subscribe(conversation, None).await;
    two.send(conversation, "wait").await.unwrap();
    three.send(conversation, "second").await.unwrap();
    for _ in 0..2 {
        let first = told_to_the_end(&mut one, conversation).await;
        assert!(first.len() > 3, "{first:?}");
        assert_eq!(told_to_the_end(&mut two, conversation).await, first);
        assert_eq!(told_to_the_end(&mut three, conversation).await, first);
    }
    model.expect_sound_requests();
}

#[tokio::test]
async fn u_136_a_turn_completes_while_no_client_is_there() {
    let (door, told) = (Gate::new(), Gate::new());
    let mut model = model(&door, &told);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut one = Watcher::connect(&server.discovery).await;
    let conversation = one.create(&sandbox.project()).await;
    let mut two = Watcher::connect(&server.discovery).await;
    two.subscribe(conversation, None).await;
    one.send(conversation, "wait").await.unwrap();
    begun(&mut one).await;
    two.send(conversation, "tell").await.unwrap();
    one.client.close().await;
    two.client.close().await;
    door.open();
    // The second message is asked once the turn of the first has ended.
    told.passed().await;

    let mut back = Watcher::connect(&server.discovery).await;
    back.subscribe(conversation, None).await;
    let turns = back.get(conversation).await.unwrap().turns;
    assert_eq!(turns[0].status, TurnStatus::Completed);
    let items = back.items(conversation).await;
    let texts: Vec<&str> = items.iter().map(|item| item.raw().get()).collect();
    assert!(
        texts.iter().any(|text| text.contains("one, two")),
        "{texts:?}"
    );
    model.expect_sound_requests();
}

#[tokio::test]
async fn u_142_inputs_that_wait_when_the_server_is_killed_run_after_it_in_order_and_once() {
    let (door, told) = (Gate::new(), Gate::new());
    let mut model = model(&door, &told);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let mut inputs = vec![watcher.send(conversation, "wait").await.unwrap()];
    begun(&mut watcher).await;
    for text in ["first", "second", "third"] {
        inputs.push(watcher.send(conversation, text).await.unwrap());
    }
    server.kill();

    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    watcher.subscribe(conversation, None).await;
    let turns = loop {
        let turns = watcher.get(conversation).await.unwrap().turns;
        if turns.len() >= inputs.len() && turns.iter().all(|turn| turn.ended_at.is_some()) {
            break turns;
        }
        watcher.next().await.expect("the connection lives");
    };
    use TurnStatus::{Completed, Interrupted};
    let found: Vec<(TurnStatus, Vec<ItemId>)> = turns
        .into_iter()
        .map(|turn| (turn.status, turn.inputs))
        .collect();
    let statuses = [Interrupted, Completed, Completed, Completed];
    let each = inputs.iter().map(|input| vec![*input]);
    assert_eq!(found, statuses.into_iter().zip(each).collect::<Vec<_>>());
    let items = watcher.items(conversation).await;
    let said = items.iter().map(|item| item.head().id);
    let said: Vec<ItemId> = said.filter(|id| inputs.contains(id)).collect();
    assert_eq!(said, inputs);
    model.expect_sound_requests();
}

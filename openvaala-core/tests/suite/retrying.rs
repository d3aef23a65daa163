//! Model requests that fail and are asked again.

use std::time::Duration;

use openvaala_core::protocol::conversation::{TurnFailureKind, TurnStatus};
use openvaala_core::protocol::event::{Entry, Live};
use openvaala_core::protocol::item::{ItemKind, ModelError, RetryNotice};
use openvaala_core::{
    ConversationHandle, FeedEvent, Input, NewConversation, RetryPolicy, Runtime, Subscription,
};
use pretty_assertions::assert_eq;

use super::script::{Script, Step, builder, items, kinds, turn_end};

async fn begin(steps: Vec<Step>, attempts: u32) -> (Runtime, ConversationHandle, Subscription) {
    let (script, _requests) = Script::new(steps);
    let policy = RetryPolicy::default()
        .with_attempts(attempts)
        .with_first_wait(Duration::from_millis(1));
    let runtime = builder(script)
        .retry(policy)
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    (runtime, conversation, events)
}

async fn notices(conversation: &ConversationHandle) -> Vec<(u32, String)> {
    let items = items(conversation).await;
    let notices = items.iter().filter_map(|item| item.body::<RetryNotice>());
    notices
        .map(|notice| notice.unwrap())
        .map(|notice| (notice.attempt, notice.message))
        .collect()
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_each_failure_is_told() {
    let steps = vec![
        Step::Fail(429, 3),
        Step::Fail(529, 0),
        Step::Break("half a "),
        Step::Say("whole"),
    ];
    let (_runtime, conversation, mut events) = begin(steps, 5).await;
    let turn = turn_end(&mut events).await;
    assert_eq!((turn.status, turn.steps), (TurnStatus::Completed, 1));
    use ItemKind::{AssistantMessage as Said, RetryNotice as Retry, UserMessage as Asked};
    assert_eq!(
        kinds(&conversation).await,
        [Asked, Retry, Retry, Retry, Said]
    );
    let expected = [(1, "HTTP 429"), (2, "HTTP 529"), (3, "connection reset")];
    let expected = expected.map(|(attempt, message)| (attempt, message.to_owned()));
    assert_eq!(notices(&conversation).await, expected);
}

#[tokio::test]
async fn half_an_answer_is_dropped_when_it_is_asked_for_again() {
    let steps = vec![Step::Break("half a "), Step::Say("whole")];
    let (_runtime, _conversation, mut events) = begin(steps, 2).await;
    let (mut started, mut dropped) = (None, None);
    loop {
        match events.next().await.unwrap() {
            FeedEvent::Live(live) => match &*live {
                Live::Started(partial) if started.is_none() => started = Some(partial.item_id),
                Live::Dropped { item_id, .. } => dropped = Some(*item_id),
                _ => {}
            },
            FeedEvent::Entry { entry, .. } => {
                if matches!(&*entry, Entry::Turn { turn, .. } if turn.ended_at.is_some()) {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((started.is_some(), dropped), (true, started));
}

#[tokio::test]
async fn after_the_last_attempt_the_turn_fails_with_their_number() {
    let steps = vec![
        Step::Fail(500, 0),
        Step::Fail(503, 0),
        Step::Break("half a "),
    ];
    let (_runtime, conversation, mut events) = begin(steps, 3).await;
    let failure = turn_end(&mut events).await.failure.unwrap();
    assert_eq!(failure.kind, TurnFailureKind::Model);
    let all = items(&conversation).await;
    let error = all.iter().find_map(|item| item.body::<ModelError>());
    assert_eq!(error.unwrap().unwrap().attempts, 3);
    use ItemKind::{
        AssistantMessage as Said, ModelError as Failed, RetryNotice as Retry, UserMessage as Asked,
    };
    let expected = [Asked, Retry, Retry, Said, Failed];
    assert_eq!(
        kinds(&conversation).await,
        expected,
        "what came last is kept"
    );
}

#[tokio::test]
async fn what_will_not_pass_is_not_asked_again() {
    let (_runtime, conversation, mut events) = begin(vec![Step::Fail(400, 0)], 5).await;
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Failed);
    assert_eq!(notices(&conversation).await, []);
}

#[tokio::test]
async fn an_interrupt_ends_the_waiting() {
    // Without the interrupt this waits for most of a minute.
    let (_runtime, conversation, mut events) = begin(vec![Step::Fail(429, 55_000)], 5).await;
    loop {
        if let FeedEvent::Entry { entry, .. } = events.next().await.unwrap()
            && let Entry::Item { item, .. } = &*entry
            && item.head().kind == ItemKind::RetryNotice
        {
            break;
        }
    }
    conversation.interrupt(None).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Interrupted);
    conversation.send(Input::text("again")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
}

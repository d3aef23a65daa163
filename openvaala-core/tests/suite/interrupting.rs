//! Interrupts, whatever the turn is doing.

use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::event::Live;
use openvaala_core::protocol::item::{AssistantMessage, ItemKind, ToolResult, ToolResultStatus};
use openvaala_core::{FeedEvent, Input, NewConversation, Subscription};
use pretty_assertions::assert_eq;

use super::script::{Script, Step, bash, builder, items, kinds, turn_end};

/// Waits until live text has all of `text` in it.
pub(crate) async fn shown(events: &mut Subscription, text: &str) {
    let mut seen = String::new();
    while !seen.contains(text) {
        match events.next().await.expect("the conversation goes on") {
            FeedEvent::Live(live) => {
                if let Live::Delta(delta) = &*live {
                    seen.push_str(&delta.text);
                }
            }
            FeedEvent::Gap { reason } => panic!("{reason}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn m_32_an_interrupt_in_the_text_keeps_what_was_said() {
    let (script, _requests) = Script::new(vec![Step::Stall("so far so good")]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    shown(&mut events, "so good").await;
    let interrupted = conversation.interrupt(None).await.unwrap();
    let turn = turn_end(&mut events).await;
    assert_eq!(
        (interrupted, turn.status),
        (Some(turn.id), TurnStatus::Interrupted)
    );
    let all = items(&conversation).await;
    let message = all[1].body::<AssistantMessage>().unwrap().unwrap();
    assert_eq!(
        (message.text.as_str(), message.cut),
        ("so far so good", true)
    );
    assert_eq!(all[2].head().kind, ItemKind::Interruption);
    assert_eq!(conversation.interrupt(None).await.unwrap(), None);
}

#[tokio::test]
async fn u_050_an_interrupt_in_a_command_keeps_its_output_and_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let command = bash("echo $$ > pid; echo said; sleep 1000");
    let (script, _requests) = Script::new(vec![Step::Call(vec![command])]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    shown(&mut events, "said\n").await;
    conversation.interrupt(None).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Interrupted);
    let all = items(&conversation).await;
    let result = all
        .iter()
        .find_map(|item| item.body::<ToolResult>())
        .unwrap()
        .unwrap();
    assert_eq!(result.status, ToolResultStatus::Interrupted);
    assert!(joined_text(&result.content).contains("said"), "{result:?}");
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[tokio::test]
async fn the_queue_is_held_after_an_interrupt_until_the_next_send() {
    let (script, mut requests) = Script::new(vec![Step::Stall("wait")]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("first")).await.unwrap();
    requests.recv().await.unwrap();
    conversation.send(Input::text("second")).await.unwrap();
    conversation.interrupt(None).await.unwrap();
    turn_end(&mut events).await;
    let details = conversation.details().await.unwrap();
    assert!(
        details.sessions[0].held && details.sessions[0].pending.len() == 1,
        "{details:?}"
    );
    assert!(requests.try_recv().is_err());
    conversation.send(Input::text("third")).await.unwrap();
    turn_end(&mut events).await;
    turn_end(&mut events).await;
    use ItemKind::{AssistantMessage as Said, Interruption, UserMessage as Asked};
    let expected = [Asked, Said, Interruption, Asked, Said, Asked, Said];
    assert_eq!(kinds(&conversation).await, expected);
}

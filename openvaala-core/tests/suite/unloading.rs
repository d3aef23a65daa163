//! Conversations that nobody uses leave the memory.

use std::time::Duration;

use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::id::ConversationId;
use openvaala_core::{ConversationHandle, Input, NewConversation, Runtime};
use pretty_assertions::assert_eq;
use tokio::time::sleep;

use super::script::{Script, Step, bash, builder, kinds, turn_end};

const MINUTE: Duration = Duration::from_secs(60);

async fn open_conversations(runtime: &Runtime) -> usize {
    runtime.status().await.unwrap().open_conversations
}

/// Lets the time pass until that many are open.
async fn until_open(runtime: &Runtime, count: usize) {
    while open_conversations(runtime).await != count {
        sleep(MINUTE).await;
    }
}

async fn one_turn(conversation: &ConversationHandle) {
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("hello")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn u_030_what_nobody_uses_is_unloaded_and_opens_again_as_it_was() {
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    // While the test waits for the storage the time passes, so what is to stay is held.
    let mut handles = Vec::new();
    for _ in 0..20 {
        let conversation = runtime.create(NewConversation::default()).await.unwrap();
        one_turn(&conversation).await;
        handles.push(conversation);
    }
    sleep(20 * MINUTE).await;
    assert_eq!(open_conversations(&runtime).await, 20);
    let ids: Vec<ConversationId> = handles.iter().map(ConversationHandle::id).collect();
    drop(handles);
    sleep(8 * MINUTE).await;
    assert_eq!(open_conversations(&runtime).await, 20);
    until_open(&runtime, 0).await;
    while requests.try_recv().is_ok() {}
    for id in ids {
        let conversation = runtime.open(id).await.unwrap();
        one_turn(&conversation).await;
        assert_eq!(requests.recv().await.unwrap().messages.len(), 3);
        assert_eq!(kinds(&conversation).await.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_use_stays() {
    let folder = tempfile::tempdir().unwrap();
    let background = bash("sleep 100000 & echo started");
    let steps = vec![
        Step::Call(vec![background]),
        Step::Say("it runs"),
        Step::Say("held"),
        Step::Say("watched"),
        Step::Stall("running"),
    ];
    let (script, mut requests) = Script::new(steps);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let new = NewConversation::in_folder(folder.path());
    let with_command = runtime.create(new).await.unwrap();
    one_turn(&with_command).await;
    let held = runtime.create(NewConversation::default()).await.unwrap();
    one_turn(&held).await;
    let watched = runtime.create(NewConversation::default()).await.unwrap();
    one_turn(&watched).await;
    let events = watched.subscribe(None).await.unwrap();
    let running = runtime.create(NewConversation::default()).await.unwrap();
    while requests.try_recv().is_ok() {}
    running.send(Input::text("go")).await.unwrap();
    requests.recv().await.unwrap();
    let id = running.id();
    drop((with_command, watched, running));
    sleep(60 * MINUTE).await;
    let status = runtime.status().await.unwrap();
    assert_eq!((status.open_conversations, status.running_commands), (4, 1));
    drop((events, held));
    until_open(&runtime, 2).await;
    // Interrupted, with an input that waits: it stays until that is taken.
    let running = runtime.open(id).await.unwrap();
    running.send(Input::text("later")).await.unwrap();
    running.interrupt(None).await.unwrap();
    drop(running);
    sleep(60 * MINUTE).await;
    assert_eq!(open_conversations(&runtime).await, 2);
    one_turn(&runtime.open(id).await.unwrap()).await;
    runtime.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_time_nothing_is_unloaded() {
    let (script, _requests) = Script::new(Vec::new());
    let builder = builder(script).in_memory().unload_after(None);
    let runtime = builder.build().await.unwrap();
    one_turn(&runtime.create(NewConversation::default()).await.unwrap()).await;
    sleep(10_000 * MINUTE).await;
    assert_eq!(open_conversations(&runtime).await, 1);
}

#[tokio::test(start_paused = true)]
async fn opening_what_is_about_to_be_unloaded_gives_one_that_works() {
    let (script, _requests) = Script::new(Vec::new());
    let after = Duration::from_secs(1);
    let builder = builder(script).in_memory().unload_after(Some(after));
    let runtime = builder.build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let id = conversation.id();
    one_turn(&conversation).await;
    drop(conversation);
    for round in 0..100 {
        // The look that unloads comes at about this time: opening meets it before, meanwhile and after.
        sleep(after + Duration::from_millis(round)).await;
        let opened = tokio::join!(runtime.open(id), runtime.open(id), runtime.open(id));
        for opened in [opened.0, opened.1, opened.2] {
            one_turn(&opened.unwrap()).await;
        }
    }
}

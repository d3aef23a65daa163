//! What is there after the runtime has ended, well or badly.

use std::path::Path;

use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::item::{
    Interruption, InterruptionCause, ToolResult, ToolResultStatus,
};
use openvaala_core::{Input, ListConversations, NewConversation, RuntimeError};
use pretty_assertions::assert_eq;
use tokio::sync::mpsc;

use super::script::{Script, Step, bash, builder, items, turn_end};

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join("conversations"))
        .map(|entries| {
            entries
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[tokio::test]
async fn an_empty_conversation_leaves_nothing_on_disk() {
    let data = tempfile::tempdir().unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).data_dir(data.path()).build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    assert_eq!(files(data.path()), Vec::<String>::new());
    conversation.send(Input::text("now")).await.unwrap();
    assert_eq!(files(data.path()), [conversation.id().to_string()]);
}

#[tokio::test]
async fn p_17_a_turn_that_ran_when_the_runtime_vanished_is_interrupted_and_nothing_runs_again() {
    let (data, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let command = bash("echo ran >> ran; echo started; sleep 1000");
    let (script, mut requests) = Script::new(vec![Step::Call(vec![command])]);
    let id = {
        let runtime = builder(script).data_dir(data.path()).build().await.unwrap();
        let new = NewConversation::in_folder(folder.path());
        let conversation = runtime.create(new).await.unwrap();
        let mut events = conversation.subscribe(None).await.unwrap();
        conversation.send(Input::text("go")).await.unwrap();
        requests.recv().await.unwrap();
        while !folder.path().join("ran").exists() {
            events.next().await.unwrap();
        }
        conversation.id()
    };
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = reopen(script, data.path()).await;
    let conversation = runtime.open(id).await.unwrap();
    let turns = conversation.details().await.unwrap().turns;
    let turns: Vec<TurnStatus> = turns.iter().map(|turn| turn.status).collect();
    assert_eq!(turns, [TurnStatus::Interrupted]);
    let all = items(&conversation).await;
    let result = all
        .iter()
        .find_map(|item| item.body::<ToolResult>())
        .unwrap()
        .unwrap();
    assert_eq!(result.status, ToolResultStatus::Unknown);
    let end = all.last().unwrap().body::<Interruption>().unwrap().unwrap();
    assert_eq!(end, Interruption::new(InterruptionCause::Crash));
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go on")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
    requests.recv().await.unwrap();
    assert_eq!(
        std::fs::read_to_string(folder.path().join("ran")).unwrap(),
        "ran\n"
    );
}

/// The old runtime's loops end in their own time after its last handle is gone; the lock tells when.
pub(crate) async fn reopen(script: std::sync::Arc<Script>, data: &Path) -> openvaala_core::Runtime {
    loop {
        match builder(script.clone()).data_dir(data).build().await {
            Ok(runtime) => return runtime,
            Err(RuntimeError::Storage(openvaala_core::storage::Error::Locked { .. })) => {
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn a_shutdown_in_a_turn_is_written_down_and_the_queue_runs_after_it() {
    let data = tempfile::tempdir().unwrap();
    let (script, mut requests) = Script::new(vec![Step::Stall("wait")]);
    let runtime = builder(script).data_dir(data.path()).build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    conversation.send(Input::text("first")).await.unwrap();
    requests.recv().await.unwrap();
    conversation.send(Input::text("second")).await.unwrap();
    let id = conversation.id();
    runtime.shutdown().await;
    let stopped = conversation.send(Input::text("third")).await;
    assert!(matches!(stopped, Err(RuntimeError::Stopped)), "{stopped:?}");
    drop((runtime, conversation));
    let (script, requests) = Script::new(Vec::new());
    let runtime = reopen(script, data.path()).await;
    asked(requests).await;
    let conversation = runtime.open(id).await.unwrap();
    let turns = conversation.details().await.unwrap().turns;
    assert_eq!((turns.len(), turns[0].status), (2, TurnStatus::Interrupted));
}

async fn asked(mut requests: mpsc::UnboundedReceiver<openvaala_core::model::ModelRequest>) {
    requests
        .recv()
        .await
        .expect("what waited is asked after a restart");
}

#[tokio::test]
async fn x_01_the_index_can_be_thrown_away() {
    let data = tempfile::tempdir().unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).data_dir(data.path()).build().await.unwrap();
    for text in ["one", "two", "three"] {
        let conversation = runtime.create(NewConversation::default()).await.unwrap();
        let mut events = conversation.subscribe(None).await.unwrap();
        conversation.send(Input::text(text)).await.unwrap();
        turn_end(&mut events).await;
    }
    runtime.shutdown().await;
    let before = runtime.list(ListConversations::default()).await.unwrap();
    drop(runtime);
    let (script, _requests) = Script::new(Vec::new());
    drop(reopen(script.clone(), data.path()).await);
    for name in ["metadata.db", "metadata.db-wal", "metadata.db-shm"] {
        let _ = std::fs::remove_file(data.path().join(name));
    }
    let runtime = reopen(script, data.path()).await;
    assert_eq!(
        runtime.list(ListConversations::default()).await.unwrap(),
        before
    );
    assert_eq!(before.conversations.len(), 3);
}

#[tokio::test]
async fn r_51_a_conversation_copied_from_elsewhere_is_listed_after_a_reindex() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script.clone())
        .data_dir(there.path())
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation
        .send(Input::text("from elsewhere"))
        .await
        .unwrap();
    turn_end(&mut events).await;
    let id = conversation.id();
    let runtime_here = builder(script).data_dir(here.path()).build().await.unwrap();
    let name = format!("conversations/{id}");
    std::fs::create_dir_all(here.path().join(&name)).unwrap();
    for entry in std::fs::read_dir(there.path().join(&name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(
            entry.path(),
            here.path().join(&name).join(entry.file_name()),
        )
        .unwrap();
    }
    let (progress, mut told) = mpsc::channel(16);
    let report = runtime_here.reindex(progress).await.unwrap();
    assert_eq!((report.conversations, report.damaged), (1, Vec::new()));
    assert_eq!(told.recv().await.unwrap().total, 1);
    let listed = runtime_here
        .list(ListConversations::default())
        .await
        .unwrap();
    assert_eq!(listed.conversations[0].id, id);
    let opened = runtime_here.open(id).await.unwrap();
    assert_eq!(items(&opened).await, items(&conversation).await);
}

//! Turns, tools, queue and steering.

use openvaala_core::model::{Message, Messages};
use openvaala_core::protocol::content::{Content, joined_text};
use openvaala_core::protocol::conversation::{ConversationStatus, TurnFailureKind, TurnStatus};
use openvaala_core::protocol::item::{ItemKind, ToolResult, ToolResultStatus};
use openvaala_core::protocol::rpc::params::session::SendMode;
use openvaala_core::{Input, ListConversations, NewConversation, RuntimeError};
use pretty_assertions::assert_eq;

use super::script::{Script, Step, bash, builder, items, kinds, turn_end};

#[tokio::test]
async fn a_turn_runs_tools_in_parallel_and_answers_in_call_order() {
    let folder = tempfile::tempdir().unwrap();
    // Each command waits for the other's file: only side by side they can end.
    let first = bash("touch a; until [ -e b ]; do sleep 0.01; done; echo first");
    let second = bash("touch b; until [ -e a ]; do sleep 0.01; done; echo second");
    let (script, mut requests) = Script::new(vec![
        Step::Call(vec![first, second]),
        Step::Say("both are done"),
    ]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let turn = turn_end(&mut events).await;
    assert_eq!((turn.status, turn.steps), (TurnStatus::Completed, 2));
    use ItemKind::{AssistantMessage, ToolCall, ToolResult as Result, UserMessage};
    assert_eq!(
        kinds(&conversation).await,
        [
            UserMessage,
            ToolCall,
            ToolCall,
            Result,
            Result,
            AssistantMessage
        ]
    );
    requests.recv().await.unwrap();
    let second = requests.recv().await.unwrap();
    let Some(Message::ToolResults(answers)) = second.messages.last() else {
        panic!("{second:?}")
    };
    let said: Vec<String> = answers
        .iter()
        .map(|answer| joined_text(&answer.content))
        .collect();
    assert_eq!(said, ["first\n", "second\n"]);
}

#[tokio::test]
async fn u_019_the_next_request_begins_with_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (script, mut requests) = Script::new(vec![Step::Call(vec![bash("echo hi")])]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    turn_end(&mut events).await;
    let (first, second) = (
        requests.recv().await.unwrap(),
        requests.recv().await.unwrap(),
    );
    assert_eq!(first.instructions, second.instructions);
    let text = |messages: &Messages| {
        messages
            .iter()
            .map(|m| format!("{m:?}"))
            .collect::<Vec<_>>()
    };
    let (first, second) = (text(&first.messages), text(&second.messages));
    assert_eq!(second[..first.len()], first[..]);
}

#[tokio::test]
async fn an_input_is_taken_once_however_often_it_is_sent() {
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let input = Input::text("once");
    assert!(!conversation.send(input.clone()).await.unwrap().duplicate);
    assert!(conversation.send(input.clone()).await.unwrap().duplicate);
    turn_end(&mut events).await;
    assert!(conversation.send(input).await.unwrap().duplicate);
    assert_eq!(
        kinds(&conversation).await,
        [ItemKind::UserMessage, ItemKind::AssistantMessage]
    );
    requests.recv().await.unwrap();
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn a_queued_input_starts_the_next_turn_and_a_steer_is_read_in_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let wait = bash("until [ -e go ]; do sleep 0.01; done");
    let (script, mut requests) = Script::new(vec![Step::Call(vec![wait])]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("start")).await.unwrap();
    requests.recv().await.unwrap();
    conversation.send(Input::text("later")).await.unwrap();
    conversation
        .send(Input::text("by the way").with_mode(SendMode::Steer))
        .await
        .unwrap();
    let busy = conversation
        .send(Input::text("now").with_mode(SendMode::IdleOnly))
        .await;
    assert!(
        matches!(busy, Err(RuntimeError::SessionBusy { .. })),
        "{busy:?}"
    );
    std::fs::write(folder.path().join("go"), "").unwrap();
    let first = turn_end(&mut events).await;
    let second = turn_end(&mut events).await;
    assert_eq!((first.inputs.len(), second.inputs.len()), (2, 1));
    let steered = requests.recv().await.unwrap();
    let Some(Message::User(content)) = steered.messages.last() else {
        panic!("{steered:?}")
    };
    assert_eq!(joined_text(content), "by the way");
}

#[tokio::test]
async fn m_29_an_unknown_tool_and_broken_arguments_are_answered_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let calls = vec![
        ("no_such_tool", "{}".to_owned()),
        ("bash", "{\"command\": ".to_owned()),
    ];
    let (script, _requests) = Script::new(vec![Step::Call(calls)]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
    let results: Vec<ToolResult> = items(&conversation)
        .await
        .iter()
        .filter_map(|item| item.body::<ToolResult>())
        .map(|body| body.unwrap())
        .collect();
    assert!(
        results
            .iter()
            .all(|result| result.status == ToolResultStatus::Failed)
    );
    let said: Vec<String> = results
        .iter()
        .map(|result| joined_text(&result.content))
        .collect();
    assert!(
        said[0].contains("no_such_tool") && said[0].contains("bash"),
        "{said:?}"
    );
    assert!(said[1].contains("bash"), "{said:?}");
}

#[tokio::test]
async fn m_02_a_broken_answer_fails_the_turn_and_is_marked_as_cut() {
    let (script, _requests) = Script::new(vec![Step::Break("half a ")]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let turn = turn_end(&mut events).await;
    assert_eq!(turn.failure.unwrap().kind, TurnFailureKind::Model);
    let all = items(&conversation).await;
    let message = all[1].body::<openvaala_core::protocol::item::AssistantMessage>();
    let message = message.unwrap().unwrap();
    assert_eq!((message.text.as_str(), message.cut), ("half a ", true));
    assert_eq!(all[2].head().kind, ItemKind::ModelError);
    conversation.send(Input::text("again")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
}

#[tokio::test]
async fn m_23_a_refusal_ends_the_turn_as_refused() {
    let (script, _requests) = Script::new(vec![Step::Refuse]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let failure = turn_end(&mut events).await.failure.unwrap();
    assert_eq!(failure.kind, TurnFailureKind::Refused);
}

#[tokio::test]
async fn u_045_a_large_output_is_cut_for_the_model_and_whole_in_the_blob_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (script, mut requests) = Script::new(vec![Step::Call(vec![bash("seq 1 100000")])]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(folder.path()))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("count")).await.unwrap();
    turn_end(&mut events).await;
    requests.recv().await.unwrap();
    let seen = requests.recv().await.unwrap();
    let Some(Message::ToolResults(answers)) = seen.messages.last() else {
        panic!("{seen:?}")
    };
    let said = joined_text(&answers[0].content);
    assert!(
        said.len() < 40_000 && said.starts_with("1\n2\n"),
        "{}",
        said.len()
    );
    let all = items(&conversation).await;
    let result = all
        .iter()
        .find_map(|item| item.body::<ToolResult>())
        .unwrap()
        .unwrap();
    let blob = result.output.expect("the whole output is kept");
    let mut whole = Vec::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let query = openvaala_core::BlobQuery {
            session_id: None,
            blob,
            offset: from,
        };
        let piece = conversation.blob(query).await.unwrap();
        whole.extend(piece.bytes);
        offset = piece.next;
    }
    let expected: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(String::from_utf8(whole).unwrap(), expected);
}

#[tokio::test]
async fn an_empty_input_and_an_image_that_is_none_are_refused() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    for content in [
        vec![],
        vec![Content::text("  \n")],
        vec![Content::Image {
            media_type: "image/png".into(),
            data: openvaala_core::protocol::content::ImageData::Base64("not base64!".into()),
        }],
    ] {
        let mut input = Input::text("x");
        input.content = content;
        let refused = conversation.send(input).await;
        assert!(
            matches!(refused, Err(RuntimeError::InvalidInput { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_folder_provider_or_session_is_named() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let missing = runtime
        .create(NewConversation::in_folder("/no/such/folder"))
        .await;
    assert!(
        matches!(missing, Err(RuntimeError::Executor(_))),
        "{missing:?}"
    );
    let model = openvaala_core::protocol::conversation::ModelRef {
        provider: "nobody".into(),
        model: "x".into(),
        effort: None,
    };
    let unknown = runtime
        .create(NewConversation::new(Vec::new(), Some(model)))
        .await;
    assert_eq!(
        unknown.unwrap_err().to_string(),
        "there is no model provider \"nobody\"; there are: script"
    );
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let nobody = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap();
    let refused = conversation
        .send(Input::text("x").to_session(Some(nobody)))
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::SessionNotFound { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn p_21_a_panic_ends_that_conversation_only() {
    let (script, _requests) = Script::new(vec![Step::Panic]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let broken = runtime.create(NewConversation::default()).await.unwrap();
    let other = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = broken.subscribe(None).await.unwrap();
    broken.send(Input::text("go")).await.unwrap();
    while events.next().await.is_some() {}
    let mut events = other.subscribe(None).await.unwrap();
    other.send(Input::text("go")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
    let reopened = runtime.open(broken.id()).await.unwrap();
    let mut events = reopened.subscribe(None).await.unwrap();
    reopened.send(Input::text("and you?")).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
}

#[tokio::test]
async fn the_list_has_the_last_used_first_and_no_empty_ones() {
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    runtime.create(NewConversation::default()).await.unwrap();
    let mut titles = Vec::new();
    for title in ["first", "second"] {
        let conversation = runtime.create(NewConversation::default()).await.unwrap();
        let mut events = conversation.subscribe(None).await.unwrap();
        conversation
            .send(Input::text(format!("{title}\nand more")))
            .await
            .unwrap();
        turn_end(&mut events).await;
        titles.insert(0, title.to_owned());
    }
    runtime.shutdown().await;
    let page = runtime.list(ListConversations::default()).await.unwrap();
    let listed: Vec<String> = page
        .conversations
        .iter()
        .filter_map(|listed| listed.title.clone())
        .collect();
    assert_eq!(listed, titles);
    assert!(
        page.conversations
            .iter()
            .all(|listed| listed.status == ConversationStatus::Idle)
    );
}

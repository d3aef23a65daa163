//! Inputs that wait, and conversations that change while they are open.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use openvaala_core::model::ModelRequest;
use openvaala_core::protocol::content::{Content, joined_text};
use openvaala_core::protocol::conversation::{ForkOrigin, ModelRef, TurnStatus, WorkLocation};
use openvaala_core::protocol::event::Entry;
use openvaala_core::protocol::id::{ConversationId, ExecutorId, ItemId};
use openvaala_core::protocol::item::{
    AgentChange, ExecutorChange, Item, ItemKind, ModelChange, ToolResult, UserMessage,
};
use openvaala_core::protocol::rpc::params::session::SendMode;
use openvaala_core::{
    AgentDefinition, BlobQuery, ConversationChange, ConversationFilter, ConversationHandle,
    FeedEvent, ForkConversation, Input, ListConversations, NewConversation, PendingUpdate, Runtime,
    RuntimeError, SessionChange, Subscription,
};
use pretty_assertions::assert_eq;
use tokio::sync::mpsc;

use super::script::{Script, Step, bash, builder, items, kinds, turn_end};

/// A data directory with a folder to work in, and a runtime on it.
struct Place {
    folder: tempfile::TempDir,
    runtime: Runtime,
    requests: mpsc::UnboundedReceiver<ModelRequest>,
}

impl Place {
    async fn new(steps: Vec<Step>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let (runtime, requests) = start(folder.path(), steps).await;
        Self {
            folder,
            runtime,
            requests,
        }
    }

    /// The same after its runtime was stopped and another one started.
    async fn restarted(self, steps: Vec<Step>) -> Self {
        self.runtime.shutdown().await;
        drop(self.runtime);
        let (runtime, requests) = start(self.folder.path(), steps).await;
        Self {
            folder: self.folder,
            runtime,
            requests,
        }
    }

    async fn create(&self) -> (ConversationHandle, Subscription) {
        let new = NewConversation::in_folder(self.folder.path().join("work"));
        let conversation = self.runtime.create(new).await.unwrap();
        let events = conversation.subscribe(None).await.unwrap();
        (conversation, events)
    }

    fn location(&self, name: &str) -> WorkLocation {
        let root = fs::canonicalize(self.folder.path().join(name)).unwrap();
        WorkLocation {
            executor: ExecutorId::local(),
            root: root.to_str().unwrap().to_owned(),
        }
    }

    async fn listed(&self, archived: bool) -> Vec<ConversationId> {
        let filter = ConversationFilter {
            archived,
            ..ConversationFilter::default()
        };
        let options = ListConversations {
            filter,
            ..ListConversations::default()
        };
        let page = self.runtime.list(options).await.unwrap();
        page.conversations.iter().map(|it| it.id).collect()
    }
}

async fn start(
    folder: &Path,
    steps: Vec<Step>,
) -> (Runtime, mpsc::UnboundedReceiver<ModelRequest>) {
    let (script, requests) = Script::new(steps);
    let other = Arc::clone(&script);
    let built = builder(script)
        .data_dir(folder.join("data"))
        .provider("other", other)
        .agent("reviewer", AgentDefinition::instructed("You review."))
        .build();
    (built.await.unwrap(), requests)
}

async fn send(conversation: &ConversationHandle, text: &str) -> ItemId {
    let input = Input::text(text);
    let id = input.item_id;
    conversation.send(input).await.unwrap();
    id
}

async fn said(conversation: &ConversationHandle) -> Vec<String> {
    let messages = items(conversation).await.into_iter();
    let messages = messages.filter_map(|item| item.body::<UserMessage>());
    messages
        .map(|message| joined_text(&message.unwrap().content))
        .collect()
}

fn last<B: openvaala_core::protocol::item::ItemBody>(items: &[Item]) -> B {
    let mut bodies = items.iter().rev().filter_map(Item::body::<B>);
    bodies.next().expect("there is such an item").unwrap()
}

#[tokio::test]
async fn what_waits_is_edited_put_in_order_and_withdrawn_and_goes_on_when_it_is_told_to() {
    let mut place = Place::new(vec![Step::Stall("I think")]).await;
    let (conversation, mut events) = place.create().await;
    let running = send(&conversation, "start").await;
    place.requests.recv().await.unwrap();
    let mut waiting = Vec::new();
    for text in ["one", "two", "three"] {
        waiting.push(send(&conversation, text).await);
    }
    let [one, two, three] = waiting.try_into().unwrap();
    conversation.interrupt(None).await.unwrap();
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Interrupted);

    let taken = conversation
        .withdraw_pending(None, vec![one, running])
        .await;
    assert!(
        matches!(taken, Err(RuntimeError::InputTaken { input }) if input == running),
        "{taken:?}"
    );
    let unknown = Input::text("never sent").item_id;
    let missing = conversation.update_pending(None, unknown, PendingUpdate::steer(true));
    let missing = missing.await.unwrap_err();
    assert!(
        matches!(missing, RuntimeError::InputNotFound { input } if input == unknown),
        "{missing:?}"
    );
    let some = conversation.reorder_pending(None, vec![one, two]).await;
    assert!(
        matches!(some, Err(RuntimeError::QueueChanged { .. })),
        "{some:?}"
    );

    let order = vec![three, one, two];
    let pending = conversation.reorder_pending(None, order.clone()).await;
    let ids: Vec<ItemId> = pending.unwrap().iter().map(|it| it.item_id).collect();
    assert_eq!(ids, order);
    let other = PendingUpdate::content(vec![Content::text("two and a half")]);
    conversation.update_pending(None, two, other).await.unwrap();
    conversation
        .withdraw_pending(None, vec![one])
        .await
        .unwrap();
    let pending = conversation.pending(None).await.unwrap();
    let texts: Vec<String> = pending
        .inputs
        .iter()
        .map(|input| joined_text(&input.content))
        .collect();
    assert_eq!(
        (texts, pending.held),
        (vec!["three".to_owned(), "two and a half".to_owned()], true)
    );

    assert!(conversation.resume(None).await.unwrap());
    assert_eq!(turn_end(&mut events).await.inputs, [three]);
    assert_eq!(turn_end(&mut events).await.inputs, [two]);
    assert!(!conversation.resume(None).await.unwrap());
    let expected = ["start", "three", "two and a half"];
    assert_eq!(said(&conversation).await, expected);

    // An input is accepted once: what was withdrawn does not come back when its sender repeats itself, also later.
    let again = Input::new(one, vec![Content::text("one")]);
    assert!(conversation.send(again.clone()).await.unwrap().duplicate);
    let id = conversation.id();
    drop((conversation, events));
    let place = place.restarted(Vec::new()).await;
    let conversation = place.runtime.open(id).await.unwrap();
    assert!(conversation.send(again).await.unwrap().duplicate);
    assert_eq!(said(&conversation).await, expected);
}

#[tokio::test]
async fn a_waiting_input_becomes_a_steer_and_back() {
    let wait = bash("until [ -e go ]; do sleep 0.01; done");
    let mut place = Place::new(vec![Step::Call(vec![wait])]).await;
    let (conversation, mut events) = place.create().await;
    send(&conversation, "start").await;
    place.requests.recv().await.unwrap();
    let now = send(&conversation, "for this turn").await;
    let later = Input::text("for the next").with_mode(SendMode::Steer);
    conversation.send(later.clone()).await.unwrap();
    let steer = PendingUpdate::steer(true);
    let pending = conversation.update_pending(None, now, steer).await.unwrap();
    assert!(pending[0].is_steer);
    let wait = PendingUpdate::steer(false);
    conversation
        .update_pending(None, later.item_id, wait)
        .await
        .unwrap();
    fs::write(place.folder.path().join("work/go"), "").unwrap();
    assert_eq!(turn_end(&mut events).await.inputs.last(), Some(&now));
    assert_eq!(turn_end(&mut events).await.inputs, [later.item_id]);
}

#[tokio::test]
async fn nothing_is_held_any_more_once_all_is_withdrawn() {
    let mut place = Place::new(vec![Step::Stall("I think")]).await;
    let (conversation, mut events) = place.create().await;
    send(&conversation, "start").await;
    place.requests.recv().await.unwrap();
    let waiting = send(&conversation, "one").await;
    conversation.interrupt(None).await.unwrap();
    turn_end(&mut events).await;
    let left = conversation.withdraw_pending(None, vec![waiting]).await;
    assert_eq!(left.unwrap(), []);
    let details = conversation.details().await.unwrap();
    assert_eq!(
        (details.sessions[0].pending.len(), details.sessions[0].held),
        (0, false)
    );
}

#[tokio::test]
async fn another_model_and_agent_count_from_the_next_turn_and_are_items_of_the_log() {
    let mut place = Place::new(vec![Step::Stall("I think")]).await;
    let (conversation, mut events) = place.create().await;
    send(&conversation, "start").await;
    let first = place.requests.recv().await.unwrap();
    let model = ModelRef {
        provider: "other".to_owned(),
        model: "large".to_owned(),
        effort: None,
    };
    let unknown = ModelRef {
        provider: "nobody".to_owned(),
        ..model.clone()
    };
    let refused = conversation
        .change_session(None, SessionChange::model(unknown))
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::UnknownProvider { .. })),
        "{refused:?}"
    );
    let agent = Some("nobody".to_owned());
    let both = SessionChange::model(model.clone()).with_agent(agent);
    let refused = conversation.change_session(None, both).await;
    assert!(
        matches!(refused, Err(RuntimeError::UnknownAgent { .. })),
        "{refused:?}"
    );

    let change = SessionChange::model(model.clone())
        .with_effort(Some("high".to_owned()))
        .with_agent(Some("reviewer".to_owned()));
    let session = conversation.change_session(None, change).await.unwrap();
    let to = ModelRef {
        effort: Some("high".to_owned()),
        ..model
    };
    assert_eq!(
        (&session.model, session.agent.as_deref()),
        (&to, Some("reviewer"))
    );
    conversation.interrupt(None).await.unwrap();
    let turn = turn_end(&mut events).await;
    let from = turn.model.clone();
    assert_eq!(from.model, first.model);

    let id = conversation.id();
    drop((conversation, events));
    let mut place = place.restarted(Vec::new()).await;
    let conversation = place.runtime.open(id).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    send(&conversation, "go on").await;
    assert_eq!(turn_end(&mut events).await.model, to);
    let request = place.requests.recv().await.unwrap();
    assert_eq!(
        (request.model.as_str(), request.effort.as_deref()),
        ("large", Some("high"))
    );
    assert!(request.instructions.contains("You review."));
    let items = items(&conversation).await;
    assert_eq!(last::<ModelChange>(&items), ModelChange::new(from, to));
    let agents = AgentChange::new(None, Some("reviewer".to_owned()));
    assert_eq!(last::<AgentChange>(&items), agents);
    let count = |kind: ItemKind| items.iter().filter(|it| it.head().kind == kind).count();
    assert_eq!(
        (count(ItemKind::ModelChange), count(ItemKind::AgentChange)),
        (1, 1)
    );
}

#[tokio::test]
async fn a_conversation_moves_to_another_folder_and_commands_in_the_old_one_go_on() {
    let background = (
        "bash",
        r#"{"command":"until [ -e go ]; do sleep 0.01; done; echo $PWD > end","yield_ms":300}"#
            .to_owned(),
    );
    let steps = vec![
        Step::Call(vec![background]),
        Step::Say("it runs"),
        Step::Call(vec![bash("touch here")]),
    ];
    let place = Place::new(steps).await;
    let (conversation, mut events) = place.create().await;
    send(&conversation, "start").await;
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);

    let started: ToolResult = last(&items(&conversation).await);
    let started = joined_text(&started.content);
    assert!(started.contains("command 1"), "{started}");

    let nowhere = WorkLocation {
        executor: ExecutorId::local(),
        root: place.folder.path().join("nowhere").display().to_string(),
    };
    let refused = conversation
        .change(ConversationChange::executors(vec![nowhere]))
        .await;
    assert!(
        matches!(refused, Err(RuntimeError::Executor(_))),
        "{refused:?}"
    );
    let (from, to) = (vec![place.location("work")], vec![place.location("other")]);
    let moved = conversation
        .change(ConversationChange::executors(to.clone()))
        .await;
    assert_eq!(moved.unwrap().executors, to);
    send(&conversation, "where are we?").await;
    let turn = turn_end(&mut events).await;
    assert_eq!((turn.status, &turn.executors), (TurnStatus::Completed, &to));
    assert!(place.folder.path().join("other/here").exists());
    let change: ExecutorChange = last(&items(&conversation).await);
    assert_eq!(change, ExecutorChange::new(from.clone(), to.clone()));
    fs::write(place.folder.path().join("work/go"), "").unwrap();
    let end = place.folder.path().join("work/end");
    let written = async {
        while fs::read_to_string(&end).unwrap_or_default().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let limit = std::time::Duration::from_secs(60);
    tokio::time::timeout(limit, written).await.unwrap();

    let id = conversation.id();
    drop((conversation, events));
    let place = place.restarted(Vec::new()).await;
    let details = place.runtime.open(id).await.unwrap().details().await;
    assert_eq!(details.unwrap().conversation.executors, to);
}

#[tokio::test]
async fn a_title_and_the_archive_are_kept_and_told() {
    let place = Place::new(Vec::new()).await;
    let (conversation, mut events) = place.create().await;
    send(&conversation, "the first words").await;
    turn_end(&mut events).await;
    let title = conversation
        .change(ConversationChange::title(" a plan "))
        .await;
    assert_eq!(title.unwrap().title.as_deref(), Some("a plan"));
    assert!(
        conversation
            .change(ConversationChange::archived(true))
            .await
            .unwrap()
            .archived
    );
    loop {
        let told = events.next().await.expect("it is told");
        if let FeedEvent::Entry { entry, .. } = told
            && let Entry::Conversation { conversation, .. } = &*entry
            && conversation.archived
        {
            assert_eq!(conversation.title.as_deref(), Some("a plan"));
            break;
        }
    }
    let id = conversation.id();
    drop((conversation, events));
    let place = place.restarted(Vec::new()).await;
    assert_eq!(
        (place.listed(false).await, place.listed(true).await),
        (vec![], vec![id])
    );
    let conversation = place.runtime.open(id).await.unwrap();
    send(&conversation, "it keeps its title").await;
    let shown = conversation
        .change(ConversationChange::archived(false))
        .await
        .unwrap();
    assert_eq!(
        (shown.title.as_deref(), shown.archived),
        (Some("a plan"), false)
    );
    assert_eq!(
        (place.listed(false).await, place.listed(true).await),
        (vec![id], vec![])
    );
}

#[tokio::test]
async fn a_fork_has_what_came_before_and_goes_on_by_itself() {
    let steps = vec![
        Step::Call(vec![bash("seq 30000"), bash("echo short")]),
        Step::Say("that was long"),
        Step::Say("something else"),
    ];
    let place = Place::new(steps).await;
    let (source, mut events) = place.create().await;
    send(&source, "count").await;
    turn_end(&mut events).await;
    let before = items(&source).await;
    send(&source, "what else?").await;
    turn_end(&mut events).await;
    let all = items(&source).await;

    // Between the calls and their results there is no place to cut.
    let at = |n: usize| Some(all[n].head().id);
    let cut = |at| place.runtime.fork(ForkConversation::of(source.id()).at(at));
    let refused = cut(at(1)).await;
    let Err(RuntimeError::InvalidCut {
        before: b,
        after: a,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((b, a), (at(0), at(4)));

    let fork = cut(at(5)).await.unwrap();
    let whole = cut(None).await.unwrap();
    assert_eq!(
        (items(&fork).await, items(&whole).await),
        (before, all.clone())
    );
    let (id, whole_id) = (fork.id(), whole.id());
    let (source_id, root) = (source.id(), all[5].head().id);
    let details = source.details().await.unwrap();
    drop((source, events, fork, whole));

    let mut place = place.restarted(Vec::new()).await;
    let fork = place.runtime.open(id).await.unwrap();
    let forked = fork.details().await.unwrap();
    let origin = ForkOrigin {
        conversation_id: source_id,
        session_id: details.sessions[0].id,
        item_id: root,
    };
    let conversation = &forked.conversation;
    assert_eq!(
        (conversation.forked_from, conversation.title.as_deref()),
        (Some(origin), Some("count"))
    );
    assert_eq!(conversation.executors, details.conversation.executors);
    let [turn] = forked.turns.try_into().unwrap();
    assert_eq!(
        (turn.id, turn.status),
        (details.turns[0].id, TurnStatus::Completed)
    );
    let result = items(&fork).await[3].body::<ToolResult>().unwrap().unwrap();
    let blob = result.output.expect("the output is kept");
    let piece = fork.blob(BlobQuery::new(blob)).await.unwrap();
    assert!(
        piece.bytes.starts_with(b"1\n2\n3\n"),
        "{}",
        piece.bytes.len()
    );
    assert_eq!(blob.bytes, piece.bytes.len() as u64);

    let mut events = fork.subscribe(None).await.unwrap();
    send(&fork, "and now?").await;
    assert_eq!(turn_end(&mut events).await.status, TurnStatus::Completed);
    let request = place.requests.recv().await.unwrap();
    let request = format!("{:?}", request.messages);
    assert!(request.contains("that was long") && !request.contains("what else?"));
    let source = place.runtime.open(source_id).await.unwrap();
    assert_eq!(items(&source).await, all);
    assert_eq!(source.details().await.unwrap(), details);
    let mut listed = place.listed(false).await;
    listed.sort();
    assert_eq!(listed, [source_id, id, whole_id]);
    assert_eq!(kinds(&fork).await.len(), 8);
}

#[tokio::test]
async fn a_turn_that_was_cut_has_ended_and_one_that_runs_is_left_out() {
    let steps = vec![
        Step::Call(vec![bash("true")]),
        Step::Say("done"),
        Step::Stall("I think"),
    ];
    let mut place = Place::new(steps).await;
    let (source, mut events) = place.create().await;
    let empty = place.runtime.fork(ForkConversation::of(source.id())).await;
    assert!(
        matches!(empty, Err(RuntimeError::InvalidInput { .. })),
        "{empty:?}"
    );
    send(&source, "start").await;
    turn_end(&mut events).await;
    send(&source, "think").await;
    for _ in 0..3 {
        place.requests.recv().await.unwrap();
    }
    let all = items(&source).await;
    let running = ForkConversation::of(source.id()).at(Some(all[4].head().id));
    let refused = place.runtime.fork(running).await;
    assert!(
        matches!(&refused, Err(RuntimeError::InvalidCut { before, after: None, .. })
            if *before == Some(all[3].head().id)),
        "{refused:?}"
    );
    let ended = place
        .runtime
        .fork(ForkConversation::of(source.id()))
        .await
        .unwrap();
    assert_eq!(items(&ended).await, all[..4]);
    let cut = ForkConversation::of(source.id()).at(Some(all[2].head().id));
    let cut = place.runtime.fork(cut).await.unwrap();
    assert_eq!(items(&cut).await, all[..3]);
    let turns = cut.details().await.unwrap().turns;
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].status, TurnStatus::Interrupted);
}

#[tokio::test]
async fn what_a_crash_left_of_a_fork_is_removed_by_the_next_start() {
    let place = Place::new(Vec::new()).await;
    let left = place
        .folder
        .path()
        .join("data/forks/0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d");
    place.runtime.shutdown().await;
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("metadata.jsonl"), "").unwrap();
    let place = place.restarted(Vec::new()).await;
    assert!(!left.exists());
    assert_eq!(place.listed(false).await, []);
}

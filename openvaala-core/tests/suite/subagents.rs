//! Agents that agents start: their reports, messages, ends, limits and rights.

use openvaala_core::model::Message;
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::conversation::{
    Session, SessionStatus, Turn, TurnFailureKind, TurnStatus,
};
use openvaala_core::protocol::id::SessionId;
use openvaala_core::protocol::item::{
    AgentMessage, Item, ItemKind, Plan, PlanStepState, ToolResult, ToolResultStatus,
};
use openvaala_core::protocol::rpc::params::session::InterruptScope;
use openvaala_core::{
    AgentLimits, ConversationHandle, Input, NewConversation, Runtime, Subscription,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::cast::{Cast, at_rest, background, hold, latch, spawn, until};
use super::script::{Step, bash, builder, items, items_of, turn_end};

async fn begin(runtime: &Runtime) -> ConversationHandle {
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    conversation
}

/// Waits for the end of the next turn of a session.
async fn end_of(events: &mut Subscription, session: SessionId) -> Turn {
    loop {
        let turn = turn_end(events).await;
        if turn.session_id == session {
            return turn;
        }
    }
}

fn results(items: &[Item]) -> Vec<ToolResult> {
    let results = items.iter().filter_map(|item| item.body::<ToolResult>());
    results.map(Result::unwrap).collect()
}

fn texts(items: &[Item]) -> Vec<String> {
    let results = results(items).into_iter();
    results.map(|result| joined_text(&result.content)).collect()
}

/// What other agents have said to a session.
fn messages(items: &[Item]) -> Vec<(Option<String>, Option<TurnStatus>, String)> {
    let messages = items.iter().filter_map(|item| item.body::<AgentMessage>());
    let messages = messages.map(Result::unwrap);
    messages
        .map(|message| (message.path, message.ended, joined_text(&message.content)))
        .collect()
}

fn paths(sessions: &[Session]) -> Vec<&str> {
    sessions
        .iter()
        .map(|session| session.path.as_str())
        .collect()
}

#[tokio::test]
async fn an_agent_in_the_foreground_gives_its_report_as_the_result_of_the_call() {
    let calls = vec![spawn("review", json!({})), spawn("tests", json!({}))];
    let (cast, mut requests) = Cast::new([
        ("main", vec![Step::Call(calls), Step::Say("both are done")]),
        ("main/review", vec![Step::Say("it is fine")]),
        ("main/tests", vec![Step::Say("they pass")]),
    ]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let root = conversation
        .send(Input::text("go"))
        .await
        .unwrap()
        .session_id;
    let sessions = until(&conversation, &mut events, |all| {
        all.len() == 3 && at_rest(all)
    })
    .await;
    let of_main = items(&conversation).await;
    assert_eq!(
        texts(&of_main),
        [
            "main/review has ended its turn:\nit is fine",
            "main/tests has ended its turn:\nthey pass",
        ]
    );
    let mut found = paths(&sessions);
    found.sort_unstable();
    assert_eq!(found, ["main", "main/review", "main/tests"]);
    assert!(
        sessions[1..]
            .iter()
            .all(|session| session.parent == Some(root))
    );
    assert_eq!(messages(&of_main), []);
    // The reports are inputs of the turn that has read them.
    let details = conversation.details().await.unwrap();
    let mut turns = details.turns.iter();
    let turn = turns.rfind(|turn| turn.session_id == root).unwrap();
    let read: Vec<_> = results(&of_main)
        .into_iter()
        .flat_map(|result| result.messages)
        .collect();
    assert_eq!((turn.inputs.len(), read.len()), (3, 2));
    assert!(read.iter().all(|message| turn.inputs.contains(message)));
    let review = sessions
        .iter()
        .find(|session| session.path == "main/review")
        .unwrap();
    let of_review = items_of(&conversation, Some(review.id)).await;
    assert_eq!(
        messages(&of_review),
        [(Some("main".to_owned()), None, "do review".to_owned())]
    );
    let mut asked = Vec::new();
    while let Ok((path, _)) = requests.try_recv() {
        asked.push(path);
    }
    asked.sort_unstable();
    assert_eq!(asked, ["main", "main", "main/review", "main/tests"]);
}

#[tokio::test]
async fn an_agent_in_the_background_reports_by_a_message_that_starts_a_turn() {
    let mut key = latch();
    let (cast, mut requests) = Cast::new([
        (
            "main",
            vec![Step::Call(vec![background("slow")]), Step::Say("it runs")],
        ),
        (
            "main/slow",
            vec![Step::Call(vec![hold()]), Step::Say("here it is")],
        ),
    ]);
    let runtime = builder(cast)
        .tool(key.tool.clone())
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let root = conversation
        .send(Input::text("go"))
        .await
        .unwrap()
        .session_id;
    assert_eq!(
        end_of(&mut events, root).await.status,
        TurnStatus::Completed
    );
    key.reached.recv().await.unwrap();
    key.open.send_replace(true);
    end_of(&mut events, root).await;
    let of_main = items(&conversation).await;
    let report = "here it is".to_owned();
    assert_eq!(
        messages(&of_main),
        [(
            Some("main/slow".to_owned()),
            Some(TurnStatus::Completed),
            report
        )]
    );
    assert_eq!(
        of_main.last().unwrap().head().kind,
        ItemKind::AssistantMessage
    );
    let mut last = None;
    while let Ok((path, request)) = requests.try_recv() {
        if path == "main" {
            last = request.messages.last().cloned();
        }
    }
    let Some(Message::User(content)) = last else {
        panic!("the report is what the model reads last: {last:?}");
    };
    assert_eq!(
        joined_text(&content),
        "Report: agent main/slow has ended its turn:\nhere it is"
    );
}

#[tokio::test]
async fn u_155_waiting_costs_no_request_and_ends_with_a_report_or_a_word() {
    let mut key = latch();
    let wait = ("wait_agent", json!({}).to_string());
    let (cast, mut requests) = Cast::new([
        (
            "main",
            vec![
                Step::Call(vec![background("a"), background("b")]),
                Step::Call(vec![wait.clone()]),
                Step::Call(vec![wait]),
            ],
        ),
        (
            "main/a",
            vec![Step::Call(vec![hold()]), Step::Say("a is done")],
        ),
        ("main/b", vec![Step::Stall("b hangs")]),
    ]);
    let runtime = builder(cast)
        .tool(key.tool.clone())
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    key.reached.recv().await.unwrap();
    let mut of_main = 0;
    while of_main < 2 {
        let (path, _) = requests.recv().await.unwrap();
        of_main += usize::from(path == "main");
    }
    key.open.send_replace(true);
    loop {
        let (path, _) = requests.recv().await.unwrap();
        of_main += usize::from(path == "main");
        if of_main == 3 {
            break;
        }
    }
    let text = |at: usize| {
        let conversation = conversation.clone();
        async move { texts(&items(&conversation).await)[at].clone() }
    };
    assert_eq!(
        text(2).await,
        "main/a has ended its turn:\na is done\n\nmain/b: at work"
    );
    // Nothing ends the second wait but a word from the user.
    let steer = Input::text("how far?")
        .with_mode(openvaala_core::protocol::rpc::params::session::SendMode::Steer);
    conversation.send(steer).await.unwrap();
    turn_end(&mut events).await;
    let woken = text(3).await;
    assert_eq!(
        woken,
        "[somebody has said something to you: it follows]\n\nmain/b: at work"
    );
}

#[tokio::test]
async fn u_153_closing_an_agent_that_hangs_is_quick_and_frees_its_place() {
    let close = ("close_agent", json!({ "agent": "a" }).to_string());
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![
                Step::Call(vec![background("a")]),
                Step::Call(vec![background("b")]),
                Step::Call(vec![close.clone()]),
                Step::Call(vec![close]),
                Step::Call(vec![spawn("b", json!({}))]),
                Step::Call(vec![(
                    "send_message",
                    json!({ "agent": "a", "text": "hello" }).to_string(),
                )]),
            ],
        ),
        (
            "main/a",
            vec![Step::Call(vec![("stubborn", "{}".to_owned())])],
        ),
    ]);
    let runtime = builder(cast)
        .tool(stubborn())
        .agent_limits(AgentLimits::new(1, 1))
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let sessions = until(&conversation, &mut events, |all| {
        all[0].status == SessionStatus::Idle && all.len() == 3
    })
    .await;
    assert_eq!(
        texts(&items(&conversation).await),
        [
            "main/a has begun; its report comes to you as a message",
            "1 agents are open, which is all there may be: close one that you do not need any more",
            "main/a is closed",
            "main/a is closed",
            "main/b has ended its turn:\ndone",
            "agent main/a was closed: start a new one",
        ]
    );
    let a = sessions
        .iter()
        .find(|session| session.path == "main/a")
        .unwrap();
    assert!(a.closed);
    assert_eq!(messages(&items(&conversation).await), []);
}

/// A tool that does not listen to anybody.
fn stubborn() -> std::sync::Arc<dyn openvaala_core::executor::tool::Tool> {
    use openvaala_core::executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool, typed};

    #[derive(Debug)]
    struct Stubborn;

    #[async_trait::async_trait]
    impl TypedTool for Stubborn {
        type Arguments = super::cast::Nothing;
        const NAME: &'static str = "stubborn";

        fn description(&self) -> String {
            "Hangs.".to_owned()
        }

        async fn run(
            &self,
            _: ToolContext,
            _: super::cast::Nothing,
        ) -> Result<ToolOutput, ToolError> {
            futures::future::pending().await
        }
    }
    typed(Stubborn)
}

#[tokio::test]
async fn u_060_an_interrupt_takes_the_agents_along_that_the_turn_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    // What it says is not in its own words: those are shown before it runs.
    let command = bash("echo $$ > pid; echo $((6 * 7)); sleep 1000");
    let (cast, _requests) = Cast::new([
        ("main", vec![Step::Call(vec![spawn("a", json!({}))])]),
        ("main/a", vec![Step::Call(vec![spawn("b", json!({}))])]),
        ("main/a/b", vec![Step::Call(vec![command])]),
    ]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let new = NewConversation::in_folder(folder.path());
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    super::interrupting::shown(&mut events, "42").await;
    conversation.interrupt(None).await.unwrap().unwrap();
    let sessions = until(&conversation, &mut events, |all| {
        all.len() == 3 && at_rest(all)
    })
    .await;
    assert_eq!(paths(&sessions), ["main", "main/a", "main/a/b"]);
    let result = results(&items(&conversation).await).remove(0);
    assert_eq!(result.status, ToolResultStatus::Interrupted);
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let alive = std::path::Path::new("/proc").join(pid.trim());
    assert!(!alive.exists(), "the command of the agent is dead");
}

#[tokio::test]
async fn u_063_an_interrupt_leaves_agents_in_the_background_and_they_report() {
    let mut key = latch();
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![Step::Call(vec![background("a")]), Step::Stall("I think")],
        ),
        (
            "main/a",
            vec![Step::Call(vec![hold()]), Step::Say("a is done")],
        ),
    ]);
    let runtime = builder(cast)
        .tool(key.tool.clone())
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    key.reached.recv().await.unwrap();
    super::interrupting::shown(&mut events, "think").await;
    conversation.interrupt(None).await.unwrap().unwrap();
    let sessions = conversation.tree().await.unwrap();
    assert_eq!(sessions[1].status, SessionStatus::Running);
    key.open.send_replace(true);
    let sessions = until(&conversation, &mut events, |all| {
        at_rest(all) && !all[0].pending.is_empty()
    })
    .await;
    // It waits for the user, who has stopped the main agent.
    assert_eq!(sessions[0].pending[0].from, Some(sessions[1].id));
    conversation.send(Input::text("go on")).await.unwrap();
    until(&conversation, &mut events, |all| {
        at_rest(all) && all[0].pending.is_empty()
    })
    .await;
    let report = (
        Some("main/a".to_owned()),
        Some(TurnStatus::Completed),
        "a is done".to_owned(),
    );
    assert_eq!(messages(&items(&conversation).await), [report]);
}

#[tokio::test]
async fn the_whole_tree_is_interrupted_if_that_is_asked() {
    let mut key = latch();
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![Step::Call(vec![background("a")]), Step::Stall("I think")],
        ),
        ("main/a", vec![Step::Call(vec![hold()])]),
    ]);
    let runtime = builder(cast)
        .tool(key.tool.clone())
        .in_memory()
        .build()
        .await
        .unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    key.reached.recv().await.unwrap();
    super::interrupting::shown(&mut events, "think").await;
    let turn = conversation
        .interrupt_within(None, InterruptScope::Tree)
        .await
        .unwrap();
    assert!(turn.is_some());
    let sessions = conversation.tree().await.unwrap();
    let running = sessions
        .iter()
        .filter(|session| session.status == SessionStatus::Running);
    assert_eq!(running.count(), 0);
    until(&conversation, &mut events, |all| !all[0].pending.is_empty()).await;
}

#[tokio::test]
async fn u_157_a_message_to_an_agent_that_has_ended_starts_a_turn_that_is_reported() {
    let say = (
        "send_message",
        json!({ "agent": "main/a", "text": "and now?" }).to_string(),
    );
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![
                Step::Call(vec![spawn("a", json!({}))]),
                Step::Call(vec![say]),
                Step::Call(vec![("wait_agent", json!({ "agents": ["a"] }).to_string())]),
            ],
        ),
        ("main/a", vec![Step::Say("first"), Step::Say("second")]),
    ]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let root = conversation
        .send(Input::text("go"))
        .await
        .unwrap()
        .session_id;
    let told = loop {
        end_of(&mut events, root).await;
        let of_main = items(&conversation).await;
        let said = messages(&of_main).into_iter().map(|(_, _, text)| text);
        let told: Vec<String> = texts(&of_main).into_iter().chain(said).collect();
        // It may end before it is waited for: then it is told after the turn that waits.
        if told.iter().any(|text| text.contains("second")) {
            break told;
        }
    };
    let second = told.iter().filter(|text| text.contains("second")).count();
    assert_eq!(second, 1, "the second end is told once: {told:?}");
}

#[tokio::test]
async fn an_agent_that_fails_says_so_and_what_it_may_use_is_limited() {
    let (cast, _requests) = Cast::new([
        (
            "main",
            vec![Step::Call(vec![
                spawn("broken", json!({})),
                spawn("poor", json!({ "token_budget": 10 })),
            ])],
        ),
        ("main/broken", vec![Step::Fail(400, 0)]),
        (
            "main/poor",
            vec![Step::CallAfter(
                20,
                ("plan", json!({ "steps": [] }).to_string()),
            )],
        ),
    ]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let conversation = begin(&runtime).await;
    let mut events = conversation.subscribe(None).await.unwrap();
    let sessions = until(&conversation, &mut events, |all| {
        all.len() == 3 && at_rest(all)
    })
    .await;
    let texts = texts(&items(&conversation).await);
    assert!(texts[0].contains("HTTP 400"), "{texts:?}");
    assert!(
        texts[1].starts_with("main/poor has failed:\nthe agent has used all tokens"),
        "{texts:?}"
    );
    let poor = sessions
        .iter()
        .find(|session| session.path == "main/poor")
        .unwrap();
    let details = conversation.details().await.unwrap();
    let mut turns = details
        .turns
        .iter()
        .filter(|turn| turn.session_id == poor.id);
    let failure = turns.next().unwrap().failure.clone().unwrap();
    assert_eq!(failure.kind, TurnFailureKind::Budget);
}

#[tokio::test]
async fn what_cannot_be_started_is_said_with_the_way_out() {
    let calls = vec![
        spawn("Ä", json!({})),
        spawn("x", json!({ "agent": "nobody" })),
        spawn("x", json!({ "folder": "/etc" })),
        spawn("y", json!({ "executors": ["far"] })),
        spawn("twice", json!({})),
        spawn("twice", json!({})),
        (
            "send_message",
            json!({ "agent": "ghost", "text": "hello" }).to_string(),
        ),
        ("interrupt_agent", json!({ "agent": "main" }).to_string()),
    ];
    let (cast, _requests) = Cast::new([("main", vec![Step::Call(calls)])]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mode = openvaala_core::protocol::approval::ApprovalMode::AutoEdit;
    let mut new = NewConversation::in_folder(folder.path());
    new.approval_mode = Some(mode);
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    until(&conversation, &mut events, |all| {
        all.len() == 2 && at_rest(all)
    })
    .await;
    let root = folder.path().canonicalize().unwrap();
    let texts: Vec<String> = texts(&items(&conversation).await)
        .into_iter()
        .map(|text| text.replace(root.to_str().unwrap(), "<folder>"))
        .collect();
    assert_eq!(
        texts,
        [
            r#"the name "Ä" cannot be: 1 to 40 of a-z, 0-9, - and _"#,
            r#"there is no agent "nobody"; there are: none"#,
            "/etc is not within your own folders: <folder>",
            r#"there is no executor "far" for it; you have: local"#,
            "main/twice has ended its turn:\ndone",
            "there is an agent main/twice already: choose another name, or send it a message",
            r#"there is no agent "ghost"; there are: main"#,
            "main is not below you: only agents that you have started, and those below them, can be told that",
        ]
    );
}

#[tokio::test]
async fn a_plan_is_one_item_of_the_turn_that_changes() {
    let plan = |state: &str| {
        let steps = json!({ "steps": [{ "text": "look", "state": state }] });
        ("plan", steps.to_string())
    };
    let (cast, _requests) = Cast::new([(
        "main",
        vec![
            Step::Call(vec![plan("running")]),
            Step::Call(vec![plan("done")]),
            Step::Call(vec![("plan", json!({ "steps": 7 }).to_string())]),
        ],
    )]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    turn_end(&mut events).await;
    let plans: Vec<(u64, PlanStepState)> = items(&conversation)
        .await
        .iter()
        .filter_map(|item| Some((item.head().pos, item.body::<Plan>()?.unwrap())))
        .map(|(pos, plan)| (pos, plan.steps[0].state))
        .collect();
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[0].0, plans[1].0, "it keeps its place");
    assert_eq!(plans[1].1, PlanStepState::Done);
}

#[tokio::test]
async fn an_agent_begins_with_what_its_starter_knows_if_that_is_asked() {
    let (cast, mut requests) = Cast::new([(
        "main",
        vec![
            Step::Call(vec![("plan", json!({ "steps": [] }).to_string())]),
            Step::Call(vec![
                spawn("knows", json!({ "context": "all" })),
                spawn("knows-not", json!({})),
            ]),
        ],
    )]);
    let runtime = builder(cast).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation
        .send(Input::text("the secret is 42"))
        .await
        .unwrap();
    until(&conversation, &mut events, |all| {
        all.len() == 3 && at_rest(all)
    })
    .await;
    let mut seen = std::collections::BTreeMap::new();
    while let Ok((path, request)) = requests.try_recv() {
        let said = request.messages.iter().map(|message| match message {
            Message::User(content) => joined_text(content),
            Message::ToolResults(results) => format!("{} results", results.len()),
            _ => "…".to_owned(),
        });
        seen.entry(path).or_insert_with(|| said.collect::<Vec<_>>());
    }
    assert_eq!(
        (&seen["main/knows"], &seen["main/knows-not"]),
        (
            &vec![
                "the secret is 42".to_owned(),
                "…".to_owned(),
                "1 results".to_owned(),
                "Message from agent main:\ndo knows".to_owned(),
            ],
            &vec!["Message from agent main:\ndo knows-not".to_owned()],
        )
    );
}

//! Tool calls that somebody has to approve, with the real server.

use std::fs;

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalMode, ApprovalScope};
use openvaala_protocol::client::{ClientError, VIEW_ITEMS, View};
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId};
use openvaala_protocol::item::{Approval, ApprovalState};
use openvaala_protocol::rpc::params::approval::{AnswerParams, ListParams, OpenApproval};
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};
use openvaala_protocol::rpc::{ErrorCode, Notice, method};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Server;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{logged_items, of_kind};

/// Calls `bash` with the message as the command, and says the result.
fn obedient(asked: &Asked) -> Answer {
    match asked.results().as_slice() {
        [] => {
            let arguments = serde_json::json!({ "command": asked.last_user() }).to_string();
            Answer::tool("call_1", "bash", &arguments)
        }
        [.., last] => Answer::text(&format!("it said: {}", last.content)),
    }
}

fn asking_sandbox(model: &FakeModel, approval: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.use_model_with(&model.base_url(), &format!("approval: {approval}\n"));
    sandbox
}

/// Waits until a question is on disk, as this client is told.
async fn question(watcher: &mut Watcher, conversation: ConversationId) -> OpenApproval {
    while let Some(notice) = watcher.next().await {
        if let Notice::ConversationEntry(told) = notice
            && let Entry::Item { item, .. } = &told.entry
            && let Some(Ok(approval)) = item.body::<Approval>()
            && approval.state == ApprovalState::Pending
        {
            let open = list(watcher, Some(conversation)).await;
            let asked = open
                .into_iter()
                .find(|open| open.approval_id == item.head().id);
            return asked.expect("what is told is listed");
        }
    }
    panic!("the connection has ended");
}

/// A call that waits for an answer: its server, who has sent it, and the question.
struct Waiting {
    server: Server,
    watcher: Watcher,
    conversation: ConversationId,
    asked: OpenApproval,
}

impl Waiting {
    /// Has the model call `touch made`.
    async fn begin(sandbox: &Sandbox) -> Self {
        Self::begin_with(sandbox, "touch made").await
    }

    /// Has the model call `bash` with that command, which is asked.
    async fn begin_with(sandbox: &Sandbox, command: &str) -> Self {
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let conversation = watcher.create(&sandbox.project()).await;
        watcher.send(conversation, command).await.unwrap();
        let asked = question(&mut watcher, conversation).await;
        Self {
            server,
            watcher,
            conversation,
            asked,
        }
    }
}

async fn list(watcher: &Watcher, conversation_id: Option<ConversationId>) -> Vec<OpenApproval> {
    let params = ListParams { conversation_id };
    let listed = watcher.client.call::<method::ApprovalList>(params).await;
    listed.unwrap().approvals
}

async fn answer(
    watcher: &Watcher,
    open: &OpenApproval,
    answer: ApprovalAnswer,
    scope: ApprovalScope,
) -> Result<Approval, ClientError> {
    let params = AnswerParams {
        conversation_id: open.conversation_id,
        session_id: None,
        approval_id: open.approval_id,
        answer,
        scope,
        hash: open.approval.hash.clone(),
        message: None,
    };
    let answered = watcher
        .client
        .call::<method::ApprovalAnswer>(params)
        .await?;
    Ok(answered.approval)
}

#[tokio::test]
async fn the_first_answer_of_two_clients_counts_and_the_second_is_told_it() {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let server = sandbox.serve();
    let mut first = Watcher::connect(&server.discovery).await;
    let mut second = Watcher::connect(&server.discovery).await;
    let conversation = first.create(&sandbox.project()).await;
    second.subscribe(conversation, None).await;
    first.send(conversation, "touch made").await.unwrap();
    let asked = question(&mut first, conversation).await;
    assert_eq!(question(&mut second, conversation).await, asked);
    assert_eq!(asked.approval.tool, "bash");
    assert!(!sandbox.project().join("made").exists());

    let mut forged = asked.clone();
    forged.approval.hash = Some("0".repeat(64));
    let refused = answer(
        &second,
        &forged,
        ApprovalAnswer::Approve,
        ApprovalScope::Once,
    )
    .await;
    assert_eq!(code(refused), Some(ErrorCode::InvalidParams));
    let approved = answer(
        &second,
        &asked,
        ApprovalAnswer::Approve,
        ApprovalScope::Once,
    )
    .await;
    assert_eq!(approved.unwrap().state, ApprovalState::Approved);
    let late = answer(&first, &asked, ApprovalAnswer::Deny, ApprovalScope::Once).await;
    let ClientError::Rpc(error) = late.unwrap_err() else {
        panic!("it is an error of the server");
    };
    assert_eq!(error.kind(), Some(ErrorCode::ApprovalAnswered));
    let now: Approval = serde_json::from_str(error.data.unwrap().get()).unwrap();
    assert_eq!(
        (now.state, now.answered_by.as_deref()),
        (ApprovalState::Approved, Some("openvaala-tests"))
    );
    let turn = first.turn_end(conversation).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert!(sandbox.project().join("made").exists());
    assert_eq!(list(&first, None).await, []);

    // Both writings are on disk, at one place.
    let items = logged_items(&sandbox.conversations()[0]);
    let approvals = of_kind(&items, "approval");
    let states: Vec<&str> = approvals
        .iter()
        .map(|item| item["body"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["pending", "approved"]);
    assert_eq!(approvals[0]["pos"], approvals[1]["pos"]);
    model.expect_sound_requests();
}

fn code<T>(result: Result<T, ClientError>) -> Option<ErrorCode> {
    match result {
        Err(ClientError::Rpc(error)) => error.kind(),
        _ => None,
    }
}

#[tokio::test]
async fn u_139_a_question_outlives_its_client_and_is_answered_on_the_command_line() {
    let model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let Waiting {
        server,
        watcher,
        conversation,
        asked,
    } = Waiting::begin(&sandbox).await;
    drop(watcher);

    let listed = sandbox.run(&["approvals"]).expect_code(0);
    assert!(
        listed.stdout.contains(&asked.approval_id.to_string()),
        "{}",
        listed.stdout
    );
    assert!(listed.stdout.contains("touch made"), "{}", listed.stdout);
    let _ = sandbox
        .run(&["approve", &asked.approval_id.to_string(), "--always"])
        .expect_code(0)
        .expect_stderr(&["approved", "from now on"]);
    let mut watcher = Watcher::connect(&server.discovery).await;
    watcher.subscribe(conversation, None).await;
    let turn = match watcher.get(conversation).await.unwrap().turns.pop() {
        Some(turn) if turn.status != TurnStatus::Running => turn,
        _ => watcher.turn_end(conversation).await,
    };
    assert_eq!(turn.status, TurnStatus::Completed);
    assert!(sandbox.project().join("made").exists());

    // The rule stands in the configuration, which is still in order, and counts for others in this folder at once.
    let written = fs::read_to_string(sandbox.config().join("approvals.yaml")).unwrap();
    let folder = sandbox.project().display().to_string();
    assert!(written.contains("command: touch made"), "{written}");
    assert!(written.contains(&format!("folder: {folder}")), "{written}");
    assert!(listed.stdout.contains(&folder), "{}", listed.stdout);
    let _ = sandbox.run(&["config", "check"]).expect_code(0);
    let other = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(other, "touch made").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    let below = sandbox.project().join("below");
    fs::create_dir(&below).unwrap();
    let elsewhere = watcher.create(&below).await;
    watcher.send(elsewhere, "touch made").await.unwrap();
    let again = question(&mut watcher, elsewhere).await;
    assert_eq!(again.approval.folder, Some(below.display().to_string()));
    let late = sandbox.run(&["deny", &asked.approval_id.to_string()]);
    let _ = late
        .expect_code(1)
        .expect_stderr(&["no open approval has the id"]);
}

/// What ends a server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Kill9,
    Stop,
}

/// A question that is asked before the end of a server is approved after it: its command runs once.
async fn outlives(end: End) {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let Waiting {
        server,
        watcher,
        asked,
        conversation,
    } = Waiting::begin_with(&sandbox, "echo ran >> made").await;
    drop(watcher);
    match end {
        End::Kill9 => server.kill(),
        End::Stop => sandbox.stop_server(),
    }

    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let expected = vec![asked.clone()];
    assert_eq!(list(&watcher, Some(conversation)).await, expected);
    assert_eq!(list(&watcher, None).await, expected);
    let subscribed = watcher.subscribe(conversation, None).await;
    let mut view = View::begin(subscribed, VIEW_ITEMS).unwrap();
    let session = asked.session_id;
    let open: Vec<ItemId> = view
        .questions(session)
        .iter()
        .map(|it| it.head().id)
        .collect();
    assert_eq!(open, [asked.approval_id]);
    assert!(!sandbox.project().join("made").exists());
    let (yes, once) = (ApprovalAnswer::Approve, ApprovalScope::Once);
    let approved = answer(&watcher, &asked, yes, once).await.unwrap();
    assert_eq!(approved.state, ApprovalState::Approved);
    let turn = watcher.turn_end(conversation).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    let made = || fs::read_to_string(sandbox.project().join("made")).unwrap();
    assert_eq!(made(), "ran\n");
    let late = answer(&watcher, &asked, yes, once).await;
    assert_eq!(code(late), Some(ErrorCode::ApprovalAnswered));
    let cursor = view.cursor().clone();
    let missed = watcher.subscribe(conversation, Some(cursor)).await;
    view.resume(missed).unwrap();
    assert_eq!(view.questions(session), []);
    let anew = watcher.subscribe(conversation, None).await.snapshot;
    assert_eq!(Some(view.snapshot(VIEW_ITEMS)), anew);

    let items = logged_items(&sandbox.conversations()[0]);
    let approvals = of_kind(&items, "approval");
    let states: Vec<&str> = approvals
        .iter()
        .map(|item| item["body"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["pending", "approved"]);
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    assert_eq!(result["body"]["status"], "ok");
    let turn = watcher.ask(conversation, "cat made").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert_eq!(made(), "ran\n");
    model.expect_sound_requests();
}

#[tokio::test]
async fn a_question_outlives_kill_9_and_its_call_runs_once_when_it_is_approved() {
    outlives(End::Kill9).await;
}

#[tokio::test]
async fn a_question_outlives_a_stop_and_its_call_runs_once_when_it_is_approved() {
    outlives(End::Stop).await;
}

#[tokio::test]
async fn after_kill_9_a_question_about_a_folder_that_is_gone_is_taken_back() {
    let model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let folder = sandbox.project().join("folder");
    fs::create_dir(&folder).unwrap();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&folder).await;
    watcher.send(conversation, "touch made").await.unwrap();
    let asked = question(&mut watcher, conversation).await;
    server.kill();
    fs::remove_dir(&folder).unwrap();

    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let (yes, once) = (ApprovalAnswer::Approve, ApprovalScope::Once);
    let late = answer(&watcher, &asked, yes, once).await;
    assert_eq!(code(late), Some(ErrorCode::ApprovalAnswered));
    assert_eq!(list(&watcher, None).await, []);
    let state = watcher.get(conversation).await.unwrap();
    assert_eq!(state.turns.last().unwrap().status, TurnStatus::Failed);
    let items = logged_items(&sandbox.conversations()[0]);
    let approvals = of_kind(&items, "approval");
    assert_eq!(approvals.last().unwrap()["body"]["state"], "cancelled");
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    assert_eq!(result["body"]["status"], "failed");
}

#[tokio::test]
async fn u_138_an_interrupt_takes_questions_back_and_every_client_is_told() {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let Waiting {
        server,
        mut watcher,
        conversation: conversation_id,
        asked,
    } = Waiting::begin(&sandbox).await;
    let mut second = Watcher::connect(&server.discovery).await;
    second.subscribe(conversation_id, None).await;
    let params = InterruptParams {
        conversation_id,
        session_id: None,
        scope: InterruptScope::Turn,
    };
    let interrupted = watcher
        .client
        .call::<method::SessionInterrupt>(params)
        .await;
    assert!(interrupted.unwrap().turn_id.is_some());
    let told = [
        last_writing(&mut watcher, &asked).await,
        last_writing(&mut second, &asked).await,
    ];
    let mut expected = asked.approval.clone();
    expected.state = ApprovalState::Cancelled;
    expected.message = Some("the turn was interrupted".to_owned());
    assert_eq!(told, [expected.clone(), expected]);
    for client in [&watcher, &second] {
        let (yes, once) = (ApprovalAnswer::Approve, ApprovalScope::Once);
        let late = answer(client, &asked, yes, once).await;
        assert_eq!(code(late), Some(ErrorCode::ApprovalAnswered));
    }
    let turn = watcher.ask(conversation_id, "pwd").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert!(!sandbox.project().join("made").exists());
    model.expect_sound_requests();
}

/// How a client is told that a question is no longer open.
async fn last_writing(watcher: &mut Watcher, asked: &OpenApproval) -> Approval {
    while let Some(notice) = watcher.next().await {
        if let Notice::ConversationEntry(told) = notice
            && let Entry::Item { item, .. } = &told.entry
            && item.head().id == asked.approval_id
            && let Some(Ok(approval)) = item.body::<Approval>()
            && approval.state != ApprovalState::Pending
        {
            return approval;
        }
    }
    panic!("the connection has ended");
}

#[test]
fn exec_without_a_terminal_refuses_what_would_be_asked_and_exits_3() {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let refused = sandbox.run(&["exec", "touch made"]).expect_code(3);
    assert!(refused.stdout.contains("without a terminal"), "{refused:?}");
    assert!(!sandbox.project().join("made").exists());
    let free = sandbox
        .run(&["exec", "--approval", "full", "touch made"])
        .expect_code(0);
    assert!(sandbox.project().join("made").exists(), "{free:?}");
    let read = sandbox.run(&["exec", "ls | wc -l"]).expect_code(0);
    assert!(read.stdout.contains("it said"), "{read:?}");
    let denied = sandbox
        .run(&["exec", "--approval", "read_only", "rm made"])
        .expect_code(0);
    assert!(
        denied.stdout.contains("the mode is read_only"),
        "{denied:?}"
    );
    assert!(sandbox.project().join("made").exists());
    model.expect_sound_requests();
}

#[test]
fn rules_of_the_configuration_allow_and_deny() {
    let model = FakeModel::start(obedient);
    let rules = "{mode: ask, rules: [{decision: allow, command: 'touch *'}, {decision: deny, command: 'touch secret*'}, \
                 {decision: deny, path: '.env'}]}";
    let sandbox = asking_sandbox(&model, rules);
    let _ = sandbox.run(&["exec", "touch made && ls"]).expect_code(0);
    assert!(sandbox.project().join("made").exists());
    for line in [
        "bash -c 'touch secret'",
        "touch made; touch secret",
        "cat ./.env",
    ] {
        let denied = sandbox.run(&["exec", line]).expect_code(0);
        assert!(denied.stdout.contains("denies it"), "{line}: {denied:?}");
    }
    assert!(!sandbox.project().join("secret").exists());
    let _ = sandbox.run(&["exec", "touch made; rm made"]).expect_code(3);
    assert!(sandbox.project().join("made").exists());

    sandbox.write_config("approval: {mode: sometimes}\n");
    let _ = sandbox
        .run(&["config", "check"])
        .expect_code(1)
        .expect_stderr(&["sometimes"]);
}

#[tokio::test]
async fn the_mode_of_a_session_is_shown_and_changes_with_a_send() {
    let model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: read_only}");
    let _ = sandbox
        .run(&["exec", "--approval", "full", "touch made"])
        .expect_code(0);
    let _ = sandbox
        .run(&["exec", "--last", "touch more"])
        .expect_code(0);
    assert!(sandbox.project().join("more").exists());
    let _ = sandbox
        .run(&["exec", "--last", "--approval", "ask", "touch third"])
        .expect_code(3);
    assert!(!sandbox.project().join("third").exists());
    sandbox.stop_server();
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.list().await.unwrap()[0].id;
    let state = watcher.get(conversation).await.unwrap();
    assert_eq!(state.sessions[0].approval_mode, Some(ApprovalMode::Ask));
}

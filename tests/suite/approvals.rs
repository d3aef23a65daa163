//! Tool calls that somebody has to approve, with the real server.

use std::fs;

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalMode, ApprovalScope};
use openvaala_protocol::client::ClientError;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Entry;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::item::{Approval, ApprovalState};
use openvaala_protocol::rpc::params::approval::{AnswerParams, ListParams, OpenApproval};
use openvaala_protocol::rpc::params::session::InterruptParams;
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
        let server = sandbox.serve();
        let mut watcher = Watcher::connect(&server.discovery).await;
        let conversation = watcher.create(&sandbox.project()).await;
        watcher.send(conversation, "touch made").await.unwrap();
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

    // The rule stands in the configuration, which is still in order, and counts for others at once.
    let written = fs::read_to_string(sandbox.config().join("approvals.yaml")).unwrap();
    assert!(written.contains("command: touch made"), "{written}");
    let _ = sandbox.run(&["config", "check"]).expect_code(0);
    let other = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(other, "touch made").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    let late = sandbox.run(&["deny", &asked.approval_id.to_string()]);
    let _ = late
        .expect_code(1)
        .expect_stderr(&["no open approval has the id"]);
}

#[tokio::test]
async fn after_kill_9_an_open_question_is_taken_back_and_its_call_never_ran() {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let Waiting {
        server,
        conversation,
        asked,
        ..
    } = Waiting::begin(&sandbox).await;
    server.kill();

    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    watcher.subscribe(conversation, None).await;
    let state = watcher.get(conversation).await.unwrap();
    assert_eq!(state.turns.last().unwrap().status, TurnStatus::Interrupted);
    assert_eq!(list(&watcher, None).await, []);
    let late = answer(
        &watcher,
        &asked,
        ApprovalAnswer::Approve,
        ApprovalScope::Once,
    )
    .await;
    let expected = [
        Some(ErrorCode::ApprovalAnswered),
        Some(ErrorCode::ApprovalNotFound),
    ];
    assert!(expected.contains(&code(late)));
    let items = logged_items(&sandbox.conversations()[0]);
    let approvals = of_kind(&items, "approval");
    assert_eq!(approvals.last().unwrap()["body"]["state"], "cancelled");
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    assert_eq!(result["body"]["status"], "interrupted");
    let turn = watcher.ask(conversation, "ls").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert!(!sandbox.project().join("made").exists());
    model.expect_sound_requests();
}

#[tokio::test]
async fn u_138_an_interrupt_takes_questions_back() {
    let mut model = FakeModel::start(obedient);
    let sandbox = asking_sandbox(&model, "{mode: ask}");
    let Waiting {
        server: _server,
        mut watcher,
        conversation: conversation_id,
        asked,
    } = Waiting::begin(&sandbox).await;
    let params = InterruptParams {
        conversation_id,
        session_id: None,
    };
    let interrupted = watcher
        .client
        .call::<method::SessionInterrupt>(params)
        .await;
    assert!(interrupted.unwrap().turn_id.is_some());
    let late = answer(
        &watcher,
        &asked,
        ApprovalAnswer::Approve,
        ApprovalScope::Once,
    )
    .await;
    assert_eq!(code(late), Some(ErrorCode::ApprovalAnswered));
    let turn = watcher.ask(conversation_id, "pwd").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert!(!sandbox.project().join("made").exists());
    model.expect_sound_requests();
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

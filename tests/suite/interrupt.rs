//! Ending a turn before its time.

use std::time::{Duration, Instant};

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Live;
use openvaala_protocol::rpc::params::session::{InterruptParams, InterruptScope};
use openvaala_protocol::rpc::{Notice, method};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use rustix::process::Signal;

use crate::support::{logged_items, of_kind, result_text};

/// Prints three lines and then hangs, with a child of its own.
const HANGS: &str = r#"{"command":"echo one; echo two; echo three; sleep 1000 & sleep 1000"}"#;

fn hanging_tool(asked: &Asked) -> Answer {
    if asked.last_user().contains("hang") {
        Answer::stream()
            .say("I will wait.")
            .call("call_1", "bash", HANGS)
            .end()
    } else {
        Answer::text("all is well")
    }
}

/// The commands with the marker of [`HANGS`] that run in the sandbox.
fn sleepers(sandbox: &Sandbox) -> Vec<String> {
    let lines = sandbox.processes().into_iter().map(|process| process.line);
    lines.filter(|line| line.contains("sleep 1000")).collect()
}

#[track_caller]
fn expect_no_sleepers(sandbox: &Sandbox) {
    // Nothing is alive 3 s after an interrupt; the rest is for a busy machine.
    wait::within(Duration::from_secs(10), "the end of all commands", || {
        let left = sleepers(sandbox);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });
}

#[test]
fn u_050_u_051_u_056_ctrl_c_ends_the_turn_and_its_processes_and_keeps_the_output() {
    let mut model = FakeModel::start(hanging_tool);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let exec = sandbox.start(&["exec", "hang please"]);
    wait::until("both sleeping commands", || {
        match sleepers(&sandbox).len() {
            2.. => Ok(()),
            n => Err(format!("{n} of them")),
        }
    });
    let begin = Instant::now();
    exec.signal(Signal::INT);
    let outcome = exec.finish().expect_code(130);
    // A second is what the design promises; the rest is for a busy machine.
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}: {outcome:?}",
        begin.elapsed()
    );
    expect_no_sleepers(&sandbox);

    let [folder] = sandbox.conversations().try_into().unwrap();
    let items = logged_items(&folder);
    let [result] = of_kind(&items, "tool_result").try_into().unwrap();
    assert_eq!(result["body"]["status"], "interrupted");
    let text = result_text(result);
    assert!(text.starts_with("one\ntwo\nthree\n"), "{text:?}");
    let [interruption] = of_kind(&items, "interruption").try_into().unwrap();
    assert_eq!(interruption["body"]["cause"], "requested");

    // The server lives and works on.
    assert_eq!(sandbox.servers().len(), 1);
    let after = sandbox.run(&["exec", "still there?"]).expect_code(0);
    assert_eq!(after.stdout.trim_end(), "all is well");
    model.expect_sound_requests();
}

#[test]
fn m_32_ctrl_c_ends_the_wait_for_a_silent_model_and_keeps_what_it_said() {
    let model = FakeModel::start(|_| Answer::stream().say("so far, ").stall());
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut exec = sandbox.start(&["exec", "speak"]);
    exec.wait_for_stdout("so far, ");
    let begin = Instant::now();
    exec.signal(Signal::INT);
    let outcome = exec.finish().expect_code(130);
    assert!(begin.elapsed() < Duration::from_secs(10), "{outcome:?}");
    let items = logged_items(&sandbox.conversations()[0]);
    let [message] = of_kind(&items, "assistant_message").try_into().unwrap();
    let body = &message["body"];
    assert_eq!(
        (&body["text"], &body["cut"]),
        (&"so far, ".into(), &true.into())
    );
}

#[tokio::test]
async fn u_104_an_interrupt_over_the_wire_is_written_when_it_is_answered() {
    let mut model = FakeModel::start(hanging_tool);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation_id = watcher.create(&sandbox.project()).await;
    watcher.send(conversation_id, "hang please").await.unwrap();
    until_output(&mut watcher).await;

    let params = InterruptParams {
        conversation_id,
        session_id: None,
        scope: InterruptScope::Turn,
    };
    let result = watcher
        .client
        .call::<method::SessionInterrupt>(params.clone())
        .await
        .unwrap();
    let state = watcher.get(conversation_id).await.unwrap();
    let turn = state.turns.last().unwrap();
    assert_eq!(
        (Some(turn.id), turn.status),
        (result.turn_id, TurnStatus::Interrupted)
    );
    expect_no_sleepers(&sandbox);

    // Nothing runs: there is nothing to interrupt, and the next message works.
    let again = watcher
        .client
        .call::<method::SessionInterrupt>(params)
        .await
        .unwrap();
    assert_eq!(again.turn_id, None);
    let turn = watcher.ask(conversation_id, "go on").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    assert_eq!(watcher.last_answer(conversation_id).await, "all is well");
    model.expect_sound_requests();
}

#[tokio::test]
async fn p_15_a_server_asked_to_stop_writes_its_turns_down_first() {
    let model = FakeModel::start(hanging_tool);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.send(conversation, "hang please").await.unwrap();
    until_output(&mut watcher).await;
    let _ = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .unwrap()
        .expect_code(0);
    expect_no_sleepers(&sandbox);

    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    let state = watcher.get(conversation).await.unwrap();
    assert_eq!(state.turns.last().unwrap().status, TurnStatus::Interrupted);
    let items = logged_items(&sandbox.conversations()[0]);
    let [interruption] = of_kind(&items, "interruption").try_into().unwrap();
    assert_eq!(interruption["body"]["cause"], "shutdown");
}

/// Waits until the tool has said its third line.
async fn until_output(watcher: &mut Watcher) {
    let mut text = String::new();
    while !text.contains("three") {
        if let Some(Notice::ConversationLive(told)) = watcher.next().await
            && let Live::Delta(delta) = told.live
        {
            text.push_str(&delta.text);
        }
    }
}

//! Several clients: one server for all, and none that is needed.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::event::Entry;
use openvaala_protocol::rpc::Notice;
use openvaala_tests::fake_model::{Answer, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Discovery;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

#[test]
fn p_08_clients_that_start_at_once_share_one_server() {
    let sandbox = Sandbox::new();
    sandbox.write_project("README.md", "# Paper plane\n");
    let all: Vec<_> = (0..5)
        .map(|_| sandbox.start(&["exec", "what is this?"]))
        .collect();
    for exec in all {
        let outcome = exec.finish().expect_code(0);
        assert!(outcome.stdout.contains("Paper plane"), "{outcome:?}");
        assert!(!outcome.stderr.contains("error"), "{}", outcome.stderr);
    }
    let servers = sandbox.servers();
    assert_eq!(servers.len(), 1, "{servers:?}");
    assert_eq!(Discovery::all(sandbox.state()).len(), 1);
    assert_eq!(sandbox.conversations().len(), 5);
}

#[test]
fn p_02_p_09_a_killed_server_does_not_stand_in_the_way_of_the_next() {
    let sandbox = Sandbox::new();
    sandbox.serve().kill();
    let [stale] = Discovery::all(sandbox.state()).try_into().unwrap();
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    let [fresh] = Discovery::all(sandbox.state()).try_into().unwrap();
    assert_ne!(fresh.pid, stale.pid);
    sandbox.stop_server();
    assert!(Discovery::all(sandbox.state()).is_empty());
}

#[test]
fn serve_status_and_stop_tell_what_runs() {
    let sandbox = Sandbox::new();
    let idle = sandbox.run(&["serve", "status"]);
    assert!(
        format!("{}{}", idle.stdout, idle.stderr).contains("no server"),
        "{idle:?}"
    );
    let server = sandbox.serve();
    let status = sandbox.run(&["serve", "status"]).expect_code(0);
    for text in [server.discovery.address.clone(), server.pid().to_string()] {
        assert!(
            status.stdout.contains(&text),
            "{text} is not in:\n{}",
            status.stdout
        );
    }
    sandbox.stop_server();
}

/// A model that waits at a gate in the middle of every answer.
fn gated() -> (FakeModel, Gate) {
    let gate = Gate::new();
    let behind = gate.clone();
    let model = FakeModel::start(move |_| {
        Answer::stream()
            .say("before, ")
            .wait(&behind)
            .say("after")
            .end()
    });
    (model, gate)
}

#[tokio::test]
async fn p_12_a_turn_goes_on_when_its_client_leaves() {
    let (mut model, gate) = gated();
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut exec = sandbox.start(&["exec", "speak"]);
    exec.wait_for_stdout("before, ");
    exec.kill();

    let [discovery] = Discovery::all(sandbox.state()).try_into().unwrap();
    let [folder] = sandbox.conversations().try_into().unwrap();
    let conversation = folder
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let mut watcher = Watcher::connect(&discovery).await;
    let view = watcher.subscribe(conversation, None).await;
    let texts: Vec<&str> = view
        .partials
        .iter()
        .map(|partial| partial.text.as_str())
        .collect();
    assert_eq!(texts, ["before, "]);
    gate.open();
    assert_eq!(
        watcher.turn_end(conversation).await.status,
        TurnStatus::Completed
    );
    assert_eq!(watcher.last_answer(conversation).await, "before, after");
    model.expect_sound_requests();
}

#[test]
fn exec_comes_back_to_a_server_that_was_killed_and_started_again() {
    let (model, _gate) = gated();
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut exec = sandbox.start(&["exec", "speak"]);
    exec.wait_for_stdout("before, ");
    server.kill();
    let _server = sandbox.serve();
    // The new server has written the turn down as interrupted.
    let outcome = exec.finish().expect_code(130);
    assert_eq!(outcome.stdout.trim_end(), "before,");
}

#[test]
fn exec_says_where_the_conversation_is_when_the_server_is_gone_for_good() {
    let (model, _gate) = gated();
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut exec = sandbox.start(&["exec", "speak"]);
    exec.wait_for_stdout("before, ");
    server.kill();
    let _ = exec
        .finish()
        .expect_code(1)
        .expect_stderr(&["openvaala show"]);
}

#[tokio::test]
async fn p_27_a_cursor_brings_exactly_what_was_missed_also_over_a_restart() {
    let (model, gate) = gated();
    gate.open();
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();

    let mut steady = Watcher::connect(&server.discovery).await;
    let conversation = steady.create(&sandbox.project()).await;
    steady.ask(conversation, "one").await;
    let cursor = settle(&mut steady, conversation).await;

    // One client leaves here, the other sees two more turns.
    let seen = steady.journal.clone();
    steady.ask(conversation, "two").await;
    steady.ask(conversation, "three").await;
    settle(&mut steady, conversation).await;
    let missed = count(&steady.journal) - count(&seen);

    let mut back = Watcher::with_journal(&server.discovery, seen.clone()).await;
    let view = back.subscribe(conversation, Some(cursor.clone())).await;
    assert_eq!(view.snapshot, None);
    assert_eq!(view.entries.len(), missed);
    assert_eq!(entries(&back), entries(&steady));

    let _ = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .unwrap()
        .expect_code(0);
    let server = sandbox.serve();
    let mut back = Watcher::with_journal(&server.discovery, seen).await;
    let view = back.subscribe(conversation, Some(cursor)).await;
    assert_eq!(view.entries.len(), missed);
    assert_eq!(entries(&back), entries(&steady));

    // Live goes on where the entries end: no gap, no double.
    back.ask(conversation, "four").await;
    let items = back.items(conversation).await;
    let known = back.journal.conversations[&conversation].items.len();
    assert_eq!(known, items.len());
}

/// Waits until the session's own state says that it is idle, the last entry of a turn; gives the cursor after it.
async fn settle(
    watcher: &mut Watcher,
    conversation: openvaala_protocol::id::ConversationId,
) -> openvaala_protocol::event::ResumeCursor {
    let idle = |watcher: &Watcher| {
        let states = &watcher.journal.conversations[&conversation].states;
        let last = states.values().rev().find(|(kind, _)| *kind == "session");
        last.is_some_and(|(_, session)| session["status"] == "idle")
    };
    while !idle(watcher) {
        let notice = watcher.next().await.expect("the connection lives");
        if let Notice::ConversationEntry(told) = notice {
            assert!(!matches!(told.entry, Entry::Damaged { .. }), "{told:?}");
        }
    }
    // What was written together may be told a moment later.
    let last = watcher
        .client
        .call::<openvaala_protocol::rpc::method::ServerStatus>(
            openvaala_protocol::rpc::params::server::StatusParams {},
        );
    wait::finished("the status", last)
        .await
        .expect("the server answers");
    watcher.drain();
    watcher.cursors[&conversation].clone()
}

fn count(journal: &openvaala_tests::journal::Journal) -> usize {
    journal
        .conversations
        .values()
        .map(|known| known.items.len() + known.states.len())
        .sum()
}

fn entries(watcher: &Watcher) -> Vec<String> {
    let known = watcher.journal.conversations.values().next().unwrap();
    let items = known
        .items
        .iter()
        .map(|(key, text)| format!("{key:?} {text}"));
    let states = known
        .states
        .iter()
        .map(|(key, state)| format!("{key} {state:?}"));
    items.chain(states).collect()
}

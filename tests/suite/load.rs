//! Many conversations at once.

use std::collections::BTreeSet;

use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel};
use openvaala_tests::journal::Journal;
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 20;

/// Asks for two tools that say the conversation's marker, and then says what they said.
fn echoes_the_tools(asked: &Asked) -> Answer {
    let marker = asked
        .last_user()
        .split_whitespace()
        .last()
        .unwrap_or_default()
        .to_owned();
    let results = asked.results();
    if results.is_empty() {
        let say = |command: &str| json!({ "command": format!("{command} {marker}") }).to_string();
        return Answer::stream()
            .say("Looking. ")
            .call(&format!("{marker}-a"), "bash", &say("sleep 0.1; echo slow"))
            .call(&format!("{marker}-b"), "bash", &say("echo quick"))
            .call(
                &format!("{marker}-c"),
                "read_file",
                r#"{"path":"marker.txt"}"#,
            )
            .end();
    }
    let said: Vec<&str> = results.iter().map(|result| result.content.trim()).collect();
    Answer::text(&said.join("|"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_conversations_at_once_end_right_and_apart() {
    let mut model = FakeModel::start(echoes_the_tools);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut clients = JoinSet::new();
    for n in 0..CONVERSATIONS {
        let marker = format!("marker-{n:02}");
        sandbox.write_project(&format!("{n}/marker.txt"), format!("file {marker}"));
        let folder = sandbox.project().join(n.to_string());
        let discovery = server.discovery.clone();
        clients.spawn(async move {
            let mut watcher = Watcher::connect(&discovery).await;
            let conversation = watcher.create(&folder).await;
            for round in ["first", "second"] {
                let turn = watcher
                    .ask(conversation, &format!("{round} {marker}"))
                    .await;
                assert_eq!(
                    (turn.status, turn.steps),
                    (TurnStatus::Completed, 2),
                    "{turn:?}"
                );
                let answer = watcher.last_answer(conversation).await;
                let (slow, quick, file) = answer_parts(&answer);
                assert_eq!(
                    (slow, quick),
                    (format!("slow {marker}"), format!("quick {marker}"))
                );
                assert!(file.contains(&format!("file {marker}")), "{answer}");
            }
            let items = watcher.items(conversation).await;
            let all: String = items.iter().map(|item| item.raw().get()).collect();
            let markers: BTreeSet<&str> = all
                .match_indices("marker-")
                .filter_map(|(at, _)| all.get(at..at + marker.len()))
                .collect();
            assert_eq!(markers, BTreeSet::from([marker.as_str()]));
            watcher.journal
        });
    }
    let mut journal = Journal::default();
    while let Some(done) = clients.join_next().await {
        journal
            .conversations
            .extend(done.expect("each client ends well").conversations);
    }
    model.expect_sound_requests();
    assert_eq!(model.requests().len(), CONVERSATIONS * 4);
    let _ = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .unwrap()
        .expect_code(0);
    assert_eq!(journal.conversations.len(), CONVERSATIONS);
    check(sandbox.data(), &journal, When::Settled);
}

fn answer_parts(answer: &str) -> (String, String, &str) {
    let mut parts = answer.splitn(3, '|');
    let mut next = || parts.next().unwrap_or_default();
    (next().to_owned(), next().to_owned(), next())
}

//! A disk that is full.

use openvaala_protocol::client::ClientError;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::mounts::{self, SmallDisk};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

#[tokio::test]
async fn r_12_a_full_disk_is_told_and_nothing_acknowledged_is_lost() {
    if !mounts::available("r_12: a full disk") {
        return;
    }
    let mut model =
        FakeModel::start(|asked| Answer::text(&format!("heard: {}", asked.last_user())));
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let disk = SmallDisk::mount(sandbox.data());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    assert_eq!(
        watcher.ask(conversation, "one").await.status,
        TurnStatus::Completed
    );

    disk.fill_but(0);
    // Not even the rest of the last block holds this.
    let large = "x".repeat(64 << 10);
    let error = match watcher.send(conversation, &large).await {
        Err(ClientError::Rpc(error)) => error,
        other => panic!("a full disk took an input: {other:?}"),
    };
    let text = error.message.to_lowercase();
    assert!(text.contains("space"), "{error}");
    let state = watcher.get(conversation).await.unwrap();
    assert!(
        state
            .turns
            .iter()
            .all(|turn| turn.status != TurnStatus::Running),
        "{state:?}"
    );

    disk.free();
    let turn = watcher.ask(conversation, "two").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert_eq!(watcher.last_answer(conversation).await, "heard: two");
    model.expect_sound_requests();

    let _ = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .unwrap()
        .expect_code(0);
    check(sandbox.data(), &watcher.journal, When::Settled);
    let server = sandbox.serve();
    let watcher = Watcher::connect(&server.discovery).await;
    assert_eq!(watcher.last_answer(conversation).await, "heard: two");
    server.kill();
    drop(disk);
}

#[tokio::test]
async fn r_12_a_disk_that_fills_up_in_mid_turn_fails_the_turn_and_the_session_stays_usable() {
    if !mounts::available("r_12: a disk that fills up in mid-turn") {
        return;
    }
    let mut model = FakeModel::start(|asked| match asked.last_user().as_str() {
        "fill" if asked.results().is_empty() => Answer::tool(
            "call_1",
            "bash",
            r#"{"command":"head -c 2000000 /dev/zero | tr '\\0' x"}"#,
        ),
        _ => Answer::text("here I am"),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let disk = SmallDisk::mount(sandbox.data());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    assert_eq!(
        watcher.ask(conversation, "one").await.status,
        TurnStatus::Completed
    );

    // The whole output of the command does not fit, what the model sees of it does.
    disk.fill_but(200 << 10);
    let turn = watcher.ask(conversation, "fill").await;
    assert!(turn.ended_at.is_some());
    let items = watcher.items(conversation).await;
    let all: String = items.iter().map(|item| item.raw().get()).collect();
    assert!(
        all.contains("could not be kept") || turn.status == TurnStatus::Failed,
        "{turn:?}\n{all}"
    );

    disk.free();
    let turn = watcher.ask(conversation, "two").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert_eq!(watcher.last_answer(conversation).await, "here I am");
    model.expect_sound_requests();
    let _ = tokio::task::spawn_blocking(|| server.terminate())
        .await
        .unwrap()
        .expect_code(0);
    check(sandbox.data(), &watcher.journal, When::Settled);
    drop(disk);
}

//! Disks that are slow, and things that are long.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::item::ToolResult;
use openvaala_protocol::rpc::method;
use openvaala_protocol::rpc::params::session::BlobParams;
use openvaala_tests::checker::{When, check};
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::strace::{self, Attached, Fault};
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{item_log, sandbox_with_model, stop};

/// How long each flush of one conversation takes, in microseconds.
const SLOW: u64 = 3_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_34_while_one_conversation_waits_for_its_disk_all_others_are_answered() {
    if !strace::available("r_34: slow flushes") {
        return;
    }
    let (sandbox, _model) = sandbox_with_model();
    let server = sandbox.serve();
    let mut slow = Watcher::connect(&server.discovery).await;
    let mut quick = Watcher::connect(&server.discovery).await;
    let first = slow.create(&sandbox.project()).await;
    let second = quick.create(&sandbox.project()).await;
    slow.ask(first, "one").await;
    quick.ask(second, "one").await;
    let fault = Fault::delay("fdatasync", SLOW).on(&item_log(&sandbox, first));
    let attached = Attached::to(server.pid(), &fault, &sandbox.root().join("strace"));
    let waiting = tokio::spawn(async move {
        let sent = slow.send(first, "two").await;
        (slow, sent)
    });
    let turn = quick.ask(second, "two").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    quick.get(second).await.unwrap();
    assert_eq!(quick.list().await.unwrap().len(), 2);
    let third = quick.create(&sandbox.project()).await;
    let turn = quick.ask(third, "look around").await;
    assert_eq!(turn.status, TurnStatus::Completed);
    // All of that came before the first flush of the slow one.
    assert!(!waiting.is_finished(), "the slow one was answered first");
    let (mut slow, sent) = waiting.await.unwrap();
    sent.unwrap();
    drop(attached);
    let turn = slow.turn_end(first).await;
    assert_eq!(turn.status, TurnStatus::Completed);
    stop(server).await;
    check(sandbox.data(), &slow.journal, When::Settled);
    check(sandbox.data(), &quick.journal, When::Settled);
}

#[tokio::test]
async fn r_35_an_output_of_100_mib_is_kept_whole() {
    const BYTES: u64 = 100 << 20;
    let model = FakeModel::start(|asked| {
        if asked.results().is_empty() {
            let command = format!("head -c {BYTES} /dev/zero | tr '\\\\0' x");
            let arguments = format!(r#"{{"command":"{command}","yield_ms":600000}}"#);
            Answer::tool("call_1", "bash", &arguments)
        } else {
            Answer::text("done")
        }
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation_id = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation_id, "go").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let items = watcher.items(conversation_id).await;
    let mut results = items.iter().filter_map(|item| item.body::<ToolResult>());
    let blob = results.next_back().unwrap().unwrap().output.unwrap();
    assert_eq!(blob.bytes, BYTES);
    let (mut offset, mut whole) = (Some(0), 0);
    while let Some(at) = offset {
        let params = BlobParams {
            conversation_id,
            session_id: None,
            blob,
            offset: at,
        };
        let page = watcher
            .client
            .call::<method::SessionBlob>(params)
            .await
            .unwrap();
        assert_eq!(page.offset, whole);
        let text = page.data.trim_end_matches('=');
        whole += text.len() as u64 * 3 / 4;
        // Three times x.
        assert!(text.as_bytes().chunks_exact(4).all(|four| four == b"eHh4"));
        offset = page.next;
    }
    assert_eq!(whole, BYTES);
    stop(server).await;
    check(sandbox.data(), &watcher.journal, When::Settled);
}

#[tokio::test]
async fn r_37_output_that_is_no_text_leaves_a_log_that_is() {
    let model = FakeModel::start(|asked| {
        if asked.results().is_empty() {
            Answer::tool(
                "call_1",
                "bash",
                r#"{"command":"head -c 1000 /dev/urandom"}"#,
            )
        } else {
            Answer::text("done")
        }
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation, "go").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    stop(server).await;
    // The checker reads each line as UTF-8.
    check(sandbox.data(), &watcher.journal, When::Settled);
}

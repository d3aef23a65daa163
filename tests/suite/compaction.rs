//! Summaries through the real server: by itself, on request, and under a kill.

use std::fs;

use openvaala_protocol::conversation::{TurnFailureKind, TurnStatus};
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::item::{CompactionTrigger, ContextSummary, Item};
use openvaala_protocol::rpc::params::compaction::{CompactParams, UncompactParams};
use openvaala_protocol::rpc::{ErrorCode, method};
use openvaala_tests::fake_model::{Answer, Asked, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::stop;

/// What the model that writes a summary is asked ends with this.
pub(crate) const QUESTION: &str = "Write the summary now.";
/// More than nothing, and less than a tool result may have.
const LINES: &str = r#"{"command":"yes 'one more line' | head -n 500"}"#;

/// Calls a tool once a turn; then says "done", after so many tokens as the message says.
fn works(asked: &Asked) -> Answer {
    let text = asked.last_user();
    if text.contains(QUESTION) {
        return Answer::text("All lines were read.");
    }
    if asked.step() == 0 && text.starts_with("read") {
        let id = format!("call-{}", text.len());
        return Answer::tool(&id, "bash", LINES);
    }
    let tokens = text.rsplit(' ').next().and_then(|last| last.parse().ok());
    Answer::stream().say("done").end_after(tokens.unwrap_or(10))
}

/// A sandbox whose model can read that many tokens.
pub(crate) fn sandbox(model: &FakeModel, window: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let file = sandbox.config().join("providers/fake.yaml");
    let provider = fs::read_to_string(file).unwrap();
    sandbox.write_provider("fake", &format!("{provider}context_window: {window}\n"));
    sandbox
}

fn compact(conversation_id: ConversationId, preview: bool) -> CompactParams {
    CompactParams {
        conversation_id,
        session_id: None,
        guidance: None,
        preview,
    }
}

fn summaries(items: &[Item]) -> Vec<ContextSummary> {
    let summaries = items
        .iter()
        .filter_map(|item| item.body::<ContextSummary>());
    summaries.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_conversation_that_fills_the_window_is_summarised_before_the_next_request() {
    let mut model = FakeModel::start(works);
    let sandbox = sandbox(&model, 10_000);
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "read, then 8600").await;
    assert_eq!(summaries(&watcher.items(conversation).await), []);
    let turn = watcher.ask(conversation, "go on, then 100").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let made = summaries(&watcher.items(conversation).await);
    let [summary] = made.try_into().unwrap();
    assert_eq!(
        (
            summary.text.as_str(),
            summary.trigger,
            summary.tokens_before
        ),
        (
            "All lines were read.",
            Some(CompactionTrigger::Share),
            Some(8_605)
        )
    );
    let last = model.requests().last().unwrap().body.to_string();
    assert!(
        last.contains("read, then 8600") && !last.contains("call-15"),
        "{last}"
    );
    model.expect_sound_requests();
    stop(server).await;
}

#[tokio::test]
async fn u_042_a_window_of_nothing_is_not_known() {
    let mut model = FakeModel::start(works);
    let sandbox = sandbox(&model, 0);
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    for _ in 0..3 {
        let turn = watcher.ask(conversation, "hi 90000").await;
        assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    }
    assert_eq!(model.requests().len(), 3);
    stop(server).await;
}

#[tokio::test]
async fn u_039_a_model_that_always_says_too_long_ends_the_turn_after_few_requests() {
    let mut model = FakeModel::start(|asked| {
        if asked.last_user() == "read" && asked.step() == 0 {
            return Answer::tool("call-1", "bash", LINES);
        }
        Answer::error(
            400,
            "context_length_exceeded",
            "maximum context length is 8192",
        )
    });
    let sandbox = sandbox(&model, 10_000);
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let turn = watcher.ask(conversation, "read").await;
    let failure = turn.failure.unwrap();
    assert_eq!(failure.kind, TurnFailureKind::Context, "{failure:?}");
    assert!(failure.message.contains("larger window"), "{failure:?}");
    assert_eq!(
        model.requests().len(),
        4,
        "the tool call, the overflow, two tries"
    );
    stop(server).await;
}

#[tokio::test]
async fn a_kill_while_a_summary_is_made_leaves_the_conversation_without_it_or_with_all_of_it() {
    let gate = Gate::new();
    let waits = gate.clone();
    let mut model = FakeModel::start(move |asked| {
        if asked.last_user().contains(QUESTION) {
            let answer = Answer::stream().say("All lines ").wait(&waits);
            return answer.say("were read.").end();
        }
        works(asked)
    });
    let sandbox = sandbox(&model, 10_000);
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    watcher.ask(conversation, "read").await;
    let client = Watcher::connect(&server.discovery).await.client;
    let call = client.call::<method::SessionCompact>(compact(conversation, false));
    let making = async {
        let _ = call.await;
    };
    let asked = wait::eventually("the question for a summary", async || {
        match model.requests().len() {
            3.. => Ok(()),
            n => Err(format!("{n} requests")),
        }
    });
    tokio::select! {
        () = making => panic!("the summary waits at the door"),
        () = asked => {}
    }
    let busy = watcher
        .client
        .call::<method::SessionCompact>(compact(conversation, false));
    let busy = busy.await.unwrap_err();
    assert!(
        busy.to_string()
            .contains(&ErrorCode::SessionBusy.number().to_string()),
        "{busy}"
    );
    server.kill();

    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, watcher.journal).await;
    watcher.subscribe(conversation, None).await;
    assert_eq!(summaries(&watcher.items(conversation).await), []);
    watcher.ask(conversation, "go on").await;
    gate.open();
    let params = compact(conversation, false);
    let made = watcher
        .client
        .call::<method::SessionCompact>(params)
        .await
        .unwrap();
    server.kill();

    let server = sandbox.serve();
    let mut watcher = Watcher::with_journal(&server.discovery, watcher.journal).await;
    watcher.subscribe(conversation, None).await;
    assert_eq!(
        summaries(&watcher.items(conversation).await),
        [made.summary]
    );
    watcher.ask(conversation, "and on").await;
    let last = model.requests().last().unwrap().body.to_string();
    assert!(
        last.contains("All lines were read.") && !last.contains("call-4"),
        "{last}"
    );
    let session_id = None;
    let params = UncompactParams {
        conversation_id: conversation,
        session_id,
    };
    let undone = watcher
        .client
        .call::<method::SessionUncompact>(params)
        .await
        .unwrap();
    assert_eq!(Some(undone.summary), made.item_id);
    watcher.ask(conversation, "and back").await;
    let last = model.requests().last().unwrap().body.to_string();
    assert!(
        !last.contains("All lines were read.") && last.contains("call-4"),
        "{last}"
    );
    model.expect_sound_requests();
    stop(server).await;
}

#[test]
fn the_command_shows_makes_and_takes_back_a_summary() {
    let model = FakeModel::start(works);
    let sandbox = sandbox(&model, 10_000);
    sandbox.run(&["exec", "read"]).expect_code(0);
    let id = sandbox.conversations()[0].clone();
    let id = id.file_name().unwrap().to_str().unwrap();
    let seen = sandbox.run(&["compact", id, "--preview"]).expect_code(0);
    assert_eq!(seen.stdout, "All lines were read.\n");
    sandbox
        .run(&["compact", id, "--undo"])
        .expect_code(1)
        .expect_stderr(&["no summary to take back"]);
    sandbox.run(&["compact", id, "the lines"]).expect_code(0);
    sandbox
        .run(&["compact", id, "--undo"])
        .expect_code(0)
        .expect_stderr(&["taken back"]);
}

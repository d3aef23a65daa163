//! A summary in the place of what was said: when it is made, what it keeps, and what stays as it was.

use std::path::Path;
use std::sync::Arc;

use insta::assert_snapshot;
use openvaala_core::model::{AssistantPart, Message, ModelRequest};
use openvaala_core::protocol::content::{Content, joined_text};
use openvaala_core::protocol::conversation::{TurnFailureKind, TurnStatus};
use openvaala_core::protocol::item::{
    CompactionTrigger, ContextSummary, Item, ItemKind, SummaryUndone,
};
use openvaala_core::storage::Error;
use openvaala_core::{
    CompactOptions, CompactionPolicy, ContextWindows, ConversationHandle, Input, NewConversation,
    Runtime, RuntimeError,
};
use pretty_assertions::assert_eq;
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

use super::script::{Script, Step, bash, builder, items, turn_end};

const SUMMARY: Step = Step::Say("The user counts. The next step is three.");

struct Place {
    data: TempDir,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let (data, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        std::fs::write(folder.path().join("AGENTS.md"), "Count in words.").unwrap();
        Self { data, folder }
    }

    async fn runtime(&self, script: Arc<Script>, policy: CompactionPolicy) -> Runtime {
        loop {
            let built = builder(script.clone())
                .data_dir(self.data.path())
                .compaction(policy)
                .context_windows("script", ContextWindows::of_all(10_000))
                .build()
                .await;
            match built {
                // The runtime before this one is about to let go of it.
                Err(RuntimeError::Storage(Error::Locked { .. })) => tokio::task::yield_now().await,
                built => return built.unwrap(),
            }
        }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Begins a conversation with a model that follows those steps.
async fn begin(
    place: &Place,
    steps: Vec<Step>,
) -> (Runtime, ConversationHandle, UnboundedReceiver<ModelRequest>) {
    let (script, requests) = Script::new(steps);
    let runtime = place.runtime(script, CompactionPolicy::default()).await;
    let new = NewConversation::in_folder(place.folder().to_str().unwrap());
    let conversation = runtime.create(new).await.unwrap();
    (runtime, conversation, requests)
}

async fn ask(
    conversation: &ConversationHandle,
    text: &str,
) -> openvaala_core::protocol::conversation::Turn {
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text(text)).await.unwrap();
    turn_end(&mut events).await
}

fn all(requests: &mut UnboundedReceiver<ModelRequest>) -> Vec<ModelRequest> {
    std::iter::from_fn(|| requests.try_recv().ok()).collect()
}

/// Some lines that are more than nothing.
fn long() -> (&'static str, String) {
    bash("yes 'one more line' | head -n 500")
}

/// The messages of a request, without what the machine it runs on has in it.
fn shown(request: &ModelRequest, place: &Place) -> String {
    let mut text = String::new();
    for message in &request.messages {
        let said = match message {
            Message::User(content) => format!("user: {}\n", joined_text(content)),
            Message::Assistant(parts) => {
                let parts: Vec<String> = parts.iter().map(part).collect();
                format!("assistant: {}\n", parts.join(", "))
            }
            Message::ToolResults(answers) => {
                let lens: Vec<usize> = answers.iter().map(|it| lines(&it.content)).collect();
                format!("results: {lens:?} lines\n")
            }
            _ => "?\n".to_owned(),
        };
        text.push_str(&said);
    }
    text.replace(place.folder().to_str().unwrap(), "<folder>")
}

fn part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(text) => text.clone(),
        AssistantPart::ToolCall { name, .. } => format!("call of {name}"),
        _ => "?".to_owned(),
    }
}

fn lines(content: &[Content]) -> usize {
    joined_text(content).lines().count()
}

fn of_kind(items: &[Item], kind: &ItemKind) -> usize {
    items
        .iter()
        .filter(|item| item.head().kind == *kind)
        .count()
}

fn summary(items: &[Item]) -> ContextSummary {
    let mut summaries = items
        .iter()
        .filter_map(|item| item.body::<ContextSummary>());
    summaries.next_back().unwrap().unwrap()
}

#[tokio::test]
async fn u_034_u_036_u_037_in_the_middle_of_a_turn_the_task_the_files_and_the_rules_survive() {
    let place = Place::new();
    let patch = "*** Begin Patch\n*** Add File: count.txt\n+one\n*** End Patch";
    let patch = (
        "apply_patch",
        serde_json::json!({ "patch": patch }).to_string(),
    );
    let steps = vec![
        Step::Say("one"),
        Step::Call(vec![patch]),
        Step::CallAfter(9_000, long()),
        SUMMARY,
        Step::SayAfter(100, "three"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    ask(&conversation, "count to one, and never skip a number").await;
    std::fs::write(place.folder().join("AGENTS.md"), "Count in digits.").unwrap();
    let turn = ask(&conversation, "now go on to three").await;
    assert_eq!(
        (turn.status, turn.steps),
        (TurnStatus::Completed, 3),
        "{turn:?}"
    );
    let requests = all(&mut requests);
    assert_eq!(requests.len(), 5);
    assert_snapshot!("before", shown(&requests[2], &place));
    let question = shown(&requests[3], &place);
    assert!(requests[3].tools.is_empty(), "no tools are offered");
    assert_snapshot!("question", question.replace("one more line\n", ""));
    assert_snapshot!("after", shown(&requests[4], &place));
    let summary = summary(&items(&conversation).await);
    assert_eq!(
        (summary.trigger, summary.tokens_before, summary.files),
        (
            Some(CompactionTrigger::Share),
            Some(9_000),
            vec!["count.txt".to_owned()]
        )
    );
}

#[tokio::test]
async fn before_the_first_request_of_a_turn_its_message_stays_a_message() {
    let place = Place::new();
    let steps = vec![
        Step::Call(vec![long()]),
        Step::SayAfter(9_000, "two"),
        SUMMARY,
        Step::SayAfter(100, "three"),
        Step::SayAfter(100, "four"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    ask(&conversation, "count to two").await;
    ask(&conversation, "three?").await;
    ask(&conversation, "four?").await;
    let requests = all(&mut requests);
    assert_eq!(requests.len(), 5);
    assert_snapshot!("turn_begin", shown(&requests[3], &place));
    let (third, fourth) = (shown(&requests[3], &place), shown(&requests[4], &place));
    assert_eq!(
        &fourth[..third.len()],
        third,
        "the prefix stays the same after that"
    );
}

#[tokio::test]
async fn u_039_a_summary_that_does_not_help_is_refused_and_the_turn_fails_after_two() {
    let place = Place::new();
    let steps = vec![
        Step::Call(vec![long()]),
        Step::TooLong,
        Step::Say(""),
        Step::TooLong,
        Step::Say("never asked"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    let turn = ask(&conversation, "count").await;
    let failure = turn.failure.unwrap();
    assert_eq!(failure.kind, TurnFailureKind::Context);
    assert_snapshot!(failure.message, @"the conversation is too long for the model and could not be summarised: too long; choose a model with a larger window, or begin a new conversation (too long)");
    assert_eq!(all(&mut requests).len(), 4);
    let items = items(&conversation).await;
    assert_eq!(of_kind(&items, &ItemKind::ContextSummary), 0);
    assert_eq!(of_kind(&items, &ItemKind::ModelError), 1);
}

#[tokio::test]
async fn u_041_without_automatic_summaries_a_request_that_is_too_long_fails_with_a_hint() {
    let place = Place::new();
    let (script, mut requests) = Script::new(vec![Step::Call(vec![long()]), Step::TooLong]);
    let policy = CompactionPolicy::default().with_automatic(false);
    let runtime = place.runtime(script, policy).await;
    let new = NewConversation::in_folder(place.folder().to_str().unwrap());
    let conversation = runtime.create(new).await.unwrap();
    let turn = ask(&conversation, "count").await;
    let message = turn.failure.unwrap().message;
    assert!(message.contains("run `openvaala compact`"), "{message}");
    assert_eq!(all(&mut requests).len(), 2);
}

#[tokio::test]
async fn a_request_that_is_too_long_is_asked_again_after_a_summary() {
    let place = Place::new();
    let steps = vec![
        Step::Call(vec![long()]),
        Step::TooLong,
        SUMMARY,
        Step::Say("three"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    let turn = ask(&conversation, "count").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    assert_eq!(all(&mut requests).len(), 4);
    let items = items(&conversation).await;
    assert_eq!(summary(&items).trigger, Some(CompactionTrigger::Overflow));
    assert_eq!(of_kind(&items, &ItemKind::ModelError), 0);
}

#[tokio::test]
async fn a_summary_can_be_looked_at_made_taken_back_and_all_of_it_outlives_a_restart() {
    let place = Place::new();
    let steps = vec![Step::Call(vec![long()]), Step::Say("two"), SUMMARY, SUMMARY];
    let (runtime, conversation, mut requests) = begin(&place, steps).await;
    ask(&conversation, "count to two").await;
    let preview = CompactOptions::default().with_preview(true);
    let seen = conversation.compact(preview).await.unwrap();
    assert_eq!(seen.item_id, None);
    let before = items(&conversation).await;
    let guidance = Some("the numbers".to_owned());
    let options = CompactOptions::default().with_guidance(guidance.clone());
    let made = conversation.compact(options).await.unwrap();
    assert_eq!(made.summary.guidance, guidance);
    assert_eq!(
        (&made.summary.text, &made.summary.messages),
        (&seen.summary.text, &seen.summary.messages)
    );
    let after = items(&conversation).await;
    assert_eq!(&after[..before.len()], before, "the old items stay");
    let again = conversation.compact(CompactOptions::default()).await;
    let again = again.unwrap_err().to_string();
    assert_eq!(
        again,
        "not summarised: nothing was done since the last summary"
    );
    let id = conversation.id();
    runtime.shutdown().await;
    drop((runtime, conversation));
    all(&mut requests);

    let (script, mut requests) = Script::new(vec![Step::Say("three"), Step::Say("four")]);
    let runtime = place.runtime(script, CompactionPolicy::default()).await;
    let conversation = runtime.open(id).await.unwrap();
    ask(&conversation, "three?").await;
    let request = requests.recv().await.unwrap();
    let text = shown(&request, &place);
    assert!(
        text.contains("The user counts") && !text.contains("call of bash"),
        "{text}"
    );
    runtime.shutdown().await;
    drop((runtime, conversation));

    let (script, mut requests) = Script::new(vec![Step::Say("four")]);
    let runtime = place.runtime(script, CompactionPolicy::default()).await;
    let conversation = runtime.open(id).await.unwrap();
    let undone = conversation.uncompact(None).await.unwrap();
    assert_eq!(Some(undone), made.item_id);
    let last = items(&conversation).await.pop().unwrap();
    assert_eq!(
        last.body::<SummaryUndone>().unwrap().unwrap(),
        SummaryUndone::new(undone)
    );
    let none = conversation.uncompact(None).await.unwrap_err();
    assert!(matches!(none, RuntimeError::NotCompacted { .. }), "{none}");
    ask(&conversation, "four?").await;
    let text = shown(&requests.recv().await.unwrap(), &place);
    assert!(
        !text.contains("The user counts") && text.contains("call of bash"),
        "{text}"
    );
}

#[tokio::test]
async fn while_something_runs_a_summary_is_refused_and_an_interrupt_ends_one() {
    let place = Place::new();
    let steps = vec![
        Step::Call(vec![long()]),
        Step::Say("two"),
        Step::Stall("The us"),
        Step::Say("x"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    ask(&conversation, "count to two").await;
    let before = items(&conversation).await;
    for _ in 0..2 {
        requests.recv().await.unwrap();
    }
    let other = conversation.clone();
    let making = tokio::spawn(async move { other.compact(CompactOptions::default()).await });
    requests.recv().await.unwrap();
    let busy = conversation
        .compact(CompactOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(busy, RuntimeError::SessionBusy { .. }), "{busy}");
    assert_eq!(conversation.interrupt(None).await.unwrap(), None);
    let ended = making.await.unwrap().unwrap_err().to_string();
    assert_eq!(ended, "not summarised: interrupted");
    assert_eq!(items(&conversation).await, before);
    let turn = ask(&conversation, "go on").await;
    assert_eq!(turn.status, TurnStatus::Completed);
}

#[tokio::test]
async fn a_result_that_a_summary_stands_for_is_read_again_by_its_number() {
    /// Behind the message, the instructions and the call.
    const RESULT: u64 = 4;
    let place = Place::new();
    let read = |result: u64, offset: u64| {
        let arguments = serde_json::json!({ "result": result, "offset": offset });
        ("read_result", arguments.to_string())
    };
    let steps = vec![
        Step::CallAfter(9_000, bash("yes 'one more line' | head -n 5000")),
        SUMMARY,
        Step::Call(vec![read(RESULT, 0), read(RESULT, 60_000), read(77, 0)]),
        Step::SayAfter(100, "three"),
    ];
    let (_runtime, conversation, mut requests) = begin(&place, steps).await;
    let turn = ask(&conversation, "count").await;
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    let requests = all(&mut requests);
    let question = shown(&requests[1], &place);
    assert!(
        question.contains(&format!("Result #{RESULT}: ")),
        "{question}"
    );
    let Some(Message::ToolResults(answers)) = requests[3].messages.last() else {
        panic!("the results are what comes last");
    };
    let answers: Vec<String> = answers.iter().map(|it| joined_text(&it.content)).collect();
    let line = "one more line\n";
    let whole = line.repeat(5_000);
    assert_eq!(
        answers,
        [
            format!(
                "{}\n[bytes 0 to 16384 of 70000: go on with offset 16384]",
                &whole[..16_384]
            ),
            whole[60_000..].to_owned(),
            "there is no result #77: the numbers are those in the summary".to_owned(),
        ]
    );
}

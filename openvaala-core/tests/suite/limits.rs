//! Turns that go on and on, and what ends them.

use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::conversation::{Turn, TurnFailureKind, TurnStatus};
use openvaala_core::protocol::item::{Interruption, InterruptionCause, ToolResult};
use openvaala_core::{
    ConversationHandle, Definitions, Input, NewConversation, Runtime, Subscription,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::script::{Script, Step, bash, builder, items, turn_end};

struct Place {
    _folder: tempfile::TempDir,
    runtime: Runtime,
    conversation: ConversationHandle,
    events: Subscription,
}

impl Place {
    async fn new(steps: Vec<Step>, set: impl FnOnce(&mut Definitions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (script, _requests) = Script::new(steps);
        let runtime = builder(script).in_memory().build().await.unwrap();
        let mut definitions = (*runtime.definitions()).clone();
        set(&mut definitions);
        runtime.replace_definitions(definitions);
        let new = NewConversation::in_folder(folder.path());
        let conversation = runtime.create(new).await.unwrap();
        let events = conversation.subscribe(None).await.unwrap();
        Self {
            _folder: folder,
            runtime,
            conversation,
            events,
        }
    }

    async fn turn(&mut self) -> Turn {
        self.conversation.send(Input::text("go")).await.unwrap();
        turn_end(&mut self.events).await
    }

    /// The texts of all results.
    async fn results(&self) -> Vec<String> {
        let items = items(&self.conversation).await;
        let results = items.iter().filter_map(|item| item.body::<ToolResult>());
        results
            .map(|result| joined_text(&result.unwrap().content))
            .collect()
    }

    /// What the last item says that has ended a turn.
    async fn ended_by(&self) -> Option<InterruptionCause> {
        let items = items(&self.conversation).await;
        let last = items.last().unwrap().body::<Interruption>()?;
        Some(last.unwrap().cause)
    }
}

#[tokio::test]
async fn a_turn_that_repeats_itself_is_warned_and_ends_with_its_reason() {
    let mut place = Place::new(vec![Step::Call(vec![bash("echo same")]); 9], |_| {}).await;
    let turn = place.turn().await;
    let failure = turn.failure.unwrap();
    assert_eq!(
        (turn.status, turn.steps, failure.kind),
        (TurnStatus::Failed, 5, TurnFailureKind::RepeatLimit)
    );
    let warning = "same\n[3 times in a row the same call has had the same result: do something else. At 5 times the turn ends.]";
    let texts = place.results().await;
    let texts: Vec<String> = texts
        .iter()
        .map(|text| text.replace("\n\n", "\n"))
        .collect();
    assert_eq!(texts, ["same\n", "same\n", warning, "same\n", "same\n"]);
    assert_eq!(place.ended_by().await, Some(InterruptionCause::RepeatLimit));
    // A message begins anew: the same four calls are let pass, then the script says "done".
    assert_eq!(place.turn().await.status, TurnStatus::Completed);
    place.runtime.shutdown().await;
}

#[tokio::test]
async fn looking_again_at_a_command_that_runs_ends_no_turn() {
    let begin = json!({ "command": "sleep 1000", "yield_ms": 250 }).to_string();
    let look = || ("bash_output", json!({ "id": 1 }).to_string());
    let mut steps = vec![Step::Call(vec![("bash", begin)])];
    steps.extend(vec![Step::Call(vec![look()]); 12]);
    let mut place = Place::new(steps, |_| {}).await;
    let turn = place.turn().await;
    assert_eq!((turn.status, turn.steps), (TurnStatus::Completed, 14));
    let texts = place.results().await;
    assert_eq!(texts[1..], ["[nothing new]\n[still running]"; 12]);
    place.runtime.shutdown().await;
}

#[tokio::test]
async fn without_a_limit_a_turn_may_repeat_itself() {
    let steps = vec![Step::Call(vec![bash("echo same")]); 9];
    let mut place = Place::new(steps, |definitions| definitions.repeat_limit = 0).await;
    let turn = place.turn().await;
    assert_eq!((turn.status, turn.steps), (TurnStatus::Completed, 10));
    assert_eq!(place.results().await, ["same\n"; 9]);
    place.runtime.shutdown().await;
}

#[tokio::test]
async fn a_turn_of_too_many_steps_ends_with_its_reason() {
    let steps = (0..9).map(|n| Step::Call(vec![bash(&format!("echo {n}"))]));
    let mut place = Place::new(steps.collect(), |definitions| definitions.step_limit = 3).await;
    let turn = place.turn().await;
    let failure = turn.failure.unwrap();
    assert_eq!(
        (turn.status, turn.steps, failure.kind),
        (TurnStatus::Failed, 3, TurnFailureKind::StepLimit)
    );
    assert_eq!(place.ended_by().await, Some(InterruptionCause::StepLimit));
    place.runtime.shutdown().await;
}

//! Commands that outlive the call that started them, and end with the session.

use std::fs;
use std::path::{Path, PathBuf};

use openvaala_core::protocol::content::{BlobRef, joined_text};
use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::item::{ToolResult, ToolResultStatus};
use openvaala_core::{
    BlobQuery, ConversationHandle, Input, NewConversation, Runtime, Subscription,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::interrupting::shown;
use super::script::{Script, Step, builder, items, turn_end};

struct Place {
    folder: tempfile::TempDir,
    runtime: Runtime,
    conversation: ConversationHandle,
    events: Subscription,
}

impl Place {
    async fn new(steps: Vec<Step>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (script, _requests) = Script::new(steps);
        let data = folder.path().join("data");
        let runtime = builder(script).data_dir(data).build().await.unwrap();
        let work = folder.path().join("work");
        fs::create_dir(&work).unwrap();
        let new = NewConversation::in_folder(work);
        let conversation = runtime.create(new).await.unwrap();
        let events = conversation.subscribe(None).await.unwrap();
        Self {
            folder,
            runtime,
            conversation,
            events,
        }
    }

    /// The same place after its runtime was stopped and another one started.
    async fn restarted(self) -> Self {
        let (folder, id) = (self.folder, self.conversation.id());
        self.runtime.shutdown().await;
        drop((self.runtime, self.conversation, self.events));
        let (script, _requests) = Script::new(Vec::new());
        let data = folder.path().join("data");
        let runtime = builder(script).data_dir(data).build().await.unwrap();
        let conversation = runtime.open(id).await.unwrap();
        let events = conversation.subscribe(None).await.unwrap();
        Self {
            folder,
            runtime,
            conversation,
            events,
        }
    }

    async fn turn(&mut self) -> TurnStatus {
        self.conversation.send(Input::text("go")).await.unwrap();
        turn_end(&mut self.events).await.status
    }

    async fn results(&self) -> Vec<ToolResult> {
        let items = items(&self.conversation).await;
        let results = items.iter().filter_map(|item| item.body::<ToolResult>());
        results.map(Result::unwrap).collect()
    }

    /// The texts of all results so far.
    async fn texts(&self) -> Vec<String> {
        let results = self.results().await;
        results
            .iter()
            .map(|result| joined_text(&result.content))
            .collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    async fn whole(&self, blob: BlobRef) -> Vec<u8> {
        let (mut all, mut offset) = (Vec::new(), Some(0));
        while let Some(from) = offset {
            let query = BlobQuery::new(blob).from(from);
            let piece = self.conversation.blob(query).await.unwrap();
            assert_eq!(piece.offset, all.len() as u64);
            all.extend(piece.bytes);
            offset = piece.next;
        }
        all
    }
}

fn call(tool: &'static str, arguments: &serde_json::Value) -> (&'static str, String) {
    (tool, arguments.to_string())
}

fn one(tool: &'static str, arguments: &serde_json::Value) -> Step {
    Step::Call(vec![call(tool, arguments)])
}

fn runs(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap();
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    // What nobody has collected yet is dead all the same.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn a_command_outlives_its_call_and_its_turn_and_ends_with_the_session() {
    let server = "echo $$ > pid; echo up; while read line; do echo got $line; done; echo over";
    let mut place = Place::new(vec![
        one(
            "bash",
            &json!({"command": server, "yield_ms": 300, "input": true}),
        ),
        Step::Say("started"),
        one("bash_input", &json!({"id": 1, "text": "hello\n"})),
        one("bash_output", &json!({"id": 1, "wait_ms": 5_000})),
        one("bash_list", &json!({})),
        Step::Say("seen"),
    ])
    .await;
    assert_eq!(place.turn().await, TurnStatus::Completed);
    assert!(runs(&place.file("pid")), "it goes on after its turn");
    assert_eq!(place.turn().await, TurnStatus::Completed);
    let texts = place.texts().await;
    assert!(
        texts[0].starts_with("up\n[still running after 0.3 s as command 1"),
        "{texts:?}"
    );
    assert!(texts[2].starts_with("got hello\n"), "{texts:?}");
    assert!(texts[3].contains("while read line"), "{texts:?}");
    place.runtime.shutdown().await;
    assert!(!runs(&place.file("pid")), "it ends with the session");
}

#[tokio::test]
async fn what_is_left_in_the_background_lets_the_call_return_at_once() {
    let command = "sleep 300 & echo $! > pid; echo started";
    let mut place = Place::new(vec![
        one("bash", &json!({ "command": command })),
        one("bash_kill", &json!({"id": 1})),
    ])
    .await;
    assert_eq!(place.turn().await, TurnStatus::Completed);
    let texts = place.texts().await;
    let expected = "started\n[processes left in the background go on as command 1]";
    assert_eq!(texts[0], expected);
    assert!(!runs(&place.file("pid")), "{texts:?}");
}

#[tokio::test]
async fn an_interrupt_leaves_background_commands_alone() {
    let mut place = Place::new(vec![
        one("bash", &json!({"command": "sleep 300 & echo $! > pid"})),
        one(
            "bash",
            &json!({"command": "echo $$ > attended; echo ready; sleep 300"}),
        ),
    ])
    .await;
    place.conversation.send(Input::text("go")).await.unwrap();
    // The call has the word, too, but not the line.
    shown(&mut place.events, "ready\n").await;
    place.conversation.interrupt(None).await.unwrap();
    assert_eq!(
        turn_end(&mut place.events).await.status,
        TurnStatus::Interrupted
    );
    assert_eq!(
        (runs(&place.file("pid")), runs(&place.file("attended"))),
        (true, false)
    );
    let last = place.results().await.pop().unwrap();
    assert_eq!(last.status, ToolResultStatus::Interrupted);
    place.runtime.shutdown().await;
    assert!(!runs(&place.file("pid")));
}

#[tokio::test]
async fn the_whole_output_is_kept_also_of_what_was_written_after_the_call() {
    // 4,000 lines before the yield, and as many after it.
    let command = "seq 4000; echo half; read go < gate; seq 4001 8000; echo end > done";
    let mut place = Place::new(vec![
        one("bash", &json!({"command": "mkfifo gate"})),
        one("bash", &json!({"command": command, "yield_ms": 1_000})),
        one(
            "bash",
            &json!({"command": "echo go > gate; while [ ! -e done ]; do :; done"}),
        ),
        one(
            "bash_output",
            &json!({"id": 2, "wait_ms": 10_000, "pattern": "^7999$"}),
        ),
        one(
            "bash_output",
            &json!({"id": 2, "from_line": 4_001, "lines": 2}),
        ),
    ])
    .await;
    assert_eq!(place.turn().await, TurnStatus::Completed);
    let texts = place.texts().await;
    assert!(texts[3].contains("7999"), "{}", texts[3]);
    assert!(texts[4].contains("half"), "{}", texts[4]);
    let blob = place.results().await[1].output.unwrap();
    let place = place.restarted().await;
    let mut expected: Vec<String> = (1..=8_000).map(|n| n.to_string()).collect();
    expected.insert(4_000, "half".to_owned());
    let whole = String::from_utf8(place.whole(blob).await).unwrap();
    assert_eq!(whole.lines().collect::<Vec<_>>(), expected);
}

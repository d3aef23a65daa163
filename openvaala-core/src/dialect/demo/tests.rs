use futures::StreamExt;
use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::Content;
use openvaala_protocol::usage::Usage;
use pretty_assertions::assert_eq;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::DemoProvider;
use super::listing::Listing;
use crate::model::{
    AssistantPart, Message, ModelEvent, ModelProvider, ModelRequest, PartKind, StopReason,
    ToolAnswer,
};

/// What the script answered: its text, and its call with the arguments.
#[derive(Debug, PartialEq)]
struct Answered {
    text: String,
    call: Option<(String, Value)>,
}

/// A conversation with the script.
struct Talk {
    request: ModelRequest,
}

impl Talk {
    fn start(tools: &[&str]) -> Self {
        Self::with_schema(tools, &json!({ "type": "object" }))
    }

    fn with_schema(tools: &[&str], schema: &Value) -> Self {
        let spec = |name: &&str| {
            ToolSpec::new(
                (*name).to_owned(),
                String::new(),
                to_raw_value(schema).unwrap(),
            )
        };
        let request = ModelRequest {
            tools: tools.iter().map(spec).collect(),
            ..ModelRequest::default()
        };
        let mut talk = Self { request };
        talk.say("look around");
        talk
    }

    fn say(&mut self, text: &str) {
        self.request
            .messages
            .push(Message::User(vec![Content::text(text)]));
    }

    /// Takes the next step, whose call (if any) is answered with `result`.
    async fn step(&mut self, result: Result<&str, &str>) -> Answered {
        let events = DemoProvider::new()
            .stream(self.request.clone())
            .await
            .unwrap();
        let events: Vec<_> = events.map(Result::unwrap).collect().await;
        let mut texts = vec![String::new(); 2];
        let mut called = None;
        for event in &events {
            match event {
                ModelEvent::Started {
                    kind: PartKind::ToolCall { id, name },
                    ..
                } => {
                    called = Some((id.clone(), name.clone()));
                }
                ModelEvent::Delta { part, text } => texts[*part as usize].push_str(text),
                _ => {}
            }
        }
        let is_end = |event: &ModelEvent| matches!(event, ModelEvent::Finished { reason: StopReason::Done, usage } if *usage == Usage::default());
        assert!(events.last().is_some_and(is_end), "{events:?}");
        let (text, arguments) = (texts.remove(0), texts.remove(0));
        let mut parts = vec![AssistantPart::Text(text.clone())];
        let Some((id, name)) = called else {
            self.request.messages.push(Message::Assistant(parts));
            return Answered { text, call: None };
        };
        let call = Some((name.clone(), serde_json::from_str(&arguments).unwrap()));
        parts.push(AssistantPart::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments,
        });
        self.request.messages.push(Message::Assistant(parts));
        let (Ok(output) | Err(output)) = result;
        let content = vec![Content::text(output)];
        let answer = ToolAnswer::new(id, name, content, result.is_err());
        self.request
            .messages
            .push(Message::ToolResults(vec![answer]));
        Answered { text, call }
    }
}

const TOOLS: &[&str] = &["bash", "read_file"];
const END: &str = "This answer comes from the demo script, not from an AI. \
                   Add a real model with `openvaala provider add`.";

#[tokio::test]
async fn the_script_lists_the_folder_reads_a_file_and_sums_up() {
    let mut talk = Talk::start(TOOLS);
    let first = talk
        .step(Ok("Cargo.toml\nREADME.md\nREADME.zh.md\n.env\nsrc/\n"))
        .await;
    assert_eq!(
        first.call,
        Some(("bash".to_owned(), json!({ "command": "ls -1Ap" })))
    );
    assert_eq!(first.text, "I will look at what is in this folder first.");

    let readme = "# Tea\n\n[![badge](x)](y)\n\nA timer\nfor tea.\n\n## Use\n";
    let second = talk.step(Ok(readme)).await;
    let arguments = json!({ "path": "README.md", "limit": 60 });
    assert_eq!(second.call, Some(("read_file".to_owned(), arguments)));

    let last = talk.step(Ok("")).await;
    let text = format!(
        "This folder holds 4 files and 1 folder. Kinds of files: 2 .md, 1 .toml.\n\n\
         README.md is titled \"Tea\" and begins:\n\n> A timer for tea.\n\n{END}"
    );
    assert_eq!(last, Answered { text, call: None });
}

#[tokio::test]
async fn every_message_of_the_user_starts_the_script_anew() {
    let mut talk = Talk::start(TOOLS);
    let listing = Ok("a.md\n");
    let first = talk.step(listing).await;
    talk.step(Ok("x")).await;
    talk.step(Ok("")).await;
    talk.say("and now?");
    assert_eq!(talk.step(listing).await, first);
    let ids = talk
        .request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::ToolResults(results) => Some(results[0].call_id.clone()),
            _ => None,
        });
    assert_eq!(ids.collect::<Vec<_>>(), ["demo_1", "demo_3", "demo_7"]);
}

#[tokio::test]
async fn a_folder_without_a_file_to_read_is_named() {
    let mut talk = Talk::start(TOOLS);
    talk.step(Ok("a.png\n.env\nsecret.pem\n")).await;
    let second = talk.step(Ok("/home/me/pictures\n")).await;
    assert_eq!(
        second.call,
        Some(("bash".to_owned(), json!({ "command": "pwd" })))
    );
    let last = talk.step(Ok("")).await;
    let start = "The folder /home/me/pictures holds 3 files and no folders. Kinds of files: 1 .pem, 1 .png.";
    assert_eq!(last.text, format!("{start}\n\n{END}"));
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_missed_in_words() {
    let answer = Talk::start(&["read_file"]).step(Ok("")).await;
    let text = format!(
        "I cannot look at the folder, because the tool `bash` is not offered here.\n\n{END}"
    );
    assert_eq!(answer, Answered { text, call: None });

    let mut talk = Talk::start(&["bash"]);
    talk.step(Ok("a.md\n")).await;
    let answer = talk.step(Ok("")).await;
    let text = format!(
        "This folder holds 1 file and no folders. Kinds of files: 1 .md.\n\n\
         I cannot read a.md, because the tool `read_file` is not offered here.\n\n{END}"
    );
    assert_eq!(answer, Answered { text, call: None });
}

#[tokio::test]
async fn a_tool_that_fails_ends_the_script_in_words() {
    let mut talk = Talk::start(TOOLS);
    talk.step(Err("permission denied")).await;
    let text = format!("I could not look at the folder: permission denied\n\n{END}");
    assert_eq!(talk.step(Ok("")).await, Answered { text, call: None });

    let mut talk = Talk::start(TOOLS);
    talk.step(Ok("a.md\n")).await;
    talk.step(Err("it is gone")).await;
    let last = talk.step(Ok("")).await;
    assert!(
        last.text.contains("I could not read a.md."),
        "{}",
        last.text
    );
}

#[tokio::test]
async fn a_required_executor_is_the_first_of_its_list() {
    let schema = json!({
        "type": "object",
        "properties": { "executor": { "enum": ["far", "local"] } },
        "required": ["command", "executor"],
    });
    let answer = Talk::with_schema(TOOLS, &schema).step(Ok("")).await;
    let arguments = json!({ "command": "ls -1Ap", "executor": "far" });
    assert_eq!(answer.call, Some(("bash".to_owned(), arguments)));
}

#[test]
fn the_most_telling_file_is_chosen_and_hidden_ones_are_left_alone() {
    let best = |names: &str| Listing::parse(names).best_file().map(str::to_owned);
    for (names, expected) in [
        ("z.md\nREADME.rst\nCargo.toml\n", Some("README.rst")),
        ("README.png\nz.md\ngo.mod\n", Some("go.mod")),
        ("package.json\nCargo.toml\n", Some("Cargo.toml")),
        ("a.txt\nz.md\n", Some("z.md")),
        ("main.rs\nnotes.txt\n", Some("notes.txt")),
        ("main.rs\nMakefile\n", Some("Makefile")),
        ("main.rs\na.bin\n", Some("main.rs")),
        (".bashrc.md\n.env\nid_rsa\nx.key\ndocs.md/\n", None),
        ("[exit code 1]\n", None),
        ("", None),
    ] {
        assert_eq!(best(names).as_deref(), expected, "{names:?}");
    }
}

#[tokio::test]
async fn a_manifest_tells_name_and_description() {
    for (file, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"tea\"\ndescription = \"A timer\"\n",
        ),
        (
            "package.json",
            "{\n  \"name\": \"tea\",\n  \"description\": \"A timer\"\n}",
        ),
    ] {
        let mut talk = Talk::start(TOOLS);
        talk.step(Ok(file)).await;
        talk.step(Ok(text)).await;
        let last = talk.step(Ok("")).await;
        let expected = format!("{file} is titled \"tea\" and begins:\n\n> A timer");
        assert!(last.text.contains(&expected), "{}", last.text);
    }
}

#[tokio::test]
async fn the_answer_comes_word_by_word() {
    let request = Talk::start(&[]).request;
    let events = DemoProvider::new().stream(request).await.unwrap();
    let deltas = events.filter(|event| {
        let is_delta = matches!(event, Ok(ModelEvent::Delta { .. }));
        async move { is_delta }
    });
    assert!(deltas.count().await > 20);
}

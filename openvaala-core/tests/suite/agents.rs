//! Agents with instructions, models and tools of their own; folders that instruct agents; answers that follow a schema.

use std::fs;
use std::path::Path;

use openvaala_core::context::Skill;
use openvaala_core::model::{Message, ModelRequest, OutputSchema};
use openvaala_core::protocol::content::joined_text;
use openvaala_core::protocol::conversation::{ModelRef, TurnStatus};
use openvaala_core::protocol::item::{Instructions, ItemKind};
use openvaala_core::{AgentDefinition, Input, NewConversation, RuntimeError};
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;

use super::script::{Script, Step, builder, items, kinds, turn_end};

fn model(name: &str, effort: Option<&str>) -> ModelRef {
    ModelRef {
        provider: "script".to_owned(),
        model: name.to_owned(),
        effort: effort.map(str::to_owned),
    }
}

fn user_texts(request: &ModelRequest) -> Vec<String> {
    let texts = request.messages.iter().filter_map(|message| match message {
        Message::User(content) => Some(joined_text(content)),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn an_agent_has_its_own_instructions_model_and_tools() {
    let folder = tempfile::tempdir().unwrap();
    let (script, mut requests) = Script::new(Vec::new());
    let mut agent = AgentDefinition::instructed("You review code.")
        .with_model(model("strong", None))
        .with_tools(["read_file"]);
    agent.effort = Some("high".to_owned());
    let runtime = builder(script)
        .instructions("Speak softly.")
        .agent("reviewer", agent)
        .in_memory()
        .build()
        .await
        .unwrap();
    let new = NewConversation::in_folder(folder.path()).with_agent("reviewer");
    let conversation = runtime.create(new).await.unwrap();
    let details = conversation.details().await.unwrap();
    let session = &details.sessions[0];
    assert_eq!(
        (session.agent.as_deref(), &session.model),
        (Some("reviewer"), &model("strong", Some("high")))
    );
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    turn_end(&mut events).await;
    let request = requests.recv().await.unwrap();
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(
        (request.model.as_str(), request.effort.as_deref(), tools),
        ("strong", Some("high"), vec!["read_file"])
    );
    let instructions = "\n# Instructions\nSpeak softly.\n\nYou review code.\n\n# Environment\n";
    assert!(
        request.instructions.contains(instructions),
        "{}",
        request.instructions
    );
}

#[tokio::test]
async fn an_agent_that_there_is_not_is_refused_with_those_that_there_are() {
    let (script, _requests) = Script::new(Vec::new());
    let agent = AgentDefinition::instructed("x");
    let runtime = builder(script)
        .agent("writer", agent)
        .in_memory()
        .build()
        .await
        .unwrap();
    let new = NewConversation::default().with_agent("reader");
    let error = runtime.create(new).await.unwrap_err();
    assert!(
        matches!(error, RuntimeError::UnknownAgent { .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        r#"there is no agent "reader"; there are: writer"#
    );
}

#[tokio::test]
async fn a_tool_that_there_is_not_fails_the_turn_and_is_named() {
    let (script, _requests) = Script::new(Vec::new());
    let agent = AgentDefinition::default().with_tools(["fly"]);
    let runtime = builder(script)
        .agent("bird", agent)
        .in_memory()
        .build()
        .await
        .unwrap();
    let new = NewConversation::default().with_agent("bird");
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    let turn = turn_end(&mut events).await;
    assert_eq!(turn.status, TurnStatus::Failed);
    let message = turn.failure.unwrap().message;
    assert!(message.contains(r#""fly""#), "{message}");
}

#[tokio::test]
async fn a_folder_instructs_from_the_root_of_its_repository_down_and_again_when_it_changes() {
    let outside = tempfile::tempdir().unwrap();
    let top = outside.path().join("project");
    let inner = top.join("part");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(top.join(".git")).unwrap();
    fs::write(outside.path().join("AGENTS.md"), "not of this repository").unwrap();
    fs::write(top.join("AGENTS.md"), "Use tabs.").unwrap();
    fs::write(inner.join("AGENTS.md"), "Use spaces here.").unwrap();
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(&inner))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    for _ in 0..2 {
        conversation.send(Input::text("go")).await.unwrap();
        turn_end(&mut events).await;
    }
    let shown = |folder: &Path, text: &str| {
        let path = folder.canonicalize().unwrap().join("AGENTS.md");
        format!(
            "Instructions from {}:\n<instructions>\n{text}\n</instructions>",
            path.display()
        )
    };
    let (tabs, spaces) = (shown(&top, "Use tabs."), shown(&inner, "Use spaces here."));
    let first = user_texts(&requests.recv().await.unwrap());
    assert_eq!(first, [tabs.clone(), spaces.clone(), "go".to_owned()]);
    use ItemKind::{AssistantMessage as Said, Instructions as Told, UserMessage as Asked};
    assert_eq!(
        kinds(&conversation).await,
        [Asked, Told, Told, Said, Asked, Said]
    );

    fs::write(inner.join("AGENTS.md"), "Use four spaces.").unwrap();
    conversation.send(Input::text("again")).await.unwrap();
    turn_end(&mut events).await;
    let _second = requests.recv().await.unwrap();
    let third = user_texts(&requests.recv().await.unwrap());
    let go = || "go".to_owned();
    let changed = shown(&inner, "Use four spaces.");
    assert_eq!(
        third,
        [tabs, spaces, go(), go(), changed, "again".to_owned()]
    );
}

#[tokio::test]
async fn global_instructions_come_first_and_are_the_first_to_be_cut() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("AGENTS.md"), "n".repeat(32_000)).unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let global = Instructions::new("/home/me/AGENTS.md".to_owned(), "g".repeat(1_000), 1_000);
    let runtime = builder(script).global_instructions(global.clone());
    let runtime = runtime.in_memory().build().await.unwrap();
    let new = NewConversation::in_folder(folder.path());
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    turn_end(&mut events).await;
    let all = items(&conversation).await;
    let told = all.iter().filter_map(|item| item.body::<Instructions>());
    let told: Vec<Instructions> = told.map(|body| body.unwrap()).collect();
    let near = folder.path().canonicalize().unwrap().join("AGENTS.md");
    assert_eq!(
        told,
        [
            Instructions::new(global.path, "g".repeat(768), 1_000),
            Instructions::new(near.display().to_string(), "n".repeat(32_000), 32_000),
        ]
    );
}

#[tokio::test]
async fn skills_of_the_folder_and_given_ones_are_listed_and_a_broken_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let place = folder.path().join(".agents/skills").join(name);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("SKILL.md"), text).unwrap();
    };
    write(
        "release",
        "---\nname: release\ndescription: How a release is made.\n---\nTag it.",
    );
    write("broken", "no head");
    fs::create_dir_all(folder.path().join(".agents/skills/empty")).unwrap();
    let (script, mut requests) = Script::new(Vec::new());
    let runtime = builder(script)
        .instructions("Speak softly.")
        .skill(Skill::new(
            "pdf",
            "Fills in forms.",
            "/home/me/pdf/SKILL.md",
        ))
        .skill(Skill::new(
            "release",
            "Another one.",
            "/home/me/release/SKILL.md",
        ));
    let runtime = runtime.in_memory().build().await.unwrap();
    let new = NewConversation::in_folder(folder.path());
    let conversation = runtime.create(new).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    for _ in 0..2 {
        conversation.send(Input::text("go")).await.unwrap();
        turn_end(&mut events).await;
    }
    let root = folder.path().canonicalize().unwrap();
    let root = root.display();
    let expected = format!(
        "# Instructions\nSpeak softly.\n\n\
         # Skills\n\
         Each of these files tells how something is done. When a task fits one, read that file with read_file before you begin.\n\
         - release: How a release is made. ({root}/.agents/skills/release/SKILL.md)\n\
         - pdf: Fills in forms. (/home/me/pdf/SKILL.md)\n\
         - {root}/.agents/skills/broken/SKILL.md is skipped: it does not begin with front matter between two lines of `---`\n\n\
         # Environment\n"
    );
    let first = requests.recv().await.unwrap().instructions;
    assert!(first.contains(&expected), "{first}");
    assert_eq!(requests.recv().await.unwrap().instructions, first);
}

#[tokio::test]
async fn instructions_that_are_too_long_are_cut_and_the_nearest_are_kept_whole() {
    let top = tempfile::tempdir().unwrap();
    let inner = top.path().join("part");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(top.path().join(".git")).unwrap();
    fs::write(top.path().join("AGENTS.md"), "f".repeat(100_000)).unwrap();
    fs::write(inner.join("AGENTS.md"), "n".repeat(30_000)).unwrap();
    let (script, _requests) = Script::new(Vec::new());
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime
        .create(NewConversation::in_folder(&inner))
        .await
        .unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    conversation.send(Input::text("go")).await.unwrap();
    turn_end(&mut events).await;
    let all = items(&conversation).await;
    let sizes = all.iter().filter_map(|item| item.body::<Instructions>());
    let sizes: Vec<(usize, u64)> = sizes
        .map(|body| body.unwrap())
        .map(|body| (body.text.len(), body.bytes))
        .collect();
    assert_eq!(sizes, [(2_768, 100_000), (30_000, 30_000)]);
}

#[tokio::test]
async fn an_answer_follows_the_schema_of_the_input_that_started_its_turn() {
    let schema = r#"{"type":"object","properties":{"z":{},"a":{}}}"#;
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let (script, mut requests) = Script::new(vec![Step::Say("{}")]);
    let runtime = builder(script).in_memory().build().await.unwrap();
    let conversation = runtime.create(NewConversation::default()).await.unwrap();
    let mut events = conversation.subscribe(None).await.unwrap();
    let wanted = OutputSchema::new(schema);
    let input = Input::text("go").with_output_schema(wanted.clone());
    conversation.send(input).await.unwrap();
    turn_end(&mut events).await;
    conversation.send(Input::text("freely now")).await.unwrap();
    turn_end(&mut events).await;
    let asked = [
        requests.recv().await.unwrap(),
        requests.recv().await.unwrap(),
    ];
    assert_eq!(asked.map(|request| request.output_schema), [wanted, None]);
}

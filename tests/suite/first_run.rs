//! The first minutes: one command on a fresh machine, and what it leaves behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::Stdio;

use openvaala_tests::fake_model::{Answer, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;

use crate::support::{conversation_of, json_lines, logged_items, of_kind};

const PROMPT: &str = "look around this folder and tell me what it is";

fn fresh_machine() -> Sandbox {
    let sandbox = Sandbox::with_empty_home();
    sandbox.write_project(
        "README.md",
        "# Paper plane\n\nFolds paper planes by number.\n",
    );
    sandbox.write_project("fold.py", "print('fold')\n");
    sandbox
}

#[test]
fn the_first_command_answers_with_tools_on_a_fresh_machine() {
    let sandbox = fresh_machine();
    let outcome = sandbox.run(&["exec", PROMPT]).expect_code(0);
    assert!(outcome.stdout.contains("Paper plane"), "{outcome:?}");
    assert!(outcome.stdout_pieces >= 2, "not streamed: {outcome:?}");
    // One line says that no AI answers, and how to add one.
    let notices = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("openvaala provider add"));
    assert_eq!(notices.count(), 1, "{}", outcome.stderr);

    let [folder] = sandbox.conversations().try_into().unwrap();
    let id = conversation_of(&outcome);
    assert_eq!(
        folder.file_name().unwrap().to_str(),
        Some(id.to_string().as_str())
    );
    let items = logged_items(&folder);
    assert!(of_kind(&items, "tool_call").len() >= 2, "{items:#?}");
    assert_eq!(
        of_kind(&items, "tool_call").len(),
        of_kind(&items, "tool_result").len()
    );
    let session = items_file(&folder);
    let files = file_names(&folder);
    assert_eq!(files, [session, "metadata.jsonl".to_owned()]);
}

#[test]
fn show_prints_the_conversation_again() {
    let sandbox = fresh_machine();
    let outcome = sandbox.run(&["exec", PROMPT]).expect_code(0);
    let id = conversation_of(&outcome).to_string();
    let shown = sandbox.run(&["show", &id]).expect_code(0).stdout;
    for text in [
        PROMPT,
        "read_file",
        "README.md",
        "Folds paper planes by number.",
    ] {
        assert!(shown.contains(text), "{text:?} is not in:\n{shown}");
    }
    let by_prefix = sandbox.run(&["show", &id[..13]]).expect_code(0).stdout;
    assert_eq!(by_prefix, shown);
}

#[test]
fn x_01_a_deleted_index_is_made_again_and_lists_the_same() {
    let sandbox = fresh_machine();
    for prompt in [PROMPT, "and once more", "and a third time"] {
        let _ = sandbox.run(&["exec", prompt]).expect_code(0);
    }
    let before = sandbox.run(&["list", "--json"]).expect_code(0).stdout;
    assert_eq!(before.lines().count(), 3, "{before}");
    sandbox.stop_server();
    let mut removed = 0;
    for entry in fs::read_dir(sandbox.data()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("metadata.db")
        {
            fs::remove_file(path).unwrap();
            removed += 1;
        }
    }
    assert!(removed > 0, "there was no index");
    let _ = sandbox.run(&["reindex"]).expect_code(0);
    assert_eq!(
        sandbox.run(&["list", "--json"]).expect_code(0).stdout,
        before
    );
    // A server that runs makes it again as well, while it serves.
    let _ = sandbox.run(&["reindex"]).expect_code(0);
    assert_eq!(
        sandbox.run(&["list", "--json"]).expect_code(0).stdout,
        before
    );
    let table = sandbox.run(&["list"]).expect_code(0).stdout;
    assert!(table.contains("and a third time"), "{table}");
}

#[test]
fn exec_json_is_one_event_a_line_with_items_as_they_are_stored() {
    let sandbox = fresh_machine();
    let outcome = sandbox.run(&["exec", "--json", PROMPT]).expect_code(0);
    let events = json_lines(&outcome.stdout);
    let types: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        (types[0], types[types.len() - 1]),
        ("conversation", "turn_end")
    );
    let known = ["conversation", "entry", "live", "turn_end"];
    assert!(types.iter().all(|kind| known.contains(kind)), "{types:?}");
    assert_eq!(events[events.len() - 1]["turn"]["status"], "completed");

    let [folder] = sandbox.conversations().try_into().unwrap();
    let log = fs::read_to_string(folder.join(items_file(&folder))).unwrap();
    let payload = |line: &'_ str| {
        let (_, data) = line.split_once(r#""data":"#).unwrap();
        data.strip_suffix('}').unwrap().to_owned()
    };
    let logged: BTreeSet<String> = log.lines().map(payload).collect();
    for item in &logged {
        assert!(outcome.stdout.contains(item), "not as it is stored: {item}");
    }
    let id = events[0]["conversation"]["id"].as_str().unwrap();
    let shown = sandbox.run(&["show", "--json", id]).expect_code(0).stdout;
    let shown: BTreeSet<String> = shown.lines().map(str::to_owned).collect();
    assert_eq!(shown, logged);
}

#[test]
fn a_closed_pipe_ends_exec_quietly() {
    let sandbox = fresh_machine();
    let mut command = sandbox.command(&["exec", PROMPT]);
    let (reader, writer) = std::io::pipe().unwrap();
    let (mut errors, stderr) = std::io::pipe().unwrap();
    command.stdin(Stdio::null()).stdout(writer).stderr(stderr);
    drop(reader);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    for text in ["panicked", "error"] {
        assert!(!said.contains(text), "{said}");
    }
}

#[test]
fn text_is_shown_while_the_model_still_speaks() {
    let gate = Gate::new();
    let behind = gate.clone();
    let mut model = FakeModel::start(move |_| {
        Answer::stream()
            .say("first half, ")
            .wait(&behind)
            .say("second half")
            .end()
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut exec = sandbox.start(&["exec", "hello"]);
    exec.wait_for_stdout("first half, ");
    gate.open();
    let outcome = exec.finish().expect_code(0);
    assert_eq!(outcome.stdout.trim_end(), "first half, second half");
    assert!(
        !outcome.stderr.contains("provider add"),
        "{}",
        outcome.stderr
    );
    let authorization = model.requests()[0].authorization.clone();
    assert_eq!(authorization.as_deref(), Some("Bearer test-key"));
    model.expect_sound_requests();
}

#[tokio::test]
async fn an_empty_conversation_leaves_nothing_on_disk() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let id = watcher.create(&sandbox.project()).await;
    assert_eq!(watcher.get(id).await.unwrap().turns, []);
    watcher.client.close().await;
    assert!(sandbox.conversations().is_empty());
    let _ = server.terminate().expect_code(0);
    assert!(sandbox.conversations().is_empty());
    let listed = sandbox.run(&["list", "--json"]).expect_code(0).stdout;
    assert_eq!(listed.trim(), "");
}

#[test]
fn u_174_exec_does_not_wait_for_an_open_standard_input() {
    let sandbox = fresh_machine();
    let mut command = sandbox.command(&["exec", "hello"]);
    let (input, _held_open) = std::io::pipe().unwrap();
    command.stdin(input);
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

fn items_file(folder: &std::path::Path) -> String {
    let mut names = file_names(folder);
    names.retain(|name| name != "metadata.jsonl");
    let [session] = names.try_into().unwrap();
    let id = session.strip_suffix(".jsonl").unwrap();
    id.parse::<openvaala_protocol::id::SessionId>().unwrap();
    session
}

fn file_names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

//! The examples run and do what they say.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use openvaala_tests::binary::{target, workspace};
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::running::{Outcome, Running};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use rustix::process::Signal;
use tempfile::TempDir;

/// Variables that would make an example ask a model.
const KEYS: [&str; 1] = ["OPENAI_API_KEY"];

/// An example with its arguments: the one in the folder `OPENVAALA_EXAMPLES`, else one that is built now.
fn example(name: &str, arguments: &[&str]) -> Command {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let given = env::var_os("OPENVAALA_EXAMPLES").map(PathBuf::from);
        given.unwrap_or_else(build)
    });
    let mut command = Command::new(folder.join(name));
    command.args(arguments).current_dir(workspace());
    for key in KEYS {
        command.env_remove(key);
    }
    command
}

#[track_caller]
fn run(name: &str, arguments: &[&str]) -> Outcome {
    Running::start(example(name, arguments))
        .finish()
        .expect_code(0)
}

/// Builds all examples beside this test, which takes no time when they are there; gives their folder.
fn build() -> PathBuf {
    let target = target();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "-p",
            "openvaala-examples",
            "--examples",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(workspace())
        .status();
    let built = built.expect("cargo can be started");
    assert!(built.success(), "the examples cannot be built: {built}");
    target.join("debug/examples")
}

/// The lines that begin with one of those words.
fn lines<'a>(outcome: &'a Outcome, words: &[&str]) -> Vec<&'a str> {
    let is_wanted = |line: &&str| words.iter().any(|word| line.starts_with(word));
    outcome.stdout.lines().filter(is_wanted).collect()
}

#[test]
fn embed_minimal_answers_with_tools() {
    let outcome = run("embed_minimal", &[]);
    for kind in [
        "user_message: ",
        "tool_call: ",
        "tool_result: ",
        "assistant_message: ",
    ] {
        assert!(!lines(&outcome, &[kind]).is_empty(), "{kind}: {outcome:?}");
    }
}

#[test]
fn custom_tool_runs_the_tool() {
    let outcome = run("custom_tool", &[]);
    assert_eq!(outcome.stdout, "the sum is 9\n", "{outcome:?}");
}

#[test]
fn custom_provider_streams_the_echo() {
    let outcome = run("custom_provider", &[]);
    assert_eq!(outcome.stdout, "hello from the far side\n", "{outcome:?}");
}

#[test]
fn in_memory_lists_what_it_never_wrote() {
    let before = files_here();
    let outcome = run("in_memory", &[]);
    assert!(
        outcome.stdout.contains("items, the newest first:"),
        "{outcome:?}"
    );
    assert!(outcome.stdout.contains("user_message"), "{outcome:?}");
    let listed = r#"in the list: Some("what can you do?")"#;
    assert!(outcome.stdout.contains(listed), "{outcome:?}");
    assert_eq!(files_here(), before);
}

/// What lies in the folder that the examples run in.
fn files_here() -> Vec<OsString> {
    let entries = fs::read_dir(workspace()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn stream_to_terminal_shows_words_calls_output_and_results_in_their_order() {
    let outcome = run("stream_to_terminal", &["look around this folder"]);
    assert_eq!(
        lines(&outcome, &["--- ", "("]),
        [
            "--- assistant_message",
            "--- tool_call bash",
            "--- tool_result demo_1",
            "(Ok) .ci/",
            "--- assistant_message",
            "--- tool_call read_file",
            "--- tool_result demo_3",
            "(Ok) # OpenVaala",
            "--- assistant_message",
        ],
        "{outcome:?}"
    );
}

#[test]
fn resume_goes_on_with_what_was_said() {
    let data = TempDir::new().unwrap();
    let data = data.path().join("data").display().to_string();
    let first = run("resume", &[&data]);
    let (before, said) = first.stdout.split_once("--- now\nsent\n").unwrap();
    assert_eq!(before.lines().count(), 1, "{first:?}");
    let second = run("resume", &[&data]);
    let (history, _) = second.stdout.split_once("--- now\n").unwrap();
    assert_eq!(history, format!("{before}{said}turn: Completed\n"));
}

#[test]
fn resume_survives_a_kill_right_after_it_has_sent() {
    let data = TempDir::new().unwrap();
    let data = data.path().join("data").display().to_string();
    let mut killed = Running::start(example("resume", &[&data]));
    killed.wait_for_stdout("sent\n");
    killed.kill();
    let again = run("resume", &[&data]);
    let (history, now) = again.stdout.split_once("--- now\n").unwrap();
    let asked = "you: look around this folder\n";
    assert!(history.contains(asked), "{again:?}");
    // The turn was killed, or quicker than the signal.
    let turns = lines(&again, &["turn: "]);
    assert!(
        ["turn: Interrupted", "turn: Completed"].contains(&turns[0]) && turns.len() == 1,
        "{again:?}"
    );
    assert!(now.contains(asked) && now.contains("it: "), "{again:?}");
}

#[test]
fn own_storage_holds_a_conversation() {
    let outcome = run("own_storage", &[]);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let [conversation, session, metadata] = lines.try_into().expect("three lines");
    assert!(conversation.starts_with("conversations/"), "{outcome:?}");
    assert_eq!(metadata, "  metadata");
    assert_eq!(session.trim().len(), 36, "{outcome:?}");
}

#[test]
fn custom_storage_counts_what_a_conversation_writes() {
    let outcome = run("custom_storage", &[]);
    let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
    let [entries, "entries", "in", appends, "appends"] = words[..] else {
        panic!("{outcome:?}");
    };
    let (entries, appends): (u64, u64) = (entries.parse().unwrap(), appends.parse().unwrap());
    // The input, the answer, the states before and after.
    assert!(appends >= 3 && entries > appends, "{outcome:?}");
}

/// The file that the server of a sandbox has written.
fn discovery_file(sandbox: &Sandbox) -> String {
    let entries = fs::read_dir(sandbox.state()).unwrap();
    let mut files = entries.map(|entry| entry.unwrap().path().display().to_string());
    let is_it = |path: &String| path.contains("runtime-server") && path.ends_with(".yaml");
    files.find(is_it).expect("a server runs")
}

#[test]
fn client_lists_and_follows_a_turn_to_its_end() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let file = discovery_file(&sandbox);
    let first = run("client", &[&file, "look around this folder"]);
    assert_eq!(
        lines(&first, &["--- ", "turn: "]),
        [
            "--- assistant_message",
            "--- tool_call",
            "--- tool_result",
            "--- assistant_message",
            "--- tool_call",
            "--- tool_result",
            "--- assistant_message",
            "turn: Completed",
        ]
    );
    let second = run("client", &[&file, "once more"]);
    let listed = second.stdout.lines().next().unwrap();
    assert!(listed.ends_with(" look around this folder"), "{second:?}");
    drop(server);
}

#[test]
fn client_interrupts_on_ctrl_c() {
    let model = FakeModel::start(|_| Answer::stream().say("I think").stall());
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _server = sandbox.serve();
    let file = discovery_file(&sandbox);
    let mut client = Running::start(example("client", &[&file, "think for ever"]));
    client.wait_for_stdout("I think");
    client.signal(Signal::INT);
    let outcome = client.finish().expect_code(0);
    assert_eq!(lines(&outcome, &["turn: "]), ["turn: Interrupted"]);
}

#[test]
fn every_example_is_short_documented_and_runs_here() {
    let manifest = read("examples/Cargo.toml");
    let book = read("docs/embedding.md");
    let this_file = include_str!("examples.rs");
    let names = manifest
        .split("[[example]]\nname = \"")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('"')?.0));
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        let call = format!("(\"{name}\", ");
        assert!(this_file.contains(&call), "nothing runs {name}");
        let row = format!("| [`{name}`](../examples/{name}");
        assert!(
            book.contains(&row),
            "docs/embedding.md does not list {name}"
        );
    }
    for file in rust_files(&workspace().join("examples")) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines < 100, "{} has {lines} lines", file.display());
    }
}

/// The code of a document is compiled if the library of the examples has the document in it.
#[test]
fn every_document_with_rust_code_is_compiled() {
    let library = read("examples/lib.rs");
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        if text.lines().any(|line| line.starts_with("```rust")) {
            let included = library.contains(&format!("include_str!(\"../docs/{name}\")"));
            assert!(included, "the code of {name} is not compiled");
            // What has no language would be compiled as Rust, what is ignored would not.
            let mut fences = text.lines().filter(|line| line.starts_with("```"));
            let plain = fences.clone().step_by(2).any(|begin| begin == "```");
            assert!(!plain, "{name}: a block does not say its language");
            assert!(fences.all(|line| !line.contains("ignore")), "{name}");
            found.push(name);
        }
    }
    found.sort();
    assert_eq!(
        found,
        ["embedding.md", "providers.md", "storage.md", "tools.md"]
    );
}

fn read(path: &str) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// What `docs/protocol.md` says is enough for a client in another language.
#[test]
fn a_client_in_python_asks_and_shows_the_answer_as_it_comes() {
    let python = env::var_os("OPENVAALA_SPEC_PYTHON").expect("tests/run sets it");
    let script = workspace().join("examples/python/client.py");
    let model = FakeModel::start(|_| Answer::stream().say("As it ").say("comes.").end());
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let server = sandbox.serve();
    let file = fs::read_dir(sandbox.state()).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        let is_discovery = path.extension().is_some_and(|end| end == "yaml");
        is_discovery.then_some(path)
    });
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(file.expect("a server has a discovery file"))
        .arg(sandbox.project())
        .arg("hello");
    let outcome = Running::start(command).finish().expect_code(0);
    assert_eq!(outcome.stdout, "As it comes.\ncompleted\n", "{outcome:?}");
    drop(server);
}

//! The commands one by one, as a person or a script uses them.

use std::fs;
use std::process::{Output, Stdio};

use openvaala_tests::fake_model::{Answer, Asked, FakeModel, Gate};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{conversation_of, json_lines, logged_items, of_kind};

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xff\xff?\0\x05\xfe\x02\xfe\xa75\x81\x84\0\0\0\0IEND\xaeB`\x82";

/// A sandbox whose model repeats what it was told.
fn echo() -> (Sandbox, FakeModel) {
    let model = FakeModel::start(|asked| Answer::text(&format!("you said: {}", asked.last_user())));
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    (sandbox, model)
}

/// Runs a command with that on its standard input.
fn with_input(sandbox: &Sandbox, arguments: &[&str], input: &[u8]) -> Output {
    let file = sandbox.root().join("input");
    fs::write(&file, input).unwrap();
    let mut command = sandbox.command(arguments);
    command.stdin(fs::File::open(file).unwrap());
    command.stderr(Stdio::piped()).output().unwrap()
}

#[track_caller]
fn refused(output: &Output, texts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for text in texts {
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
}

/// The texts of all messages that a request has, system prompt aside.
fn history(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let spoken = messages.filter(|message| message["role"] != "system");
    spoken
        .map(|message| message["content"].as_str().unwrap_or("?").to_owned())
        .collect()
}

#[test]
fn a_dash_takes_the_prompt_from_standard_input_and_a_pipe_adds_to_a_prompt() {
    let (sandbox, mut model) = echo();
    let whole = with_input(&sandbox, &["exec", "-"], b"fold\na plane\n");
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    let added = with_input(&sandbox, &["exec", "review this"], b"+ a line\n");
    assert_eq!(added.status.code(), Some(0), "{added:?}");
    let nothing = with_input(&sandbox, &["exec", "only this"], b"");
    assert_eq!(nothing.status.code(), Some(0), "{nothing:?}");
    let asked = model.requests().iter().map(|seen| {
        let body = seen.body.clone();
        Asked { body }.last_user()
    });
    let asked: Vec<String> = asked.collect();
    assert_eq!(
        asked,
        [
            "fold\na plane\n",
            "review this\n\n<stdin>\n+ a line\n</stdin>",
            "only this"
        ]
    );
}

#[test]
fn input_that_is_no_prompt_is_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    refused(
        &with_input(&sandbox, &["exec", "-"], b" \n"),
        &["standard input is empty"],
    );
    let binary = with_input(&sandbox, &["exec", "look"], b"ab\xff");
    refused(&binary, &["no UTF-8 text", "byte 3"]);
    let long = vec![b'x'; 17 << 20];
    refused(
        &with_input(&sandbox, &["exec", "-"], &long),
        &["16 MiB", "put it into a file"],
    );
    // Each line break takes two bytes on the wire.
    let long = vec![b'\n'; 9 << 20];
    refused(
        &with_input(
            &sandbox,
            &["exec", "--stdin", "x"],
            &[&long[..], b"x"].concat(),
        ),
        &["bytes as they are sent"],
    );
    assert!(sandbox.servers().is_empty());
}

#[test]
fn a_conversation_goes_on_by_the_beginning_of_its_id_or_as_the_last_of_its_folder() {
    let (sandbox, mut model) = echo();
    let first = sandbox.run(&["exec", "one"]).expect_code(0);
    let id = conversation_of(&first);
    // The last characters of an id of this kind are random, so all but the last four fit no other one.
    let beginning = &id.to_string()[..32];
    let second = sandbox
        .run(&["exec", "--resume", beginning, "two"])
        .expect_code(0);
    assert_eq!(second.stdout, "you said: two\n");
    let other = sandbox.root().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    let _ = sandbox
        .run(&["exec", "--cwd", other, "elsewhere"])
        .expect_code(0);
    let third = sandbox.run(&["exec", "--last", "three"]).expect_code(0);
    assert_eq!(third.stdout, "you said: three\n");
    assert_eq!([&second, &third].map(conversation_of), [id, id]);
    let spoken = history(&model.requests().last().unwrap().body);
    assert_eq!(
        spoken,
        ["one", "you said: one", "two", "you said: two", "three"]
    );
    model.expect_sound_requests();
}

#[test]
fn going_on_with_what_is_not_there_names_it_and_shows_the_way() {
    let sandbox = Sandbox::new();
    let missing = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
    for command in [
        &["exec", "--resume"][..],
        &["send"],
        &["interrupt"],
        &["show"],
    ] {
        for (id, said) in [
            (missing, missing),
            ("0192d3f5", "begins with \"0192d3f5\""),
            ("plane", "\"plane\" is neither"),
        ] {
            let prompt: &[&str] = if ["exec", "send"].contains(&command[0]) {
                &["go on"]
            } else {
                &[]
            };
            let arguments = [command, &[id], prompt].concat();
            let _ = sandbox
                .run(&arguments)
                .expect_code(1)
                .expect_stderr(&[said, "openvaala list"]);
        }
    }
    let folder = sandbox.project();
    let _ = sandbox
        .run(&["exec", "--last", "go on"])
        .expect_code(1)
        .expect_stderr(&[
            "no conversation yet in",
            folder.to_str().unwrap(),
            "openvaala list",
        ]);
    assert!(sandbox.conversations().is_empty());
    for _ in 0..2 {
        let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    }
    // Ids begin with the time.
    let [one, _] = &sandbox.conversations()[..] else {
        panic!("two conversations")
    };
    let name = one.file_name().unwrap().to_str().unwrap();
    let _ = sandbox
        .run(&["exec", "--resume", &name[..4], "go on"])
        .expect_code(1)
        .expect_stderr(&["the ids of 2 conversations begin with", name]);
    let _ = sandbox
        .run(&["exec", "--resume", name, "--model", "demo/demo", "go on"])
        .expect_code(2)
        .expect_stderr(&["--model cannot be used with --resume", "keeps its model"]);
}

#[test]
fn images_reach_the_model_and_what_is_none_is_named() {
    let (sandbox, mut model) = echo();
    sandbox.write_project("pixel.dat", PNG);
    let _ = sandbox
        .run(&[
            "exec",
            "what is it?",
            "--image",
            "pixel.dat",
            "--image",
            "pixel.dat",
        ])
        .expect_code(0);
    let body = &model.requests()[0].body;
    let spoken = body["messages"].as_array().unwrap().last().unwrap();
    let kinds = spoken["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["type"]);
    assert!(
        kinds.eq(["text", "image_url", "image_url"].iter()),
        "{spoken}"
    );
    let url = spoken["content"][1]["image_url"]["url"].as_str().unwrap();
    assert!(
        url.starts_with("data:image/png;base64,iVBORw0KGgo"),
        "{url}"
    );

    sandbox.write_project("scan.png", "%PDF-1.7\n");
    sandbox.write_project("huge.png", [PNG, &vec![0; 8 << 20]].concat());
    for (file, said) in [
        ("scan.png", "it seems to be a PDF document"),
        ("none.png", "cannot be read"),
        ("huge.png", "more than 8 MiB"),
    ] {
        let _ = sandbox
            .run(&["exec", "look", "--image", file])
            .expect_code(2)
            .expect_stderr(&[file, said]);
    }
    assert_eq!(sandbox.conversations().len(), 1);
}

#[test]
fn an_agent_is_named_and_one_that_is_not_there_is_told_from_those_that_are() {
    let (sandbox, mut model) = echo();
    let agents = sandbox.config().join("agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(
        agents.join("reviewer.yaml"),
        "instructions: Look for mistakes in paper planes.\n",
    )
    .unwrap();
    let _ = sandbox
        .run(&["exec", "--agent", "reviewer", "look"])
        .expect_code(0);
    let body = model.requests()[0].body.to_string();
    assert!(
        body.contains("Look for mistakes in paper planes."),
        "{body}"
    );
    let _ = sandbox
        .run(&["exec", "--agent", "revewer", "look"])
        .expect_code(1)
        .expect_stderr(&["revewer", "reviewer"]);
    assert_eq!(sandbox.conversations().len(), 1);
}

#[test]
fn an_answer_by_schema_is_alone_on_standard_output() {
    let mut model = FakeModel::start(|asked| match (asked.last_user().as_str(), asked.step()) {
        ("good", 0) => Answer::stream()
            .say("I will look.")
            .call("call_1", "bash", r#"{"command":"echo hi"}"#)
            .end(),
        ("good", _) => Answer::text(r#"{"licence": "MIT"}"#),
        _ => Answer::text("It is MIT."),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    sandbox.write_project("answer.json", r#"{"type":"object"}"#);
    let by_schema = ["exec", "--output-schema", "answer.json"];
    let good = sandbox
        .run(&[&by_schema[..], &["good"]].concat())
        .expect_code(0);
    assert_eq!(good.stdout, "{\"licence\": \"MIT\"}\n");
    let _ = good.expect_stderr(&["→ bash echo hi"]);
    let format = &model.requests()[0].body["response_format"];
    assert_eq!(format["json_schema"]["schema"], json!({ "type": "object" }));
    let bad = sandbox
        .run(&[&by_schema[..], &["bad"]].concat())
        .expect_code(1);
    assert_eq!(bad.stdout, "");
    let _ = bad.expect_stderr(&["the answer is no JSON", "it is: It is MIT."]);

    sandbox.write_project("broken.json", "{\n  \"type\": object\n}");
    sandbox.write_project("list.json", "[]");
    for (file, said) in [
        ("broken.json", "broken.json:2:11"),
        ("list.json", "no JSON object"),
        ("none.json", "none.json cannot be read"),
    ] {
        let _ = sandbox
            .run(&["exec", "--output-schema", file, "good"])
            .expect_code(2)
            .expect_stderr(&[said]);
    }
}

#[test]
fn a_transcript_in_markdown_has_what_was_said_and_done() {
    let sandbox = Sandbox::new();
    sandbox.write_project("README.md", "# Paper plane\n\n```sh\nfold\n```\n");
    let outcome = sandbox.run(&["exec", "look around"]).expect_code(0);
    let id = conversation_of(&outcome).to_string();
    let shown = sandbox.run(&["show", "--markdown", &id]).expect_code(0);
    assert_eq!(shown.stderr, "");
    for text in [
        "# look around\n",
        &format!("- conversation `{id}`\n"),
        "\n## User\n\n> look around\n",
        "### Tool call `read_file`\n",
        "\n## Assistant\n",
    ] {
        assert!(
            shown.stdout.contains(text),
            "{text:?} is not in:\n{}",
            shown.stdout
        );
    }
}

#[test]
fn lists_have_pages_and_filters() {
    let (sandbox, _model) = echo();
    let other = sandbox.root().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    for arguments in [
        &["exec", "first plane"][..],
        &["exec", "--cwd", other, "second plane"],
        &["exec", "third ship"],
    ] {
        let _ = sandbox.run(arguments).expect_code(0);
    }
    let titles = |arguments: &[&str]| -> Vec<String> {
        let listed = sandbox
            .run(&[&["list", "--json"], arguments].concat())
            .expect_code(0);
        let lines = json_lines(&listed.stdout);
        let titles = lines.iter().map(|line| line["title"].as_str().unwrap());
        titles.map(str::to_owned).collect()
    };
    let all = ["third ship", "second plane", "first plane"];
    assert_eq!(titles(&[]), all);
    assert_eq!(titles(&["--all"]), all);
    assert_eq!(titles(&["--search", "PLANE"]), all[1..]);
    assert_eq!(titles(&["--cwd", other]), all[1..2]);
    assert_eq!(
        titles(&["--status", "idle", "--since", "1h", "--search", "ship"]),
        all[..1]
    );
    assert_eq!(titles(&["--status", "running"]), [""; 0]);

    let page = sandbox.run(&["list", "--limit", "2"]).expect_code(0);
    assert_eq!(page.stdout.lines().count(), 3, "{}", page.stdout);
    let (_, after) = page
        .stderr
        .split_once("--cursor ")
        .expect("it says how to go on");
    let cursor = after.split([',', ' ']).next().unwrap();
    assert_eq!(titles(&["--limit", "2", "--cursor", cursor]), all[2..]);
    let _ = sandbox
        .run(&["list", "--cursor", "yesterday"])
        .expect_code(1)
        .expect_stderr(&["yesterday"]);
    let _ = sandbox
        .run(&["list", "--search", "boat"])
        .expect_code(0)
        .expect_stderr(&["no conversation is like that"]);
}

/// A model whose first answer waits at a gate; later ones repeat what was said.
fn slow_model(gate: &Gate) -> FakeModel {
    let gate = gate.clone();
    FakeModel::start(move |asked| match asked.last_user().as_str() {
        "first" => Answer::stream()
            .say("thinking, ")
            .wait(&gate)
            .say("done")
            .end(),
        other => Answer::text(&format!("you said: {other}")),
    })
}

#[test]
fn a_prompt_behind_a_running_turn_waits_and_shows_its_own_turn_only() {
    let gate = Gate::new();
    let mut model = slow_model(&gate);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut first = sandbox.start(&["exec", "first"]);
    first.wait_for_stdout("thinking, ");
    let running = json_lines(
        &sandbox
            .run(&["list", "--json", "--status", "running"])
            .expect_code(0)
            .stdout,
    );
    let [running] = &running[..] else {
        panic!("{running:?}")
    };
    let id = running["id"].as_str().unwrap();

    let mut second = sandbox.start(&["exec", "--resume", id, "second"]);
    second.wait_for_stderr("a turn runs in this conversation already");
    let sent = sandbox.run(&["send", id, "third"]).expect_code(0);
    let _ = sent.expect_stderr(&["openvaala show", id]);
    gate.open();
    assert_eq!(first.finish().expect_code(0).stdout, "thinking, done\n");
    assert_eq!(second.finish().expect_code(0).stdout, "you said: second\n");
    let followed = sandbox
        .run(&["send", "--follow", id, "fourth"])
        .expect_code(0);
    assert_eq!(followed.stdout, "you said: fourth\n");
    let spoken = history(&model.requests().last().unwrap().body);
    let mut users: Vec<&String> = spoken.iter().step_by(2).collect();
    // `second` and `third` were sent at the same time.
    users[1..3].sort();
    assert_eq!(users, ["first", "second", "third", "fourth"]);
    model.expect_sound_requests();
}

#[test]
fn an_interrupt_from_elsewhere_ends_the_turn_and_tells_who_waits_behind_it() {
    let gate = Gate::new();
    let model = slow_model(&gate);
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut first = sandbox.start(&["exec", "--json", "first"]);
    first.wait_for_stdout("thinking, ");
    let [folder] = sandbox.conversations().try_into().unwrap();
    let id = folder.file_name().unwrap().to_str().unwrap();
    let mut second = sandbox.start(&["exec", "--json", "--resume", id, "second"]);
    second.wait_for_stdout(r#""preview":"second""#);
    let _ = sandbox
        .run(&["interrupt", id])
        .expect_code(0)
        .expect_stderr(&["interrupted turn"]);
    let _ = first.finish().expect_code(130);
    let _ = second
        .finish()
        .expect_code(1)
        .expect_stderr(&["the prompt waits", "openvaala send"]);
    let _ = sandbox
        .run(&["interrupt", id])
        .expect_code(0)
        .expect_stderr(&["no turn runs"]);
    // The next thing that is sent takes it along.
    let followed = sandbox
        .run(&["send", "--follow", id, "third"])
        .expect_code(0);
    assert_eq!(followed.stdout, "you said: third\n");
    let said: Vec<Value> = of_kind(&logged_items(&folder), "user_message")
        .iter()
        .map(|item| item["body"]["content"][0]["text"].clone())
        .collect();
    assert_eq!(said, [json!("first"), json!("second"), json!("third")]);
}

#[test]
fn a_steering_input_is_read_by_the_turn_that_runs() {
    let gate = Gate::new();
    let behind = gate.clone();
    let mut model = FakeModel::start(move |asked| match asked.last_user().as_str() {
        "first" => Answer::stream()
            .say("I look.")
            .wait(&behind)
            .call("call_1", "bash", r#"{"command":"true"}"#)
            .end(),
        other => Answer::text(&format!("as you said: {other}")),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let mut exec = sandbox.start(&["exec", "first"]);
    exec.wait_for_stdout("I look.");
    let [folder] = sandbox.conversations().try_into().unwrap();
    let id = folder.file_name().unwrap().to_str().unwrap();
    let _ = sandbox
        .run(&["send", id, "--steer", "leave the tests alone"])
        .expect_code(0);
    gate.open();
    let outcome = exec.finish().expect_code(0);
    assert_eq!(
        outcome.stdout,
        "I look.\nas you said: leave the tests alone\n"
    );
    assert_eq!(model.requests().len(), 2);
    model.expect_sound_requests();
}

#[test]
fn completions_need_no_server_and_no_home() {
    let mut sandbox = Sandbox::new();
    sandbox.unset("HOME");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.run(&["completions", shell]).expect_code(0).stdout;
        assert!(script.contains("output-schema"), "{shell}: {script}");
    }
    assert!(!sandbox.data().exists());
}

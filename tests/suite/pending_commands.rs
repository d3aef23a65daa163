//! What waits in a conversation, from the command line.

use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::wait;
use pretty_assertions::assert_eq;

use crate::support::{conversations_on_disk, json_lines};

/// The end of the id of each input that waits, its text, and whether the running turn reads it.
fn waiting(sandbox: &Sandbox, conversation: &str) -> Vec<(String, String, bool)> {
    let listed = sandbox.run(&["pending", "list", conversation, "--json"]);
    let inputs = json_lines(&listed.expect_code(0).stdout).into_iter();
    inputs
        .map(|input| {
            let text = |name: &str| input[name].as_str().unwrap().to_owned();
            let steer = input["is_steer"].as_bool().unwrap();
            (text("item_id")[24..].to_owned(), text("preview"), steer)
        })
        .collect()
}

#[test]
fn what_waits_is_listed_changed_and_let_go_from_the_command_line() {
    let mut model = FakeModel::start(|asked| match asked.last_user().as_str() {
        "begin" => Answer::silence(),
        said => Answer::text(&format!("heard: {said}")),
    });
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    let [conversation] = conversations_on_disk(&sandbox).try_into().unwrap();
    let id = &conversation.to_string();
    let run = |command: &[&str]| sandbox.run(&[&["pending"], command].concat());
    let texts = || -> Vec<String> {
        let inputs = waiting(&sandbox, id).into_iter();
        inputs.map(|(_, text, _)| text).collect()
    };

    let _ = run(&["list", id])
        .expect_code(0)
        .expect_stderr(&["nothing waits"]);
    for text in ["begin", "one", "two", "three"] {
        let _ = sandbox.run(&["send", id, text]).expect_code(0);
    }
    let inputs = waiting(&sandbox, id);
    let [(one, ..), (two, ..), (three, ..)] = inputs.as_slice() else {
        panic!("{inputs:?}");
    };
    let _ = run(&["edit", id, one, "one, changed"]).expect_code(0);
    let _ = run(&["move", id, three, "1"]).expect_code(0);
    assert_eq!(texts(), ["three", "one, changed", "two"]);
    // A place behind the end is the end.
    let moved = run(&["move", id, three, "9", "--json"]).expect_code(0);
    let moved = json_lines(&moved.stdout);
    assert_eq!(moved.len(), 3);
    assert_eq!(moved[2]["preview"], "three");
    let _ = run(&["withdraw", id, two]).expect_code(0);
    let _ = run(&["withdraw", id, two])
        .expect_code(1)
        .expect_stderr(&["no input that waits has an id like"]);

    let steers = || {
        waiting(&sandbox, id)
            .into_iter()
            .map(|(_, text, steer)| (text, steer))
            .collect::<Vec<_>>()
    };
    let _ = run(&["steer", id, three])
        .expect_code(0)
        .expect_stderr(&["the running turn reads it"]);
    assert!(steers().contains(&("three".to_owned(), true)));
    let _ = run(&["steer", id, three, "--undo"]).expect_code(0);
    let expected = [
        ("one, changed".to_owned(), false),
        ("three".to_owned(), false),
    ];
    let mut now = steers();
    now.sort();
    assert_eq!(now, expected);

    let _ = sandbox.run(&["interrupt", id]).expect_code(0);
    let held = run(&["list", id])
        .expect_code(0)
        .expect_stderr(&["they are held"]);
    assert_eq!(held.stdout.lines().count(), 2, "{held:?}");
    let _ = run(&["steer", id, one])
        .expect_code(0)
        .expect_stderr(&["no turn runs"]);
    let order = texts();
    let resumed = run(&["resume", id, "--json"]).expect_code(0);
    assert_eq!(resumed.stdout, "{\"resumed\":true}\n");
    let heard = wait::until("both turns", || {
        let requests = model.requests().iter().rev().take(2).rev();
        let said = requests.map(|seen| {
            let messages = seen.body["messages"].as_array().unwrap();
            messages.last().unwrap()["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        let said: Vec<String> = said.collect();
        if said == order {
            Ok(said)
        } else {
            Err(format!("{said:?}"))
        }
    });
    assert_eq!(heard.len(), 2);
    let _ = run(&["resume", id])
        .expect_code(0)
        .expect_stderr(&["nothing is held"]);
    model.expect_sound_requests();
}

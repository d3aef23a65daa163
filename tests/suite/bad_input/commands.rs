//! What a person may get wrong at the command line and in the configuration.

use std::fs;

use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::server::Discovery;
use pretty_assertions::assert_eq;

#[test]
fn p_01_a_second_owner_of_the_data_directory_is_told_who_the_first_is() {
    let sandbox = Sandbox::new();
    let server = sandbox.serve();
    let (pid, address) = (server.pid().to_string(), &server.discovery.address);
    let second = sandbox.run(&["serve"]);
    assert_ne!(second.code, Some(0));
    let _ = second.expect_stderr(&[&pid, address, "openvaala serve stop"]);
    // The first one goes on.
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    assert_eq!(sandbox.servers().len(), 1);
    assert_eq!(Discovery::all(sandbox.state()).len(), 1);
}

#[test]
fn p_06_a_data_directory_is_the_same_by_any_path() {
    let mut sandbox = Sandbox::new();
    let server = sandbox.serve();
    let link = sandbox.root().join("link");
    std::os::unix::fs::symlink(sandbox.data(), &link).unwrap();
    let state = sandbox.root().join("other-state");
    sandbox.set("OPENVAALA_DATA_DIR", &link);
    sandbox.set("OPENVAALA_STATE_DIR", &state);
    let second = sandbox.run(&["serve"]);
    assert_ne!(second.code, Some(0));
    let _ = second.expect_stderr(&[&server.pid().to_string()]);
}

#[test]
fn every_broken_file_of_the_configuration_is_named_with_line_and_column() {
    let sandbox = Sandbox::new();
    sandbox.write_provider(
        "first",
        "type: openai_chat\nbase_url: http://127.0.0.1:9/v1\ndefault_modell: m\n",
    );
    sandbox.write_provider(
        "second",
        "type: openai_chat\nbase_url: [1, 2\ndefault_model: m\n",
    );
    sandbox.write_provider(
        "third",
        "type: openai_chat\nbase_url: http://127.0.0.1:9/v1\ndefault_model: m\n",
    );
    let check = sandbox.run(&["config", "check"]).expect_code(1);
    let said = format!("{}{}", check.stdout, check.stderr);
    for text in ["first.yaml:3:1", "default_modell", "second.yaml:"] {
        assert!(said.contains(text), "{text:?} is not in:\n{said}");
    }
    assert!(!said.contains("third.yaml:"), "{said}");
    // Nothing starts with half a configuration.
    let _ = sandbox
        .run(&["exec", "hello"])
        .expect_code(1)
        .expect_stderr(&["first.yaml:3:1"]);
    assert!(sandbox.servers().is_empty());
    assert!(sandbox.conversations().is_empty());

    fs::remove_file(sandbox.config().join("providers/first.yaml")).unwrap();
    fs::remove_file(sandbox.config().join("providers/second.yaml")).unwrap();
    let _ = sandbox.run(&["config", "check"]).expect_code(0);
}

#[test]
fn p_25_a_running_server_keeps_its_configuration_when_the_new_one_is_broken() {
    let mut model = FakeModel::start(|_| Answer::text("the old one answers"));
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    sandbox.write_provider("broken", "type: nonsense\n");
    let added = [
        "provider",
        "add",
        "more",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
    ];
    let refused = sandbox.run(&added);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let _ = refused.expect_stderr(&["broken.yaml:1"]);
    assert!(!sandbox.config().join("providers/more.yaml").exists());
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(0);
    assert_eq!(outcome.stdout.trim_end(), "the old one answers");
    model.expect_sound_requests();
}

#[test]
fn a_provider_that_is_added_answers_at_once() {
    let mut model = FakeModel::start(|_| Answer::text("the new one answers"));
    let mut sandbox = Sandbox::new();
    sandbox.set("MY_MODEL_ACCESS", "key-from-the-environment");
    let demo = sandbox.run(&["exec", "hello"]).expect_code(0);
    assert!(
        demo.stderr.contains("openvaala provider add"),
        "{}",
        demo.stderr
    );
    let url = model.base_url();
    let add = [
        "provider",
        "add",
        "mine",
        "--base-url",
        &url,
        "--model",
        "fake-1",
    ];
    let _ = sandbox
        .run(&[&add[..], &["--api-key-env", "MY_MODEL_ACCESS", "--default"]].concat())
        .expect_code(0);
    let outcome = sandbox.run(&["exec", "hello"]).expect_code(0);
    assert_eq!(outcome.stdout.trim_end(), "the new one answers");
    let tested = sandbox.run(&["provider", "test", "mine"]).expect_code(0);
    assert!(tested.stdout.contains("mine"), "{tested:?}");
    let listed = sandbox.run(&["provider", "list"]).expect_code(0).stdout;
    for text in ["mine", "fake-1", "demo"] {
        assert!(listed.contains(text), "{text} is not in:\n{listed}");
    }
    let keys = model
        .requests()
        .iter()
        .map(|seen| seen.authorization.clone());
    assert!(keys.eq([(); 2].map(|()| Some("Bearer key-from-the-environment".to_owned()))));
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    let sandbox = Sandbox::new();
    for (arguments, text) in [
        (&["exec"][..], "PROMPT"),
        (&["exce", "hello"], "exec"),
        (&["show"], "ID"),
        (&["exec", "--modell", "a/b", "hello"], "--model"),
        (&["provider", "add", "x"], "--base-url"),
    ] {
        let outcome = sandbox.run(arguments).expect_code(2);
        assert!(
            outcome.stderr.to_lowercase().contains(&text.to_lowercase()),
            "{outcome:?}"
        );
    }
    assert!(
        sandbox.servers().is_empty(),
        "a usage error starts no server"
    );
}

#[test]
fn what_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    let id = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
    let _ = sandbox
        .run(&["show", id])
        .expect_code(1)
        .expect_stderr(&[id]);
    let unknown = sandbox.run(&["exec", "--model", "nobody/m", "hello"]);
    assert_ne!(unknown.code, Some(0));
    // The known ones are named, too.
    let _ = unknown.expect_stderr(&["nobody", "demo"]);
    let folder = sandbox.root().join("no-such-folder");
    let folder = folder.to_str().unwrap();
    let nowhere = sandbox.run(&["exec", "--cwd", folder, "hello"]);
    assert_ne!(nowhere.code, Some(0));
    let _ = nowhere.expect_stderr(&["no-such-folder"]);
    assert!(sandbox.conversations().is_empty());
}

#[test]
fn p_09_a_discovery_file_that_leads_to_a_stranger_is_passed_over() {
    let model = FakeModel::start(|_| Answer::text("never asked"));
    let sandbox = Sandbox::new();
    sandbox.serve().kill();
    let [file] = fs::read_dir(sandbox.state())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let [stale] = Discovery::all(sandbox.state()).try_into().unwrap();
    let stranger = model.base_url();
    let stranger = stranger
        .trim_start_matches("http://")
        .trim_end_matches("/v1");
    // Written in place, so that its mode stays as it was.
    fs::write(&file, text.replace(&stale.address, stranger)).unwrap();
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    let [fresh] = Discovery::all(sandbox.state()).try_into().unwrap();
    assert_ne!(fresh.address, stranger);
}

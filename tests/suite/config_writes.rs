//! The server's own writes to its configuration, killed anywhere.

use std::fs;
use std::hint;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use openvaala_tests::dice::Dice;
use openvaala_tests::notice::is_long;
use openvaala_tests::raw_client::{RawClient, RawMessage};
use openvaala_tests::sandbox::Sandbox;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const MAIN: &str = "# by hand\nlisten: 127.0.0.1:0\n";

/// How many servers are killed.
fn rounds() -> u32 {
    if is_long() { 1_000 } else { 40 }
}

/// What the directory holds, by name.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn p_26_a_server_that_is_killed_while_it_writes_its_configuration_leaves_the_old_or_the_new_one() {
    let sandbox = Sandbox::new();
    sandbox.write_config(MAIN);
    sandbox.write_provider(
        "acme",
        "type: openai_chat\nbase_url: http://127.0.0.1:9/v1\ndefault_model: m0\n",
    );
    let mut dice = Dice::from_environment("config_writes");
    let mut written = 0;
    for round in 0..rounds() {
        let server = sandbox.serve();
        let (address, token) = (server.discovery.address.clone(), server.discovery.token());
        let (acknowledged, told) = mpsc::channel();
        let writer = thread::spawn(move || {
            let mut client = RawClient::initialized(&address, &token);
            for number in 0.. {
                let model = format!("m{round}-{number}");
                let (method, params) = if number % 2 == 0 {
                    let edit = json!({ "name": "acme", "default_model": model });
                    ("provider/edit", edit)
                } else {
                    let default = json!({ "provider": "acme", "model": model });
                    ("model/default/set", json!({ "model": default }))
                };
                if !asked(&mut client, method, &params) {
                    return;
                }
                // Nobody listens any more once the server is killed.
                let _ = acknowledged.send(());
            }
        });
        for _ in 0..=dice.below(4) {
            told.recv().unwrap();
        }
        // Anywhere within the next write.
        for _ in 0..dice.below(1_000_000) {
            hint::spin_loop();
        }
        server.kill();
        writer.join().unwrap();
        written += told.iter().count();
        let checked = sandbox.run(&["config", "check"]).expect_code(0);
        assert!(checked.stdout.contains("acme"), "{checked:?}");
        let main = fs::read_to_string(sandbox.config().join("openvaala.yaml")).unwrap();
        assert!(main.starts_with(MAIN), "{main}");
    }
    println!("{} kills, {written} more writes acknowledged", rounds());
    // One more write of each file finds nothing in its way, and clears away what was left.
    let _server = sandbox.serve();
    let edited = sandbox.run(&["provider", "edit", "acme", "--model", "last"]);
    let _ = edited.expect_code(0);
    let set = sandbox.run(&["provider", "default", "acme/last"]);
    let _ = set.expect_code(0);
    let left = [
        names(sandbox.config()),
        names(&sandbox.config().join("providers")),
    ];
    assert_eq!(
        left,
        [vec!["openvaala.yaml", "providers"], vec!["acme.yaml"]]
    );
}

/// Sends a request and waits for its answer; `false` if the server ends before.
fn asked(client: &mut RawClient, method: &str, params: &Value) -> bool {
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    if client
        .send_frame(0x81, request.to_string().as_bytes())
        .is_err()
    {
        return false;
    }
    loop {
        match client.read_message() {
            RawMessage::Text(text) => {
                let answer: Value = serde_json::from_str(&text).unwrap();
                if answer.get("id").is_some() {
                    assert!(answer["result"].is_object(), "{answer}");
                    return true;
                }
            }
            RawMessage::Other(_) => {}
            RawMessage::Close(_) | RawMessage::Ended => return false,
        }
    }
}

//! The checker must find each kind of damage: one that finds nothing proves nothing.

use std::path::PathBuf;

use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::item::Item;
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::*;

const ID: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
const SESSION: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8e";
const INPUT: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8f";
const CALL: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c90";
const RESULT: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c91";

struct World {
    data: TempDir,
    items: Vec<String>,
    states: Vec<String>,
    journal: Journal,
}

fn item(id: &str, kind: &str, body: &str) -> String {
    format!(
        r#"{{"id":"{id}","kind":"{kind}","turn":null,"pos":1,"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z","body":{body}}}"#
    )
}

fn envelope(seq: u64, data: &str) -> String {
    let crc = crc32c::crc32c(format!("{seq},5,{data}").as_bytes());
    format!("{{\"seq\":{seq},\"time\":5,\"crc\":\"{crc:08x}\",\"data\":{data}}}\n")
}

/// A directory that is sound, and the journal of a client that saw all of it.
fn sound() -> World {
    let items = vec![
        item(INPUT, "user_message", r#"{"content":[]}"#),
        item(
            CALL,
            "tool_call",
            r#"{"call_id":"1","tool":"bash","arguments":"{}"}"#,
        ),
        item(
            RESULT,
            "tool_result",
            &format!(r#"{{"call":"{CALL}","call_id":"1"}}"#),
        ),
    ];
    let states = vec![
        format!(r#"{{"format":1,"kind":"turn","id":"t","state":{{"status":"running"}}}}"#),
        format!(r#"{{"format":1,"kind":"turn","id":"t","state":{{"status":"completed"}}}}"#),
    ];
    let mut journal = Journal::default();
    let conversation = ID.parse().unwrap();
    let input: ItemId = INPUT.parse().unwrap();
    journal.submit(conversation, input);
    journal.accept(conversation, input);
    let session_id: SessionId = SESSION.parse().unwrap();
    for (seq, text) in (1..).zip(&items) {
        let item = Item::from_raw(RawValue::from_string(text.clone()).unwrap()).unwrap();
        journal.note(
            conversation,
            &Entry::Item {
                seq,
                session_id,
                item,
            },
        );
    }
    World {
        data: TempDir::new().unwrap(),
        items,
        states,
        journal,
    }
}

impl World {
    fn path(&self, stream: &str) -> PathBuf {
        self.data
            .path()
            .join("conversations")
            .join(ID)
            .join(format!("{stream}.jsonl"))
    }

    fn write(&self) {
        for (stream, entries) in [("metadata", &self.states), (SESSION, &self.items)] {
            let mut text = String::new();
            for (seq, data) in (1..).zip(entries) {
                text.push_str(&envelope(seq, data));
            }
            fs::create_dir_all(self.path(stream).parent().unwrap()).unwrap();
            fs::write(self.path(stream), text).unwrap();
        }
    }

    #[track_caller]
    fn expect(&self, broken: &str) {
        let found = violations(self.data.path(), &self.journal, When::Settled);
        assert!(
            found.iter().any(|line| line.contains(broken)),
            "{broken}: {found:#?}"
        );
    }
}

#[test]
fn a_sound_directory_has_no_violation() {
    let world = sound();
    world.write();
    assert_eq!(
        violations(world.data.path(), &world.journal, When::Settled),
        Vec::<String>::new()
    );
}

#[test]
fn each_kind_of_damage_is_found() {
    let mut lost = sound();
    lost.items.pop();
    lost.write();
    lost.expect("I-1: item 3 was told and is not on disk");
    lost.expect("I-8: the call");

    let mut changed = sound();
    changed.items[1] = changed.items[1].replace("bash", "dash");
    changed.write();
    changed.expect("I-1: item 2 is");

    let mut running = sound();
    running.states.pop();
    running.write();
    running.expect("I-7: turn t is still running");

    let mut phantom = sound();
    phantom
        .items
        .push(item(SESSION, "user_message", r#"{"content":[]}"#));
    phantom.write();
    phantom.expect("I-3: the input");

    let mut twice = sound();
    twice.items.push(twice.items[2].clone());
    twice.write();
    twice.expect("I-8: the call");

    let gone = sound();
    gone.expect("I-1: conversation");
}

#[test]
fn damaged_bytes_are_found() {
    let change = |edit: &dyn Fn(String) -> String| {
        let world = sound();
        world.write();
        let path = world.path(SESSION);
        let text = edit(fs::read_to_string(&path).unwrap());
        fs::write(&path, text).unwrap();
        world
    };
    change(&|text| text.replace("user_message", "user_massage")).expect("its checksum is");
    change(&|text| text + "{\"seq\":4").expect("I-4");
    change(&|text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(0, 1);
        lines.join("\n") + "\n"
    })
    .expect("I-2");
}

#[test]
fn what_a_power_cut_leaves_of_an_unacknowledged_append_is_allowed_and_nothing_else() {
    let mut world = sound();
    world.write();
    let path = world.path("metadata");
    let whole = fs::read_to_string(&path).unwrap();
    let line = |seq: u64| envelope(seq, &world.states[1]);
    // The end of an append whose beginning was lost, a lost end, numbers that are missing, numbers that go back.
    let tails = [
        (format!("\0\0\0\n{}", line(5)), None),
        ("\0\0\0\n".to_owned(), None),
        (line(5), Some("I-2")),
        (format!("\0\0\0\n{}", line(2)), Some("I-2")),
    ];
    for (tail, expected) in tails {
        fs::write(&path, format!("{whole}{tail}")).unwrap();
        world.journal.power_was_cut = true;
        match expected {
            Some(what) => world.expect(what),
            None => assert_eq!(
                violations(world.data.path(), &world.journal, When::Settled),
                Vec::<String>::new(),
                "{tail:?}"
            ),
        }
        world.journal.power_was_cut = false;
        world.expect(if tail.starts_with('\0') { "I-4" } else { "I-2" });
    }
}

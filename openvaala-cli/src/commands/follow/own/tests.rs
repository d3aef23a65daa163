//! An input that waits behind another turn sees nothing of that one.

use openvaala_protocol::event::PartialItem;
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::*;

const AT: &str = "2026-12-02T04:22:41.123Z";

fn id(n: u128) -> String {
    Uuid::from_u128(n).to_string()
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn turn(n: u128, input: u128) -> Entry {
    let (id, input, session) = (id(n), id(input), id(5));
    read(&format!(
        r#"{{"turn":{{"seq":1,"turn":{{"id":"{id}","session_id":"{session}","status":"running","failure":null,
        "inputs":["{input}"],"model":{{"provider":"p","model":"m"}},"executors":[],"steps":0,
        "usage":{{"input_tokens":null,"cached_input_tokens":null,"output_tokens":null,"reasoning_tokens":null}},
        "started_at":"{AT}","ended_at":null,"last_seq":1}}}}}}"#
    ))
}

fn message(turn: Option<u128>, text: &str) -> Entry {
    let turn = turn.map_or_else(|| "null".to_owned(), |turn| format!("{:?}", id(turn)));
    let (item, session) = (id(9), id(5));
    read(&format!(
        r#"{{"item":{{"seq":2,"session_id":"{session}","item":{{"id":"{item}","kind":"assistant_message","turn":{turn},
        "pos":2,"started_at":"{AT}","ended_at":"{AT}","body":{{"text":"{text}"}}}}}}}}"#
    ))
}

fn started(turn: u128) -> Live {
    let (turn, session, item) = (id(turn), id(5), id(9));
    Live::Started(read::<PartialItem>(&format!(
        r#"{{"session_id":"{session}","turn_id":"{turn}","item_id":"{item}","kind":"assistant_message","pos":2,
        "started_at":"{AT}","label":null,"offset":0,"text":""}}"#
    )))
}

fn session(held: bool, waiting: u128) -> Session {
    let (id, input) = (id(5), id(waiting));
    read(&format!(
        r#"{{"id":"{id}","conversation_id":"{id}","parent":null,"model":{{"provider":"p","model":"m"}},"status":"idle",
        "active_turn":null,"pending":[{{"item_id":"{input}","preview":"x","image_count":0,"is_steer":false}}],"held":{held},
        "usage":{{"input_tokens":null,"cached_input_tokens":null,"output_tokens":null,"reasoning_tokens":null}},
        "created_at":"{AT}","updated_at":"{AT}"}}"#
    ))
}

#[test]
fn only_the_turn_that_has_taken_the_input_is_its_own() {
    let mut own = Own::new(ItemId::from_uuid(Uuid::from_u128(1)));
    let of_other = [turn(7, 99), message(Some(7), "for somebody else")];
    assert_eq!(of_other.map(|entry| own.has(&entry)), [false, false]);
    assert!(!own.has_live(&started(7)));
    assert_eq!((own.turn, own.answer.clone()), (None, None));

    assert!(!own.has(&message(Some(8), "before the turn is known")));
    assert!(own.has(&turn(8, 1)));
    assert!(own.has_live(&started(8)));
    assert!(!own.has_live(&started(7)));
    let entries = [message(Some(8), "I look"), message(Some(8), "the answer")];
    assert_eq!(entries.map(|entry| own.has(&entry)), [true, true]);
    assert!(!own.has(&message(Some(7), "a late word")));
    assert_eq!(own.answer.as_deref(), Some("the answer"));
}

#[test]
fn an_input_is_held_only_if_it_waits_in_a_session_that_holds() {
    let own = Own::new(ItemId::from_uuid(Uuid::from_u128(1)));
    let held = [session(true, 1), session(false, 1), session(true, 2)];
    assert_eq!(
        held.map(|session| own.is_held(&session)),
        [true, false, false]
    );
}

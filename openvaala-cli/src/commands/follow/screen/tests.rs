//! What is shown of a turn, for people and as JSON.

use insta::assert_snapshot;
use openvaala_protocol::event::Delta;
use openvaala_protocol::id::{ConversationId, TurnId};
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::*;

const AT: &str = "2026-12-02T04:22:41.123Z";

fn uuid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn session() -> SessionId {
    SessionId::from_uuid(uuid(0x5))
}

fn out(text: &str) -> Shown {
    Shown::Out(text.to_owned())
}

fn note(text: &str) -> Shown {
    Shown::Note(text.to_owned())
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn item(seq: u64, id: u128, kind: &str, body: &str) -> Entry {
    let item = format!(
        r#"{{"id":"{}","kind":"{kind}","turn":null,"pos":{seq},"started_at":"{AT}","ended_at":"{AT}","body":{body}}}"#,
        uuid(id)
    );
    Entry::Item {
        seq,
        session_id: session(),
        item: read(&item),
    }
}

fn message(seq: u64, id: u128, text: &str) -> Entry {
    let text = serde_json::to_string(text).unwrap();
    item(
        seq,
        id,
        "assistant_message",
        &format!(r#"{{"text":{text}}}"#),
    )
}

fn growing(id: u128, kind: ItemKind, offset: u64, text: &str) -> PartialItem {
    PartialItem {
        session_id: session(),
        turn_id: TurnId::from_uuid(uuid(0x7)),
        item_id: ItemId::from_uuid(uuid(id)),
        kind,
        pos: 1,
        started_at: Timestamp::from_millis(0),
        label: None,
        offset,
        text: text.to_owned(),
    }
}

fn started(id: u128) -> Live {
    Live::Started(growing(id, ItemKind::AssistantMessage, 0, ""))
}

fn delta(id: u128, offset: u64, text: &str) -> Live {
    let (session_id, item_id) = (session(), ItemId::from_uuid(uuid(id)));
    Live::Delta(Delta {
        session_id,
        item_id,
        offset,
        text: text.to_owned(),
    })
}

fn conversation() -> Conversation {
    read(&format!(
        r#"{{"id":"{}","title":null,"status":"idle","root_session":"{}","executors":[],"created_at":"{AT}","updated_at":"{AT}"}}"#,
        ConversationId::from_uuid(uuid(0xc)),
        session(),
    ))
}

fn turn(status: &str, failure: &str) -> Turn {
    read(&format!(
        r#"{{"id":"{}","session_id":"{}","status":"{status}","failure":{failure},"inputs":[],
        "model":{{"provider":"demo","model":"demo"}},"executors":[],"steps":1,"usage":{{}},
        "started_at":"{AT}","ended_at":"{AT}","last_seq":2}}"#,
        uuid(0x7),
        session(),
    ))
}

fn all(screen: &mut Screen, lives: &[Live]) -> Vec<Shown> {
    lives
        .iter()
        .flat_map(|live| screen.live(live).unwrap())
        .collect()
}

#[test]
fn text_is_shown_as_it_comes_and_once_only() {
    let mut screen = Screen::new(Mode::Text);
    let lives = [started(1), delta(1, 0, "I look "), delta(1, 7, "around")];
    assert_eq!(all(&mut screen, &lives), [out("I look "), out("around")]);
    assert_eq!(
        screen.entry(&message(1, 1, "I look around")).unwrap(),
        [out("\n")]
    );
    assert_eq!(screen.end(), []);
}

#[test]
fn what_was_not_seen_live_is_shown_when_it_is_final() {
    let mut screen = Screen::new(Mode::Text);
    assert_eq!(
        all(&mut screen, &[started(1), delta(1, 0, "I ")]),
        [out("I ")]
    );
    assert_eq!(
        screen.entry(&message(1, 1, "I look\n")).unwrap(),
        [out("look\n")]
    );
    assert_eq!(
        screen.entry(&message(2, 2, "whole")).unwrap(),
        [out("whole"), out("\n")]
    );
}

#[test]
fn live_text_of_other_kinds_is_no_answer() {
    let mut screen = Screen::new(Mode::Text);
    let output = Live::Started(growing(1, ItemKind::ToolResult, 0, "secret"));
    assert_eq!(all(&mut screen, &[output, delta(1, 6, "s")]), []);
}

#[test]
fn a_tool_is_noted_beside_the_answer() {
    let mut screen = Screen::new(Mode::Text);
    let _ = all(&mut screen, &[started(1), delta(1, 0, "I look")]);
    let call = r#"{"call_id":"c","tool":"bash","arguments":"{\"command\":\"ls\"}"}"#;
    let shown = screen.entry(&item(1, 2, "tool_call", call)).unwrap();
    assert_eq!(shown, [out("\n"), note("→ bash ls")]);
    let result = format!(
        r#"{{"call":"{}","call_id":"c","status":"ok","exit_code":0,"content":[{{"type":"text","text":"a\nb"}}]}}"#,
        uuid(2)
    );
    let shown = screen.entry(&item(2, 3, "tool_result", &result)).unwrap();
    assert_eq!(shown, [note("← bash: exit 0, 2 lines")]);
}

#[test]
fn s_32_a_terminal_is_never_told_anything_by_a_model() {
    let mut screen = Screen::new(Mode::Text);
    let lives = [started(1), delta(1, 0, "a\u{1b}]52;c;x\u{7}b\u{9b}2J\r\n")];
    assert_eq!(all(&mut screen, &lives), [out("a]52;c;xb2J\n")]);
    let shown = screen.entry(&message(1, 2, "\u{1b}[2J")).unwrap();
    assert_eq!(shown, [out("[2J"), out("\n")]);
}

#[test]
fn a_broken_off_answer_is_told_and_the_next_one_begins_anew() {
    let mut screen = Screen::new(Mode::Text);
    let (session_id, item_id) = (session(), ItemId::from_uuid(uuid(1)));
    let lives = [
        started(1),
        delta(1, 0, "I lo"),
        Live::Dropped {
            session_id,
            item_id,
        },
        started(2),
        delta(2, 0, "I look"),
    ];
    let shown = [
        out("I lo"),
        out("\n"),
        note("[the answer was broken off]"),
        out("I look"),
    ];
    assert_eq!(all(&mut screen, &lives), shown);
}

#[test]
fn p_12_after_a_lost_connection_nothing_is_shown_twice_and_nothing_is_missing() {
    let mut screen = Screen::new(Mode::Text);
    assert_eq!(
        screen.entry(&message(4, 1, "first")).unwrap(),
        [out("first"), out("\n")]
    );
    let _ = all(&mut screen, &[started(2), delta(2, 0, "I ")]);
    // The snapshot has all of it again, and more.
    assert_eq!(screen.entry(&message(4, 1, "first")).unwrap(), []);
    let partial = growing(2, ItemKind::AssistantMessage, 0, "I look");
    assert_eq!(screen.live(&Live::Started(partial)).unwrap(), [out("look")]);
    assert_eq!(
        all(&mut screen, &[delta(2, 6, " around")]),
        [out(" around")]
    );
    assert_eq!(
        screen.entry(&message(5, 2, "I look around")).unwrap(),
        [out("\n")]
    );
}

#[test]
fn only_the_end_of_a_long_text_may_come_back() {
    let mut screen = Screen::new(Mode::Text);
    let _ = all(&mut screen, &[started(1), delta(1, 0, "0123")]);
    let partial = growing(1, ItemKind::AssistantMessage, 8, "89");
    assert_eq!(screen.live(&Live::Started(partial)).unwrap(), [out("89")]);
    assert_eq!(all(&mut screen, &[delta(1, 10, "ab")]), [out("ab")]);
}

#[test]
fn a_failed_turn_says_why() {
    let mut screen = Screen::new(Mode::Text);
    let failed = turn(
        "failed",
        r#"{"kind":"model","message":"401: the key is wrong"}"#,
    );
    let shown = [note("error: 401: the key is wrong")];
    assert_eq!(screen.turn_end(&failed).unwrap(), shown);
    assert_eq!(screen.turn_end(&turn("completed", "null")).unwrap(), []);
}

#[test]
fn json_is_one_event_a_line_with_items_as_they_are_stored() {
    let mut screen = Screen::new(Mode::Json);
    let tomorrow = item(
        1,
        1,
        "a_kind_of_tomorrow",
        r#"{"z":1,"a":12345678901234567890123}"#,
    );
    let mut shown = screen.begin(&conversation()).unwrap();
    shown.extend(screen.live(&started(1)).unwrap());
    shown.extend(screen.live(&delta(1, 0, "I\nlook")).unwrap());
    shown.extend(screen.entry(&tomorrow).unwrap());
    shown.extend(screen.entry(&tomorrow).unwrap());
    shown.extend(screen.turn_end(&turn("completed", "null")).unwrap());
    shown.extend(screen.end());
    let lines: String = shown
        .into_iter()
        .map(|piece| match piece {
            Shown::Out(line) => line,
            Shown::Note(text) => panic!("a note in JSON: {text}"),
        })
        .collect();
    assert_snapshot!(lines);
}

#[test]
fn where_only_the_answer_is_wanted_nothing_else_reaches_standard_output() {
    let mut screen = Screen::new(Mode::Answer);
    assert_eq!(screen.live(&started(1)).unwrap(), []);
    assert_eq!(screen.live(&delta(1, 0, "I look")).unwrap(), []);
    assert_eq!(screen.entry(&message(2, 1, "I look")).unwrap(), []);
    let call = item(
        3,
        2,
        "tool_call",
        r#"{"call_id":"c","tool":"bash","arguments":"{}"}"#,
    );
    assert_eq!(screen.entry(&call).unwrap(), [note("→ bash")]);
    assert_eq!(screen.entry(&message(4, 3, "{}")).unwrap(), []);
    assert_eq!(screen.answer("{}"), [out("{}\n")]);
    assert_eq!(screen.end(), []);
    assert_eq!(Screen::new(Mode::Json).answer("{}"), []);
}

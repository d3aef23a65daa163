//! `turn/…`, `conversation/open` and `conversation/close`.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Scene;
use crate::model::Step::{Call, Say, Stall};

/// An id that is in order and names nothing.
const NOBODY: &str = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";

fn ids(result: &Value) -> Vec<&str> {
    let turns = result["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|turn| turn["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn turns_are_given_one_by_one_and_in_pages_from_either_end() {
    let mut scene = Scene::new([Say("one"), Say("two"), Say("three")]).await;
    let mut turns = Vec::new();
    for text in ["first", "second", "third"] {
        let turn = scene.turn(text).await;
        let got = scene
            .ask("turn/get", json!({ "turn_id": turn["id"] }))
            .await;
        assert_eq!(got["turn"], turn);
        turns.push(turn["id"].as_str().unwrap().to_owned());
    }
    let newest = scene.ask("turn/list", json!({ "limit": 2 })).await;
    assert_eq!(ids(&newest), [&turns[2], &turns[1]]);
    assert_eq!(newest["next"], json!(turns[1]));
    let params = json!({ "limit": 2, "cursor": newest["next"] });
    let last = scene.ask("turn/list", params).await;
    assert_eq!(
        (ids(&last), &last["next"]),
        (vec![turns[0].as_str()], &Value::Null)
    );
    // A page has at least one.
    let params = json!({ "order": "ascending", "limit": 0, "session_id": scene.root });
    let oldest = scene.ask("turn/list", params).await;
    assert_eq!(ids(&oldest), [&turns[0]]);
    let params = json!({ "order": "ascending", "limit": 4_000_000_000_u32 });
    assert_eq!(ids(&scene.ask("turn/list", params).await), turns);

    for (method, params, code) in [
        ("turn/get", json!({ "turn_id": NOBODY }), -32020),
        ("turn/list", json!({ "cursor": NOBODY }), -32020),
        ("turn/list", json!({ "session_id": NOBODY }), -32003),
    ] {
        let (refused, message) = scene.refused(method, params).await;
        assert_eq!(
            (refused, message.contains(NOBODY)),
            (code, true),
            "{message}"
        );
    }
    scene.server.stop().await;
}

#[tokio::test]
async fn a_conversation_is_closed_once_nobody_uses_it_and_opens_as_it_was() {
    let mut scene = Scene::new([Say("one"), Stall]).await;
    let turn = scene.turn("first").await;
    let open = |status: Value| status["result"]["open_conversations"].clone();
    let closed = scene.ask("conversation/close", json!({})).await;
    assert_eq!(closed, json!({ "was_open": true }));
    assert_eq!(open(scene.raw.call("server/status", json!({})).await), 0);
    let again = scene.ask("conversation/close", json!({})).await;
    assert_eq!(again, json!({ "was_open": false }));

    let opened = scene.ask("conversation/open", json!({})).await;
    assert_eq!(
        (
            &opened["damaged"],
            opened["sessions"].as_array().unwrap().len()
        ),
        (&json!([]), 1)
    );
    assert_eq!(open(scene.raw.call("server/status", json!({})).await), 1);
    assert_eq!(
        ids(&scene.ask("turn/list", json!({})).await),
        [turn["id"].as_str().unwrap()]
    );

    scene.ask("conversation/subscribe", json!({})).await;
    let now = json!({ "wait_ms": 0 });
    let (code, message) = scene.refused("conversation/close", now.clone()).await;
    assert_eq!(
        (code, message.contains("subscribed")),
        (-32021, true),
        "{message}"
    );
    scene.ask("conversation/unsubscribe", json!({})).await;

    scene.send("second").await;
    let (code, message) = scene.refused("conversation/close", now).await;
    assert_eq!(
        (code, message.contains("1 turns run")),
        (-32021, true),
        "{message}"
    );
    let ended = json!({ "interrupt": true, "wait_ms": 20_000 });
    let closed = scene.ask("conversation/close", ended).await;
    assert_eq!(closed, json!({ "was_open": true }));
    let turns = scene.ask("turn/list", json!({ "limit": 1 })).await;
    assert_eq!(turns["turns"][0]["status"], "interrupted");

    for method in ["conversation/open", "conversation/close"] {
        let answer = scene
            .raw
            .call(method, json!({ "conversation_id": NOBODY }))
            .await;
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
    }
    scene.server.stop().await;
}

#[tokio::test]
async fn commands_that_run_keep_a_conversation_open_unless_they_are_to_be_ended() {
    let sleep = json!({ "command": "sleep 100000 & echo started" });
    let mut scene = Scene::new([Call("bash", sleep), Say("it runs")]).await;
    scene.turn("start it").await;
    let (code, message) = scene
        .refused("conversation/close", json!({ "wait_ms": 0 }))
        .await;
    assert_eq!(
        (code, message.contains("1 commands run")),
        (-32021, true),
        "{message}"
    );
    let ended = json!({ "interrupt": true, "wait_ms": 20_000 });
    assert_eq!(
        scene.ask("conversation/close", ended).await,
        json!({ "was_open": true })
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn opening_says_what_is_damaged() {
    let mut scene = Scene::new([Say("one")]).await;
    scene.turn("first").await;
    scene.ask("conversation/close", json!({})).await;
    let folder = scene
        .server
        .place
        .dir("data")
        .join("conversations")
        .join(&scene.id);
    let path = folder.join("metadata.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() > 2, "{text}");
    let broken = text.replacen(
        lines[lines.len() - 2],
        &"x".repeat(lines[lines.len() - 2].len()),
        1,
    );
    fs::write(&path, broken).unwrap();
    let opened = scene.ask("conversation/open", json!({})).await;
    let damaged = opened["damaged"].as_array().unwrap();
    assert_eq!(damaged.len(), 1, "{opened}");
    assert!(
        damaged[0].as_str().unwrap().starts_with("metadata entry"),
        "{opened}"
    );
    scene.server.stop().await;
}

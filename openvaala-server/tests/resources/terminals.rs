//! `terminal/…`.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::Scene;
use crate::model::Step::{Call, Say};

/// A scene in which that command runs in the background as number 1.
async fn running(command: &str) -> Scene {
    let bash = json!({ "command": command, "yield_ms": 250, "input": true });
    let mut scene = Scene::new([Call("bash", bash), Say("it runs")]).await;
    scene.turn("start it").await;
    scene
}

/// Reads until that much was written.
async fn read_from(scene: &mut Scene, offset: u64, bytes: u64) -> Value {
    loop {
        let read = scene
            .ask(
                "terminal/read",
                json!({ "terminal_id": 1, "offset": offset }),
            )
            .await;
        if read["next"].as_u64().unwrap() >= offset + bytes {
            return read;
        }
    }
}

#[tokio::test]
async fn a_command_in_the_background_is_listed_read_written_to_and_ended() {
    let mut scene = running("echo ready; cat; echo over").await;
    let listed = scene.ask("terminal/list", json!({})).await;
    let terminal = &listed["terminals"][0];
    assert_eq!(
        [
            &terminal["terminal_id"],
            &terminal["status"],
            &terminal["command"],
            &terminal["session_id"]
        ],
        [
            &json!(1),
            &json!("running"),
            &json!("echo ready; cat; echo over"),
            &json!(scene.root)
        ]
    );
    let read = read_from(&mut scene, 0, 6).await;
    assert_eq!(
        (&read["text"], &read["offset"]),
        (&json!("ready\n"), &json!(0))
    );

    // The answer to the first may have been lost: the second changes nothing.
    let write = json!({ "terminal_id": 1, "text": "hello\n", "at": 0 });
    for _ in 0..2 {
        let written = scene.ask("terminal/write", write.clone()).await;
        assert_eq!(
            (&written["taken"], &written["terminal"]["input_bytes"]),
            (&json!(true), &json!(6))
        );
    }
    let (code, message) = scene
        .refused(
            "terminal/write",
            json!({ "terminal_id": 1, "text": "no", "at": 3 + 4 }),
        )
        .await;
    assert_eq!(
        (code, message.contains("6 bytes were written")),
        (-32602, true),
        "{message}"
    );
    let end = json!({ "terminal_id": 1, "text": "more\n", "end": true, "at": 6 });
    scene.ask("terminal/write", end).await;
    let read = read_from(&mut scene, 6, 16).await;
    assert_eq!(read["text"], "hello\nmore\nover\n");
    let (_, message) = scene
        .refused(
            "terminal/write",
            json!({ "terminal_id": 1, "text": "late" }),
        )
        .await;
    assert!(
        message.contains("input of command 1 was ended") || message.contains("has ended"),
        "{message}"
    );
    // What has ended stays as it ended.
    loop {
        let listed = scene
            .ask("terminal/list", json!({ "session_id": scene.root }))
            .await;
        if listed["terminals"][0]["status"] == "exited" {
            break;
        }
    }
    let killed = scene
        .ask("terminal/kill", json!({ "terminal_id": 1 }))
        .await;
    let terminal = &killed["terminal"];
    assert_eq!(
        (&terminal["exit_code"], terminal.get("why")),
        (&json!(0), None)
    );
    assert!(terminal["ended_at"].is_string(), "{killed}");
    scene.server.stop().await;
}

#[tokio::test]
async fn a_long_output_is_read_at_both_ends_and_says_what_is_between() {
    let mut scene = running("seq 1 20000; cat").await;
    let total: u64 = (1..=20_000)
        .map(|n: u32| n.to_string().len() as u64 + 1)
        .sum();
    read_from(&mut scene, total - 6, 6).await;
    let ends = json!({ "terminal_id": 1, "head": 4, "tail": 12 });
    let read = scene.ask("terminal/read", ends).await;
    assert_eq!(
        (&read["text"], &read["next"]),
        (&json!("1\n2\n"), &json!(4))
    );
    let tail = json!({ "offset": total - 12, "text": "19999\n20000\n", "next": total, "left_out": total - 16 });
    assert_eq!(read["tail"], tail);
    // What is asked for beyond the end is not there yet.
    let beyond = scene
        .ask(
            "terminal/read",
            json!({ "terminal_id": 1, "offset": total, "tail": 9 }),
        )
        .await;
    assert_eq!(
        (&beyond["text"], &beyond["tail"]),
        (&json!(""), &Value::Null)
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn a_command_that_ignores_the_end_is_killed_and_unknown_ones_are_named() {
    let mut scene = running("trap '' TERM; echo ready; cat").await;
    let killed = scene
        .ask(
            "terminal/kill",
            json!({ "terminal_id": 1, "signal": "kill" }),
        )
        .await;
    let terminal = &killed["terminal"];
    assert_eq!(
        [&terminal["status"], &terminal["signal"], &terminal["why"]],
        [&json!("exited"), &json!(9), &json!("somebody ended it")]
    );
    for method in ["terminal/read", "terminal/write", "terminal/kill"] {
        let (code, message) = scene.refused(method, json!({ "terminal_id": 7 })).await;
        assert_eq!(code, -32004);
        assert!(
            message.ends_with("has no terminal 7; there are: 1"),
            "{message}"
        );
        let session = "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d";
        let params = json!({ "terminal_id": 1, "session_id": session });
        assert_eq!(scene.refused(method, params).await.0, -32003);
    }
    scene.server.stop().await;
}

//! In which order the requests of one client take effect.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Scene;
use crate::model::Step::Stall;

/// How many inputs are sent at once: as many as are worked on at the same time.
const AT_ONCE: usize = 64;
/// How many times: tasks that overtake each other do so only now and then.
const ROUNDS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_take_effect_in_the_order_they_were_sent() {
    let mut scene = Scene::new([Stall]).await;
    scene.send("hang").await;
    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        let numbers = (0..AT_ONCE).map(|n| format!("{round}: {n}"));
        let previews: Vec<String> = numbers.collect();
        for preview in &previews {
            let params = json!({
                "conversation_id": scene.id,
                "item_id": Uuid::now_v7(),
                "content": [{ "type": "text", "text": preview }],
            });
            scene.raw.request("session/send", params).await;
        }
        for _ in &previews {
            let answer = scene.raw.receive().await;
            assert!(answer["result"].is_object(), "{answer}");
        }
        sent.extend(previews);
    }
    let listed = scene.ask("session/pending/list", json!({})).await;
    let inputs = listed["inputs"].as_array().unwrap();
    let waiting: Vec<&Value> = inputs.iter().map(|input| &input["preview"]).collect();
    assert_eq!(json!(waiting), json!(sent));
}

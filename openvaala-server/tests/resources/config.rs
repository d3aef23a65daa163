//! `config/…`, and what changes files of the configuration that are there.

use std::fs;

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::support::{Place, Running};

const MAIN: &str = "# mine\nstep_limit: 5 # enough\n";

async fn server() -> Running {
    let place = Place::new();
    place.write("openvaala.yaml", MAIN);
    let acme = "# ours\ntype: openai_chat\nbase_url: http://127.0.0.1:9/v1\napi_key: sk-canary\ndefault_model: m\n";
    place.write("providers/acme.yaml", acme);
    Running::start_in(place).await
}

#[tokio::test]
async fn the_main_file_is_read_changed_and_changed_back_and_nothing_is_overwritten_by_mistake() {
    let server = server().await;
    let mut raw = server.raw().await;
    let file = server.place.dir("config").join("openvaala.yaml");
    let got = raw.call("config/get", json!({})).await["result"].clone();
    assert_eq!((&got["text"], &got["faults"]), (&json!(MAIN), &json!([])));
    assert!(!got.to_string().contains("canary"));

    let text = format!("{MAIN}limits: {{page_items: 7}}\n");
    let change = json!({ "text": text, "revision": got["revision"] });
    let set = raw.call("config/set", change.clone()).await["result"].clone();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    let again = raw.call("config/get", json!({})).await["result"].clone();
    assert_eq!(again["revision"], set["revision"]);

    // Somebody else has changed it meanwhile.
    let refused = raw.call("config/set", change).await;
    assert_eq!(refused["error"]["code"], -32025, "{refused}");
    // A text that does not load is neither written nor in force.
    let broken = json!({ "text": "step_limit: 0\n" });
    let refused = raw.call("config/set", broken.clone()).await["error"].clone();
    let message = refused["message"].as_str().unwrap();
    assert!(
        refused["code"] == -32602 && message.contains("openvaala.yaml:1:13: step_limit:"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    let faults = raw.call("config/validate", broken).await["result"]["faults"].clone();
    let fault = &faults[0];
    assert_eq!(
        (&fault["line"], &fault["column"], &fault["field"]),
        (&json!(1), &json!(13), &json!("step_limit"))
    );
    let right = raw.call("config/validate", json!({})).await;
    assert_eq!(right["result"]["faults"], json!([]));
    let back = json!({ "text": MAIN, "revision": set["revision"] });
    let back = raw.call("config/set", back).await;
    assert_eq!(back["result"]["revision"], got["revision"]);
    server.stop().await;
}

#[tokio::test]
async fn what_is_wrong_on_disk_is_told_while_the_configuration_before_is_in_force() {
    let server = server().await;
    let mut raw = server.raw().await;
    let provider = server.place.dir("config").join("providers/acme.yaml");
    fs::write(&provider, "type: telepathy\n").unwrap();
    let got = raw.call("config/get", json!({})).await["result"].clone();
    let fault = &got["faults"][0];
    assert_eq!(
        (&fault["line"], &fault["field"]),
        (&json!(1), &json!("type"))
    );
    // With a broken file beside it nothing is changed.
    let refused = raw
        .call("config/set", json!({ "text": "step_limit: 9\n" }))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let main = server.place.dir("config").join("openvaala.yaml");
    assert_eq!(fs::read_to_string(main).unwrap(), MAIN);
    server.stop().await;
}

#[tokio::test]
async fn a_provider_is_edited_in_place_and_its_key_is_never_told() {
    let server = server().await;
    let mut raw = server.raw().await;
    let file = server.place.dir("config").join("providers/acme.yaml");
    let edit =
        json!({ "name": "acme", "base_url": "http://127.0.0.1:10/v1", "default_model": "n" });
    let edited = raw.call("provider/edit", edit).await;
    assert_eq!(
        edited["result"]["default_model"],
        json!({ "provider": "acme", "model": "n" }),
        "{edited}"
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "# ours\ntype: openai_chat\nbase_url: \"http://127.0.0.1:10/v1\"\napi_key: sk-canary\ndefault_model: \"n\"\n"
    );
    let other_key = json!({ "name": "acme", "api_key": "sk-other" });
    let edited = raw.call("provider/edit", other_key).await;
    assert!(!edited.to_string().contains("sk-"), "{edited}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("api_key: \"sk-other\"\n") && !text.contains("canary"));
    for wrong in [
        json!({ "name": "acme", "base_url": "no url" }),
        json!({ "name": "acme", "type": "telepathy" }),
        json!({ "name": "acme", "api_key": "a", "api_key_env": "B" }),
        json!({ "name": "nobody", "default_model": "m" }),
        json!({ "name": "../acme", "default_model": "m" }),
    ] {
        let refused = raw.call("provider/edit", wrong).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(!refused.to_string().contains("sk-"), "{refused}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    server.stop().await;
}

#[tokio::test]
async fn another_default_model_is_written_and_asked_and_comments_stay() {
    let server = server().await;
    let mut raw = server.raw().await;
    let model = json!({ "provider": "acme", "model": "big: one", "effort": "high" });
    for _ in 0..2 {
        let set = raw
            .call("model/default/set", json!({ "model": model }))
            .await;
        assert_eq!(set["result"]["default_model"], model, "{set}");
    }
    let main = server.place.dir("config").join("openvaala.yaml");
    let expected = format!(
        "{MAIN}default_model:\n  provider: \"acme\"\n  model: \"big: one\"\n  effort: \"high\"\n"
    );
    assert_eq!(fs::read_to_string(&main).unwrap(), expected);
    let unknown = json!({ "model": { "provider": "nobody", "model": "m" } });
    let refused = raw.call("model/default/set", unknown).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(fs::read_to_string(&main).unwrap(), expected);
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_keeps_no_log_says_so() {
    let server = server().await;
    let mut raw = server.raw().await;
    let refused = raw.call("server/logs", json!({})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("keeps no log"), "{refused}");
    server.stop().await;
}

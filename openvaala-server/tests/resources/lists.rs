//! `agent/…`, `model/…`, `executor/…` and `usage/…`.

use std::fs;
use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::Scene;
use crate::model::Step::Say;
use crate::support::{Place, Running};

#[tokio::test]
async fn agents_and_models_are_listed_as_they_are_configured_and_no_key_is_told() {
    let place = Place::new();
    place.write(
        "providers/acme.yaml",
        "type: openai_chat\nbase_url: http://127.0.0.1:9/v1\napi_key: sk-canary\ndefault_model: m\ncontext_windows:\n  big: 200000\n",
    );
    place.write(
        "agents/reviewer.yaml",
        "description: looks\nmodel: acme/small\ntools: [read_file]\n",
    );
    let server = Running::start_in(place).await;
    let mut raw = server.raw().await;
    let agents = raw.call("agent/list", json!({})).await["result"]["agents"].clone();
    let model = json!({ "provider": "acme", "model": "small" });
    let reviewer = json!({
        "name": "reviewer", "description": "looks", "model": model, "effort": null, "tools": ["read_file"],
    });
    assert_eq!(agents, json!([reviewer]));
    let listed = raw.call("model/list", json!({ "provider": "acme" })).await;
    let model = |name: &str, default: bool, window| json!({ "provider": "acme", "model": name, "is_provider_default": default, "context_window": window });
    let models = [
        model("big", false, json!(200_000)),
        model("m", true, json!(null)),
        model("small", false, json!(null)),
    ];
    assert_eq!(listed["result"]["models"], json!(models));
    let default = json!({ "provider": "acme", "model": "m" });
    assert_eq!(listed["result"]["default_model"], default);
    assert!(!listed.to_string().contains("canary"));
    let refused = raw.call("model/list", json!({ "provider": "x" })).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("there are: acme, demo"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn folders_are_browsed_one_level_deep_and_paths_completed() {
    let server = Running::start().await;
    let root = fs::canonicalize(server.place.root.path())
        .unwrap()
        .join("w");
    for folder in ["b/deep", "a", ".hidden"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("file"), "").unwrap();
    symlink(root.join("a"), root.join("link")).unwrap();
    symlink(root.join("nowhere"), root.join("broken")).unwrap();
    let root = root.to_str().unwrap();
    let mut raw = server.raw().await;
    let listed = raw.call("executor/list", json!({})).await;
    assert_eq!(
        listed["result"]["executors"],
        json!([{ "id": "local", "kind": "local" }])
    );

    let browse = json!({ "executor": "local", "path": root });
    let browsed = raw.call("executor/browse", browse).await["result"].clone();
    let folder = |name: &str| json!({ "name": name, "path": format!("{root}/{name}"), "hidden": name.starts_with('.') });
    let folders: Vec<_> = [".hidden", "a", "b", "link"].map(folder).into();
    assert_eq!(
        (&browsed["folders"], &browsed["more"]),
        (&json!(folders), &json!(false))
    );
    assert_eq!(root, format!("{}/w", browsed["parent"].as_str().unwrap()));
    let first = json!({ "executor": "local", "path": root, "limit": 0 });
    let browsed = raw.call("executor/browse", first).await["result"].clone();
    assert_eq!(
        (&browsed["folders"], &browsed["more"]),
        (&json!([folder(".hidden")]), &json!(true))
    );

    for (typed, files, paths) in [
        ("/", false, vec!["/a/", "/b/", "/link/"]),
        ("/f", true, vec!["/file"]),
        ("/f", false, vec![]),
        ("/.h", false, vec!["/.hidden/"]),
        ("/b/", false, vec!["/b/deep/"]),
        ("/nowhere/x", false, vec![]),
        ("/file/x", false, vec![]),
    ] {
        let params =
            json!({ "executor": "local", "path": format!("{root}{typed}"), "files": files });
        let completed = raw.call("executor/complete", params).await;
        let paths: Vec<String> = paths
            .into_iter()
            .map(|path| format!("{root}{path}"))
            .collect();
        assert_eq!(completed["result"]["paths"], json!(paths), "{typed}");
    }

    let test = |root: &str| json!({ "executor": "local", "root": root });
    assert_eq!(
        raw.call("executor/test", test(root)).await["result"]["ok"],
        true
    );
    let lost = format!("{root}/nowhere");
    let failed = raw.call("executor/test", test(&lost)).await["result"].clone();
    assert_eq!(failed["ok"], false);
    assert!(
        failed["message"].as_str().unwrap().contains(&lost),
        "{failed}"
    );
    for (method, params, code) in [
        (
            "executor/browse",
            json!({ "executor": "local", "path": lost }),
            -32000,
        ),
        (
            "executor/browse",
            json!({ "executor": "local", "path": "w" }),
            -32000,
        ),
        ("executor/browse", json!({ "executor": "moon" }), -32602),
        (
            "executor/complete",
            json!({ "executor": "local", "path": "w" }),
            -32602,
        ),
        ("executor/test", json!({ "executor": "moon" }), -32602),
    ] {
        let answer = raw.call(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_tokens_of_a_conversation_are_those_of_its_turns() {
    let mut scene = Scene::new([Say("one"), Say("two")]).await;
    scene.turn("first").await;
    scene.turn("second").await;
    let usage = scene.ask("usage/get", json!({})).await;
    let total = &usage["total"];
    assert_eq!(
        (&total["input_tokens"], &total["output_tokens"]),
        (&json!(20), &json!(10))
    );
    assert_eq!(
        usage["sessions"],
        json!([{ "session_id": scene.root, "usage": total }])
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn a_provider_is_added_and_removed_and_a_wrong_one_changes_nothing() {
    let server = Running::start().await;
    let mut raw = server.raw().await;
    let config = server.place.dir("config");
    let file = config.join("providers/acme.yaml");
    let acme = json!({
        "name": "acme", "type": "openai_chat", "base_url": "http://127.0.0.1:9/v1",
        "api_key": "sk-canary", "default_model": "m",
    });
    let default = json!({ "provider": "acme", "model": "m" });
    // The answer to the first may have been lost.
    for _ in 0..2 {
        let added = raw.call("provider/add", acme.clone()).await;
        assert_eq!(added["result"]["default_model"], default, "{added}");
    }
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("sk-canary"), "{text}");
    let listed = raw.call("provider/list", json!({})).await;
    assert_eq!(listed["result"]["providers"][0]["name"], "acme");
    assert!(!listed.to_string().contains("canary"));

    let mut other = acme.clone();
    other["default_model"] = json!("other");
    let mut wrong = acme.clone();
    wrong["name"] = json!("wrong");
    wrong["base_url"] = json!("no url");
    let mut outside = acme.clone();
    outside["name"] = json!("../outside");
    let mut unknown = acme.clone();
    unknown["type"] = json!("telepathy");
    let mut two = acme.clone();
    two["api_key_env"] = json!("KEY");
    for params in [other, wrong, outside, unknown, two] {
        let refused = raw.call("provider/add", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(!refused.to_string().contains("canary"), "{refused}");
    }
    let files = fs::read_dir(config.join("providers")).unwrap();
    assert_eq!(
        (files.count(), fs::read_to_string(&file).unwrap()),
        (1, text)
    );

    // It is the default model of the configuration, which would not load without it.
    let refused = raw.call("provider/remove", json!({ "name": "acme" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(file.exists());
    fs::remove_file(config.join("openvaala.yaml")).unwrap();
    for _ in 0..2 {
        let removed = raw.call("provider/remove", json!({ "name": "acme" })).await;
        assert_eq!(
            removed["result"]["default_model"]["provider"], "demo",
            "{removed}"
        );
    }
    assert!(!file.exists());
    server.stop().await;
}

//! What a model gets to read before anything has happened: every byte of it goes with each request.

use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::sandbox::Sandbox;
use serde_json::Value;

/// The most bytes that the first request may have.
const LIMIT: usize = 10_000;

#[test]
fn the_first_request_is_small_and_stays_what_it_is() {
    let mut model = FakeModel::start(|_| Answer::text("hello"));
    let sandbox = Sandbox::new();
    sandbox.use_model(&model.base_url());
    let _ = sandbox.run(&["exec", "hello"]).expect_code(0);
    let requests = model.requests();
    let body = &requests[0].body;
    let bytes = body.to_string().len();
    assert!(
        bytes < LIMIT,
        "it has {bytes} bytes, at most {LIMIT} are wanted"
    );
    insta::assert_snapshot!(shown(body, &sandbox));
}

/// The request as a person reads it, without what differs from machine to machine.
fn shown(body: &Value, sandbox: &Sandbox) -> String {
    let folder = sandbox.project().canonicalize().unwrap();
    let mut parts = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let content = &message["content"];
        let text = content
            .as_str()
            .map_or_else(|| content.to_string(), str::to_owned);
        parts.push(format!("## {role}\n{text}"));
    }
    for tool in body["tools"].as_array().unwrap() {
        let function = &tool["function"];
        let (name, description) = (&function["name"], &function["description"]);
        let (name, description) = (name.as_str().unwrap(), description.as_str().unwrap());
        let parameters = &function["parameters"];
        parts.push(format!("## tool {name}\n{description}\n{parameters}"));
    }
    let text = parts
        .join("\n\n")
        .replace(folder.to_str().unwrap(), "<folder>");
    let lines = text.lines().map(|line| {
        let varies = ["Date: ", "Executor local: "]
            .iter()
            .find(|begin| line.starts_with(**begin));
        varies.map_or_else(|| line.to_owned(), |begin| format!("{begin}…"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

//! The body of requests.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::Opaque;
use pretty_assertions::assert_eq;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dialect::openai_responses::request::body;
use crate::model::{AssistantPart, Message, ModelRequest, OutputSchema, ToolAnswer};

/// A thought with what only survives if nobody re-encodes it: spaces, and an integer of 23 digits.
const THOUGHT: &str = r#"{"type":"reasoning", "id":"rs_1","summary":[],"n":12345678901234567890123,"encrypted_content":"x"}"#;

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "gpt".to_owned(),
        messages: messages.into(),
        ..ModelRequest::default()
    }
}

fn text(request: &ModelRequest) -> String {
    String::from_utf8(body(request).unwrap()).unwrap()
}

fn input(list: Vec<Message>) -> Value {
    let body: Value = serde_json::from_str(&text(&request(list))).unwrap();
    body["input"].clone()
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn image(data: ImageData) -> Content {
    Content::Image {
        media_type: "image/png".to_owned(),
        data,
    }
}

fn png(base64: &str) -> Content {
    image(ImageData::Base64(base64.to_owned()))
}

fn thought(opaque: &str) -> AssistantPart {
    AssistantPart::Reasoning {
        text: "hm".to_owned(),
        opaque: Opaque::new("p".into(), "m".into(), None, raw(opaque)),
    }
}

fn call(id: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: "{\"n\":12345678901234567890123}".to_owned(),
    }
}

fn result(id: &str, content: Vec<Content>) -> ToolAnswer {
    ToolAnswer::new(id.to_owned(), "f".to_owned(), content, false)
}

fn history() -> Vec<Message> {
    vec![
        Message::User(vec![Content::text("hi")]),
        Message::Assistant(vec![
            thought(THOUGHT),
            AssistantPart::Text("I look.".to_owned()),
            call("a"),
            call("b"),
        ]),
        Message::ToolResults(vec![
            result("a", vec![Content::text("1")]),
            result("b", vec![Content::text("2"), png("AAAA")]),
        ]),
        Message::Assistant(vec![AssistantPart::Text("Done.".to_owned())]),
        Message::User(vec![Content::text("thanks")]),
    ]
}

/// A request that says everything that a request can say.
fn full() -> ModelRequest {
    let mut request = request(history());
    request.instructions = "Be brief.".to_owned();
    request.effort = Some("high".to_owned());
    request.tools = vec![ToolSpec::new(
        "f".to_owned(),
        "does f".to_owned(),
        raw("{\"type\":\"object\"}"),
    )];
    request.output_schema =
        OutputSchema::new(raw("{\"type\":\"object\",\"additionalProperties\":false}"));
    request
}

#[test]
fn a_whole_request_is_written_in_this_order_of_fields() {
    let body = text(&full())
        .replace(",\"input\"", ",\n\"input\"")
        .replace("},{\"type\"", "},\n{\"type\"");
    insta::assert_snapshot!(body, @r#"
    {"model":"gpt","instructions":"Be brief.","tools":[{"type":"function","name":"f","description":"does f","parameters":{"type":"object"},"strict":false}],"parallel_tool_calls":true,"reasoning":{"effort":"high","summary":"auto"},"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":{"type":"object","additionalProperties":false}}},"include":["reasoning.encrypted_content"],"store":false,"stream":true,
    "input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},
    {"type":"reasoning", "id":"rs_1","summary":[],"n":12345678901234567890123,"encrypted_content":"x"},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
    {"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\":12345678901234567890123}"},
    {"type":"function_call","call_id":"b","name":"f","arguments":"{\"n\":12345678901234567890123}"},
    {"type":"function_call_output","call_id":"a","output":"1"},
    {"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"2"},
    {"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"thanks"}]}]}
    "#);
}

#[test]
fn what_is_not_set_is_not_sent() {
    assert_eq!(
        text(&request(vec![])),
        r#"{"model":"gpt","parallel_tool_calls":true,"include":["reasoning.encrypted_content"],"store":false,"stream":true,"input":[]}"#
    );
}

#[test]
fn a_request_begins_with_the_bytes_of_the_one_before() {
    let bodies: Vec<String> = (1..=history().len())
        .map(|count| {
            let mut request = full();
            request.messages.truncate(count);
            text(&request)
        })
        .collect();
    for pair in bodies.windows(2) {
        let before = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(before), "{} | {}", pair[0], pair[1]);
    }
}

#[test]
fn images_of_the_user_are_data_urls() {
    let content = vec![Content::text("what is this?"), png("AAAA")];
    assert_eq!(
        input(vec![Message::User(content)]),
        json!([{ "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "what is this?" },
            { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
        ] }])
    );
}

#[test]
fn a_result_is_text_unless_it_has_an_image() {
    let blob = BlobRef::new(BlobId::from_uuid(Uuid::nil()), 1, 2, 100_000);
    let gone = image(ImageData::Blob(blob));
    let results = vec![
        result("a", vec![Content::text("1"), Content::text("2")]),
        result("b", vec![Content::text("1"), png("AAAA")]),
        result("c", vec![gone]),
        result("d", vec![]),
    ];
    let output = |id: &str, output: Value| json!({ "type": "function_call_output", "call_id": id, "output": output });
    assert_eq!(
        input(vec![Message::ToolResults(results)]),
        json!([
            output("a", json!("1\n2")),
            output(
                "b",
                json!([
                    { "type": "input_text", "text": "1" },
                    { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
                ])
            ),
            output("c", json!("[an image that is not available any more]")),
            output("d", json!("")),
        ])
    );
}

#[test]
fn thoughts_of_another_api_do_not_go_back() {
    for foreign in [
        r#"{"field":"reasoning_content"}"#,
        r#"{"type":"thinking","signature":"x"}"#,
        "7",
    ] {
        let parts = vec![thought(foreign), AssistantPart::Text("a".to_owned())];
        assert_eq!(
            input(vec![Message::Assistant(parts)]),
            json!([{ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] }]),
            "{foreign}"
        );
    }
}

//! The body of requests.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::Opaque;
use pretty_assertions::assert_eq;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dialect::openai_chat::request::body;
use crate::model::{AssistantPart, Message, ModelRequest, ToolAnswer};

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

fn messages(list: Vec<Message>) -> Value {
    let body: Value = serde_json::from_str(&text(&request(list))).unwrap();
    body["messages"].clone()
}

fn image(base64: &str) -> Content {
    let data = ImageData::Base64(base64.to_owned());
    Content::Image {
        media_type: "image/png".to_owned(),
        data,
    }
}

fn call(id: &str) -> AssistantPart {
    let arguments = "{\"n\":12345678901234567890123}".to_owned();
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments,
    }
}

fn result(id: &str, content: Vec<Content>) -> ToolAnswer {
    ToolAnswer::new(id.to_owned(), "f".to_owned(), content, false)
}

fn history() -> Vec<Message> {
    vec![
        Message::User(vec![Content::text("hi")]),
        Message::Assistant(vec![
            AssistantPart::Text("I look.".to_owned()),
            call("a"),
            call("b"),
        ]),
        Message::ToolResults(vec![
            result("a", vec![Content::text("1")]),
            result("b", vec![Content::text("2")]),
        ]),
        Message::Assistant(vec![AssistantPart::Text("Done.".to_owned())]),
        Message::User(vec![Content::text("thanks")]),
    ]
}

#[test]
fn a_whole_request_is_written_in_this_order_of_fields() {
    let mut request = request(history());
    request.instructions = "Be brief.".to_owned();
    request.effort = Some("high".to_owned());
    let schema = RawValue::from_string("{\"type\":\"object\"}".to_owned()).unwrap();
    request.tools = vec![ToolSpec::new("f".to_owned(), "does f".to_owned(), schema)];
    insta::assert_snapshot!(text(&request).replace("},{\"role\"", "},\n{\"role\""), @r#"
    {"model":"gpt","messages":[{"role":"system","content":"Be brief."},
    {"role":"user","content":"hi"},
    {"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":12345678901234567890123}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{\"n\":12345678901234567890123}"}}]},
    {"role":"tool","tool_call_id":"a","content":"1"},
    {"role":"tool","tool_call_id":"b","content":"2"},
    {"role":"assistant","content":"Done."},
    {"role":"user","content":"thanks"}],"tools":[{"type":"function","function":{"name":"f","description":"does f","parameters":{"type":"object"}}}],"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true}}
    "#);
}

#[test]
fn what_is_not_set_is_not_sent() {
    assert_eq!(
        text(&request(vec![])),
        r#"{"model":"gpt","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[test]
fn the_messages_of_a_request_are_the_beginning_of_the_next() {
    let end = "],\"stream\"";
    let bodies: Vec<String> = (1..=history().len())
        .map(|count| text(&request(history().into_iter().take(count).collect())))
        .collect();
    for pair in bodies.windows(2) {
        let (before, _) = pair[0].split_once(end).unwrap();
        assert!(pair[1].starts_with(before), "{} | {}", pair[0], pair[1]);
    }
}

#[test]
fn images_of_the_user_are_data_urls() {
    let content = vec![Content::text("what is this?"), image("AAAA")];
    assert_eq!(
        messages(vec![Message::User(content)]),
        json!([{ "role": "user", "content": [
            { "type": "text", "text": "what is this?" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
        ] }])
    );
}

#[test]
fn images_of_results_follow_all_results_in_a_message_of_the_user() {
    let results = vec![
        result("a", vec![Content::text("1"), image("AAAA")]),
        result("b", vec![image("BBBB")]),
    ];
    let list = vec![
        Message::Assistant(vec![call("a"), call("b")]),
        Message::ToolResults(results),
    ];
    let messages = messages(list);
    let note = "[an image: see the next message of the user]";
    assert_eq!(messages[0]["content"], Value::Null);
    assert_eq!(messages[1]["content"], json!(format!("1\n{note}")));
    assert_eq!(messages[2]["content"], json!(note));
    assert_eq!(
        messages[3],
        json!({ "role": "user", "content": [
            { "type": "text", "text": "The images of the tool results, in their order:" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,BBBB" } },
        ] })
    );
}

#[test]
fn an_image_that_is_not_there_becomes_a_note() {
    let blob = BlobRef::new(BlobId::from_uuid(Uuid::nil()), 1, 2, 100_000);
    let data = ImageData::Blob(blob);
    let content = vec![Content::Image {
        media_type: "image/png".to_owned(),
        data,
    }];
    let note = "[an image that is not available any more]";
    let list = vec![
        Message::User(content.clone()),
        Message::Assistant(vec![call("a")]),
        Message::ToolResults(vec![result("a", content)]),
    ];
    let messages = messages(list);
    assert_eq!(
        messages[0]["content"],
        json!([{ "type": "text", "text": note }])
    );
    assert_eq!(messages[2]["content"], json!(note));
    assert_eq!(messages.as_array().unwrap().len(), 3);
}

#[test]
fn thoughts_go_back_in_the_field_that_they_came_in_and_no_other() {
    let thought = |data: &Value| AssistantPart::Reasoning {
        text: "hm".to_owned(),
        opaque: Opaque::new("p".into(), "m".into(), None, to_raw_value(data).unwrap()),
    };
    for (data, expected) in [
        (
            json!({ "field": "reasoning_content" }),
            json!({ "role": "assistant", "content": "a", "reasoning_content": "hm" }),
        ),
        (
            json!({ "field": "reasoning" }),
            json!({ "role": "assistant", "content": "a", "reasoning": "hm" }),
        ),
        (
            json!({ "field": "other" }),
            json!({ "role": "assistant", "content": "a" }),
        ),
        (
            json!({ "signature": "x" }),
            json!({ "role": "assistant", "content": "a" }),
        ),
    ] {
        let parts = vec![thought(&data), AssistantPart::Text("a".to_owned())];
        assert_eq!(messages(vec![Message::Assistant(parts)]), json!([expected]));
    }
}

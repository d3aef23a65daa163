//! The body of requests.

use openvaala_executor::tool::ToolSpec;
use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::Opaque;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dialect::anthropic_messages::request::body;
use crate::model::{
    AssistantPart, Message, ModelErrorKind, ModelRequest, OutputSchema, ToolAnswer,
};

const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "claude".to_owned(),
        messages: messages.into(),
        ..ModelRequest::default()
    }
}

fn text(request: &ModelRequest) -> String {
    String::from_utf8(body(request, 32_000).unwrap()).unwrap()
}

fn json_of(request: &ModelRequest) -> Value {
    serde_json::from_str(&text(request)).unwrap()
}

/// The messages without the marks.
fn messages(list: Vec<Message>) -> Value {
    let text = text(&request(list)).replace(MARK, "");
    let body: Value = serde_json::from_str(&text).unwrap();
    body["messages"].clone()
}

fn user(text: &str) -> Message {
    Message::User(vec![Content::text(text)])
}

fn said(text: &str) -> Message {
    Message::Assistant(vec![AssistantPart::Text(text.to_owned())])
}

fn image(media_type: &str, data: ImageData) -> Content {
    Content::Image {
        media_type: media_type.to_owned(),
        data,
    }
}

fn png(base64: &str) -> Content {
    image("image/png", ImageData::Base64(base64.to_owned()))
}

fn call(id: &str) -> AssistantPart {
    call_with(id, "{\"n\":12345678901234567890123}")
}

fn call_with(id: &str, arguments: &str) -> AssistantPart {
    AssistantPart::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(id: &str, content: Vec<Content>) -> ToolAnswer {
    ToolAnswer::new(id.to_owned(), "f".to_owned(), content, false)
}

fn thought(data: &str) -> AssistantPart {
    let data = RawValue::from_string(data.to_owned()).unwrap();
    AssistantPart::Reasoning {
        text: "hm".to_owned(),
        opaque: Opaque::new("p".into(), "m".into(), None, data),
    }
}

fn history() -> Vec<Message> {
    vec![
        user("hi"),
        Message::Assistant(vec![
            thought(r#"{"type":"thinking","thinking":"hm","signature":"s=="}"#),
            AssistantPart::Text("I look.".to_owned()),
            call("a"),
            call("b"),
        ]),
        Message::ToolResults(vec![
            result("a", vec![Content::text("1")]),
            ToolAnswer::new(
                "b".to_owned(),
                "f".to_owned(),
                vec![Content::text("2")],
                true,
            ),
        ]),
        said("Done."),
        user("thanks"),
    ]
}

#[test]
fn a_whole_request_is_written_in_this_order_of_fields() {
    let mut request = request(history());
    request.instructions = "Be brief.".to_owned();
    request.effort = Some("high".to_owned());
    let schema = RawValue::from_string("{\"type\":\"object\"}".to_owned()).unwrap();
    request.output_schema = OutputSchema::new(schema.clone());
    request.tools = vec![ToolSpec::new("f".to_owned(), "does f".to_owned(), schema)];
    insta::assert_snapshot!(text(&request).replace("{\"role\"", "\n{\"role\""), @r#"
    {"model":"claude","max_tokens":32000,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},"tools":[{"name":"f","description":"does f","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[
    {"role":"user","content":[{"type":"text","text":"hi"}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"f","input":{"n":12345678901234567890123}},{"type":"tool_use","id":"b","name":"f","input":{"n":12345678901234567890123}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}],"is_error":true,"cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":[{"type":"text","text":"Done."}]},
    {"role":"user","content":[{"type":"text","text":"thanks","cache_control":{"type":"ephemeral"}}]}]}
    "#);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let mut request = request(vec![]);
    request.instructions = " \n".to_owned();
    assert_eq!(
        text(&request),
        r#"{"model":"claude","max_tokens":32000,"stream":true,"messages":[]}"#
    );
}

/// A conversation from the first message to the last, as its requests see it: each ends with the user.
fn requests(history: &[Message]) -> Vec<String> {
    (1..=history.len())
        .filter(|count| !matches!(history[count - 1], Message::Assistant(_)))
        .map(|count| text(&request(history[..count].to_vec())))
        .collect()
}

#[test]
fn a_request_without_its_marks_is_the_beginning_of_the_next() {
    let bodies = requests(&history());
    assert_eq!(bodies.len(), 3);
    for pair in bodies.windows(2) {
        let before = pair[0].replace(MARK, "");
        let before = before.strip_suffix("]}]}").unwrap();
        assert!(
            pair[1].replace(MARK, "").starts_with(before),
            "{} | {}",
            pair[0],
            pair[1]
        );
    }
}

#[test]
fn the_last_mark_of_a_request_is_the_last_but_one_of_the_next() {
    let bodies = requests(&history());
    let mut last = None;
    for body in bodies {
        let (before, _) = body.rsplit_once(MARK).unwrap();
        if let Some(last) = last {
            let (earlier, _) = before.rsplit_once(MARK).unwrap();
            assert_eq!(earlier.replace(MARK, ""), last);
        }
        last = Some(before.replace(MARK, ""));
        assert!(body.matches(MARK).count() <= 2, "{body}");
    }
}

#[test]
fn the_system_prompt_is_a_text_with_a_mark() {
    let mut request = request(vec![user("hi")]);
    request.instructions = "Be brief.".to_owned();
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(
        json_of(&request)["system"],
        json!([{ "type": "text", "text": "Be brief.", "cache_control": mark }])
    );
}

#[test]
fn a_word_as_effort_asks_for_adaptive_thinking_that_is_shown() {
    let mut request = request(vec![user("hi")]);
    request.effort = Some("xhigh".to_owned());
    let body = json_of(&request);
    assert_eq!(
        body["thinking"],
        json!({ "type": "adaptive", "display": "summarized" })
    );
    assert_eq!(body["output_config"], json!({ "effort": "xhigh" }));
}

#[test]
fn a_model_that_thinks_by_itself_is_asked_to_show_it() {
    for (model, thinks) in [
        ("claude-sonnet-5-5", true),
        ("claude-opus-5", true),
        ("anthropic/claude-fable-5.2", true),
        ("claude-haiku-10", true),
        ("claude-opus-4-8", false),
        ("claude-haiku-4-5-20251001", false),
        ("claude-3-7-sonnet-20250219", false),
        ("claude-mythos-preview", false),
        ("claude-next-20270101", false),
        ("qwen5", false),
    ] {
        let mut request = request(vec![user("hi")]);
        request.model = model.to_owned();
        let expected = thinks.then(|| json!({ "type": "adaptive", "display": "summarized" }));
        let body = json_of(&request);
        assert_eq!(body.get("thinking"), expected.as_ref(), "{model}");
        assert_eq!(body.get("output_config"), None, "{model}");
    }
}

#[test]
fn a_number_as_effort_is_a_budget() {
    let mut request = request(vec![user("hi")]);
    request.effort = Some("4096".to_owned());
    let body = json_of(&request);
    assert_eq!(
        body["thinking"],
        json!({ "type": "enabled", "budget_tokens": 4096 })
    );
    assert_eq!(body["output_config"], Value::Null);
}

#[test]
fn a_budget_that_cannot_be_is_refused_with_what_could() {
    let mut request = request(vec![user("hi")]);
    for effort in ["", "0", "1023", "32000", "99999999999999999999"] {
        request.effort = Some(effort.to_owned());
        let error = body(&request, 32_000).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        let expected = format!(
            "the effort {effort:?} is no budget of thinking tokens: expected at least 1024 and less than max_tokens \
             (32000), or a word such as low, medium or high"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn with_a_budget_no_thoughts_are_asked_for_after_a_call_that_came_without() {
    let results = || Message::ToolResults(vec![result("a", vec![Content::text("1")])]);
    let signed = || thought(r#"{"type":"thinking","thinking":"","signature":"s"}"#);
    for (parts, next, thinks) in [
        (vec![call("a")], vec![results()], false),
        (vec![signed(), call("a")], vec![results()], true),
        (
            vec![call("a")],
            vec![results(), said("ok"), user("go on")],
            true,
        ),
    ] {
        let mut list = vec![user("hi"), Message::Assistant(parts)];
        list.extend(next);
        let mut request = request(list);
        request.effort = Some("2000".to_owned());
        assert_eq!(
            json_of(&request).get("thinking").is_some(),
            thinks,
            "{request:?}"
        );
    }
}

#[test]
fn a_schema_for_the_answer_is_the_format_of_the_output() {
    let mut request = request(vec![user("hi")]);
    request.output_schema = OutputSchema::new(to_raw_value(&json!({ "type": "object" })).unwrap());
    assert_eq!(
        json_of(&request)["output_config"],
        json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } })
    );
}

#[test]
fn what_one_side_says_in_a_row_is_one_message() {
    let list = vec![user("a"), user("b"), said("c"), said("d"), user("e")];
    assert_eq!(
        messages(list),
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "c" }, { "type": "text", "text": "d" }] },
            { "role": "user", "content": [{ "type": "text", "text": "e" }] },
        ])
    );
}

#[test]
fn results_come_first_in_the_message_of_the_user() {
    let results = |id| Message::ToolResults(vec![result(id, vec![Content::text(id)])]);
    let list = vec![
        user("hi"),
        Message::Assistant(vec![call("a"), call("b")]),
        results("a"),
        user("and"),
        results("b"),
    ];
    let block = |id| json!({ "type": "tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": id }] });
    assert_eq!(
        messages(list)[2]["content"],
        json!([block("a"), block("b"), { "type": "text", "text": "and" }])
    );
}

#[test]
fn a_result_says_that_it_failed_and_may_have_images() {
    let content = vec![Content::text("see"), png("AAAA")];
    let failed = ToolAnswer::new("a".to_owned(), "f".to_owned(), content, true);
    let list = vec![
        user("hi"),
        Message::Assistant(vec![call("a")]),
        Message::ToolResults(vec![failed]),
    ];
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    assert_eq!(
        messages(list)[2]["content"],
        json!([{
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [{ "type": "text", "text": "see" }, { "type": "image", "source": source }],
            "is_error": true,
        }])
    );
}

#[test]
fn an_image_that_cannot_be_sent_becomes_a_note() {
    let blob = BlobRef::new(BlobId::from_uuid(Uuid::nil()), 1, 2, 100_000);
    let content = vec![
        image("image/png", ImageData::Blob(blob)),
        image("image/bmp", ImageData::Base64("AAAA".to_owned())),
    ];
    assert_eq!(
        messages(vec![Message::User(content)])[0]["content"],
        json!([
            { "type": "text", "text": "[an image that is not available any more]" },
            { "type": "text", "text": "[an image of a kind that the model cannot see]" },
        ])
    );
}

#[test]
fn blank_texts_are_never_sent() {
    let list = vec![
        Message::User(vec![Content::text(" \n"), Content::text("hi")]),
        Message::Assistant(vec![AssistantPart::Text("\n".to_owned()), call("a")]),
        Message::ToolResults(vec![result("a", vec![Content::text("")])]),
        said(" "),
        user(""),
    ];
    assert_eq!(
        messages(list),
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "a", "name": "f", "input": { "n": 12345678901234567890123_f64 } },
            ] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] },
        ])
    );
}

#[test]
fn the_user_begins_and_ends() {
    assert_eq!(
        messages(vec![said("hello \n")]),
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "[the conversation begins here]" }] },
            { "role": "assistant", "content": [{ "type": "text", "text": "hello \n" }] },
            { "role": "user", "content": [{ "type": "text", "text": "Continue." }] },
        ])
    );
}

#[test]
fn ids_of_other_providers_are_mapped_in_call_and_result_alike() {
    let list = vec![
        user("hi"),
        Message::Assistant(vec![call("functions.f:0|fc_1")]),
        Message::ToolResults(vec![result("functions.f:0|fc_1", vec![Content::text("1")])]),
    ];
    let messages = messages(list);
    let id = &messages[1]["content"][0]["id"];
    assert!(
        id.as_str().unwrap().starts_with("functions_f_0_fc_1-"),
        "{id}"
    );
    assert_eq!(id, &messages[2]["content"][0]["tool_use_id"]);
}

#[test]
fn thoughts_of_this_api_go_back_byte_for_byte_and_no_others() {
    for (data, goes_back) in [
        (
            r#"{"signature":"s", "type":"thinking","thinking":"é\u00e9"}"#,
            true,
        ),
        (r#"{"type":"redacted_thinking","data":"x"}"#, true),
        (
            r#"{"type":"thinking","thinking":"hm","signature":""}"#,
            false,
        ),
        (r#"{"type":"thinking","thinking":"hm"}"#, false),
        (r#"{"field":"reasoning_content"}"#, false),
        (r#"{"type":"reasoning","encrypted_content":"x"}"#, false),
        ("[1]", false),
    ] {
        let parts = vec![thought(data), call("a")];
        let list = vec![user("hi"), Message::Assistant(parts), user("and?")];
        let body = text(&request(list));
        let expected = format!(r#""content":[{data},{{"type":"tool_use""#);
        assert_eq!(body.contains(&expected), goes_back, "{data}: {body}");
        assert_eq!(body.contains(data), goes_back, "{data}: {body}");
    }
}

#[test]
fn arguments_go_back_as_they_came_and_must_be_an_object() {
    let list = |arguments| {
        let call = Message::Assistant(vec![call_with("a", arguments)]);
        request(vec![user("hi"), call, user("and?")])
    };
    let arguments = "{\"b\": 1e400,\"a\":[ ]}";
    assert!(text(&list(arguments)).contains(&format!("\"input\":{arguments}}}")));
    for arguments in ["", "[]", "{", "null"] {
        let error = body(&list(arguments), 32_000).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::BadRequest);
        assert_eq!(
            error.to_string(),
            "the arguments of the call \"a\" are no JSON object"
        );
    }
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = "[ \na]{0,3}";
    prop_oneof![
        prop::collection::vec(text, 0..3)
            .prop_map(|texts| Message::User(texts.into_iter().map(Content::text).collect())),
        prop::collection::vec(text, 0..3).prop_map(|texts| {
            Message::Assistant(texts.into_iter().map(AssistantPart::Text).collect())
        }),
        "[ .a]{0,2}".prop_map(|id| Message::ToolResults(vec![result(&id, vec![])])),
    ]
}

proptest! {
    #[test]
    fn messages_alternate_from_the_user_to_the_user_and_nothing_is_blank(
        list in prop::collection::vec(any_message(), 0..12),
    ) {
        let messages = messages(list);
        let roles: Vec<&str> = messages.as_array().unwrap().iter().map(|message| {
            message["role"].as_str().unwrap()
        }).collect();
        for (place, role) in roles.iter().enumerate() {
            prop_assert_eq!(*role, if place % 2 == 0 { "user" } else { "assistant" });
        }
        prop_assert!(roles.is_empty() || roles.len() % 2 == 1);
        for message in messages.as_array().unwrap() {
            let content = message["content"].as_array().unwrap();
            prop_assert!(!content.is_empty());
            for block in content {
                let blank = block["text"].as_str().is_some_and(|text| text.trim().is_empty());
                prop_assert!(!blank, "{}", message);
            }
        }
    }
}

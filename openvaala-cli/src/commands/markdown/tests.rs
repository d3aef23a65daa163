//! Transcripts that hold together whatever is in them.

use insta::assert_snapshot;
use openvaala_protocol::content::Content;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{ItemHead, ToolResultStatus};
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag};
use uuid::Uuid;

use super::*;

fn made(body: &impl ItemBody) -> Item {
    let at = Timestamp::from_millis(0);
    let id = ItemId::from_uuid(Uuid::from_u128(1));
    Item::new(ItemHead::new(id, ItemKind::Plan, None, 1, at, at), body).unwrap()
}

fn raw(kind: &str, body: &str) -> Item {
    let at = "2026-12-02T04:22:41.123Z";
    let id = Uuid::from_u128(1);
    let text = format!(
        r#"{{"id":"{id}","kind":"{kind}","turn":null,"pos":1,"started_at":"{at}","ended_at":"{at}","body":{body}}}"#
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn said(text: &str) -> Item {
    made(&UserMessage::new(vec![Content::text(text)], false))
}

fn answered(text: &str) -> Item {
    made(&AssistantMessage::new(text.to_owned(), false))
}

fn printed(text: &str) -> Item {
    let call = r#""call":"00000000-0000-0000-0000-000000000003","call_id":"c""#;
    let text = serde_json::to_string(text).unwrap();
    raw(
        "tool_result",
        &format!(
            r#"{{{call},"status":"ok","exit_code":0,"content":[{{"type":"text","text":{text}}}]}}"#
        ),
    )
}

/// The headings that stand in no other block.
fn sections(document: &str) -> Vec<String> {
    let (mut depth, mut sections, mut heading) = (0, Vec::new(), None);
    for event in Parser::new(document) {
        match event {
            Event::Start(tag) => {
                depth += 1;
                if depth == 1 && matches!(tag, Tag::Heading { .. }) {
                    heading = Some(String::new());
                }
            }
            Event::End(_) => {
                depth -= 1;
                sections.extend(heading.take_if(|_| depth == 0));
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    sections
}

#[test]
fn a_transcript_is_a_document_with_a_section_an_item() {
    let conversation = r#"{"id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","title":"say *hi*","status":"idle",
        "root_session":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","executors":[{"executor":"local","root":"/home/me"}],
        "created_at":"2026-12-02T04:00:00.000Z","updated_at":"2026-12-02T04:00:00.000Z"}"#;
    let blob = r#"{"id":"00000000-0000-0000-0000-000000000002","first":1,"last":2,"bytes":99}"#;
    let call = r#""call":"00000000-0000-0000-0000-000000000003","call_id":"c""#;
    let items = [
        said("say *hi*\n\n```\nand open a fence"),
        raw("reasoning", r#"{"text":"hm"}"#),
        raw(
            "assistant_message",
            r#"{"text":"I will \u001b[2Jlook","cut":true}"#,
        ),
        raw(
            "tool_call",
            r#"{"call_id":"c","tool":"bash","arguments":"{\"command\":\"ls\\ncat x\"}"}"#,
        ),
        raw(
            "tool_result",
            &format!(
                r#"{{{call},"status":"failed","exit_code":3,"output":{blob},"content":[{{"type":"text","text":"```\na"}},
                {{"type":"image","media_type":"image/png","data":{{"base64":"AAAA"}}}}]}}"#
            ),
        ),
        raw(
            "tool_call",
            r#"{"call_id":"d","tool":"a`b","arguments":"{\"path\":","executor":"box","cut":true}"#,
        ),
        raw(
            "model_error",
            r#"{"model":{"provider":"p","model":"m"},"message":"no","status":500,"attempts":1}"#,
        ),
        raw("interruption", r#"{"cause":"crash"}"#),
        raw("a_kind_of_tomorrow", r#"{"x":1}"#),
        answered("Done."),
    ];
    let mut document = head(&serde_json::from_str(conversation).unwrap());
    document.extend(items.iter().map(item));
    assert_eq!(sections(&document).len(), items.len() + 1);
    assert_snapshot!(document);
}

#[test]
fn the_result_of_a_call_that_nobody_saw_the_end_of_says_so() {
    let call = r#""call":"00000000-0000-0000-0000-000000000003","call_id":"c""#;
    let status = serde_json::to_string(&ToolResultStatus::Unknown).unwrap();
    let lost = raw(
        "tool_result",
        &format!(r#"{{{call},"status":{status},"content":[]}}"#),
    );
    assert_snapshot!(item(&lost), @r"

    ### Result: outcome not known

    ```
    ```
    ");
}

/// Lines that open and close things, in any order.
fn nasty() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("```"),
        Just("````"),
        Just("~~~"),
        Just("   ```"),
        Just("    ```"),
        Just("```js"),
        Just("- ```"),
        Just("  ```"),
        Just("> ```"),
        Just("1. ~~~"),
        Just("<!--"),
        Just("-->"),
        Just("<pre>"),
        Just("  <script>"),
        Just("- <!--"),
        Just("<div>"),
        Just("## User"),
        Just("# x"),
        Just("==="),
        Just("---"),
        Just("text"),
        Just(""),
        Just("    indented"),
        Just("\t```"),
        Just("``` `"),
        Just("[a]: <"),
        Just("$$"),
        Just("| a |"),
        Just("- a"),
        Just("\\```"),
        Just("`"),
        Just("``"),
    ];
    prop::collection::vec(line, 0..9).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn nothing_that_is_said_or_printed_reaches_beyond_its_section(texts in prop::collection::vec((0..3, nasty()), 1..6)) {
        let mut document = String::from("# title\n");
        let mut expected = vec!["title".to_owned()];
        for (kind, text) in &texts {
            let (heading, made) = match kind {
                0 => ("User", said(text)),
                1 => ("Assistant", answered(text)),
                _ => ("Result: exit 0", printed(text)),
            };
            expected.push(heading.to_owned());
            document.push_str(&item(&made));
        }
        prop_assert_eq!(sections(&document), expected, "{}", document);
    }
}

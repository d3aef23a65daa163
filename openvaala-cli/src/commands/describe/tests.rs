//! What items look like in a terminal.

use insta::assert_snapshot;
use openvaala_protocol::content::BlobRef;
use openvaala_protocol::id::{BlobId, ItemId};
use pretty_assertions::assert_eq;
use uuid::Uuid;

use super::*;

fn called(tool: &str, arguments: &str) -> ToolCall {
    ToolCall::new("call_1".to_owned(), tool.to_owned(), arguments.to_owned())
}

fn ended(status: ToolResultStatus, exit_code: Option<i32>, text: &str) -> ToolResult {
    let call = ItemId::from_uuid(Uuid::from_u128(1));
    let mut result = ToolResult::new(call, "call_1".to_owned(), status, vec![Content::text(text)]);
    result.exit_code = exit_code;
    result
}

fn raw(kind: &str, body: &str) -> Item {
    let id = Uuid::from_u128(1);
    let at = "2026-12-02T04:22:41.123Z";
    let text = format!(
        r#"{{"id":"{id}","kind":"{kind}","turn":null,"pos":1,"started_at":"{at}","ended_at":"{at}","body":{body}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_call_is_one_line_of_what_matters() {
    let big = r#"{"n":12345678901234567890123,"path":"a"}"#;
    let table = [
        (r#"{"command":"ls -1Ap"}"#, "t ls -1Ap"),
        (
            r#"{"path":"README.md","offset":1,"limit":60}"#,
            "t README.md limit=60 offset=1",
        ),
        (
            r#"{"name":"x","deep":{"a":[1]}}"#,
            r#"t deep={"a":[1]} name=x"#,
        ),
        (
            r#"{"patch":"*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: b\n+z\n*** Delete File: c\n*** End Patch"}"#,
            "t ~ src/a.rs, + b, - c",
        ),
        (r#"{"patch":"no patch"}"#, "t no patch"),
        (big, "t a n=12345678901234567890123"),
        (r#"{"command":"a\nb\u001b[2J"}"#, "t a b [2J"),
        (r#"{"command":"#, r#"t {"command":"#),
        ("{}", "t"),
        ("", "t"),
    ];
    for (arguments, line) in table {
        assert_eq!(call(&called("t", arguments), 80), line);
    }
}

#[test]
fn a_call_tells_of_another_machine_and_of_a_cut() {
    let mut there = called("bash", r#"{"command":"ls"#);
    there.executor = "build-host".parse().ok();
    there.cut = true;
    assert_eq!(
        call(&there, 80),
        r#"bash@build-host {"command":"ls [cut off]"#
    );
    there.executor = "local".parse().ok();
    assert_eq!(call(&there, 10), r#"bash {"command"… [cut off]"#);
}

#[test]
fn a_result_is_one_line_with_its_end_and_its_size() {
    use ToolResultStatus::{Failed, Interrupted, Ok, Unknown};
    let table = [
        (Ok, Some(0), "a\nb\n", "bash: exit 0, 2 lines"),
        (Failed, Some(3), "a", "bash: exit 3, 1 line"),
        (Ok, None, "", "bash: ok, 0 lines"),
        (Failed, None, "no such file", "bash: failed, 1 line"),
        (Interrupted, Some(143), "", "bash: interrupted, 0 lines"),
        (Unknown, None, "", "bash: outcome not known, 0 lines"),
    ];
    for (status, code, text, line) in table {
        assert_eq!(result("bash", &ended(status, code, text)), line);
    }
    let mut long = ended(Ok, Some(0), "a");
    long.output = Some(BlobRef::new(
        BlobId::from_uuid(Uuid::from_u128(2)),
        1,
        9,
        500_000,
    ));
    assert_eq!(
        result("bash", &long),
        "bash: exit 0, 1 line of an output of 500000 bytes"
    );
}

#[test]
fn a_transcript_has_every_item_also_those_of_other_versions() {
    let blob = r#"{"id":"00000000-0000-0000-0000-000000000002","first":1,"last":2,"bytes":99}"#;
    let call = r#""call":"00000000-0000-0000-0000-000000000003","call_id":"c""#;
    let items = [
        raw(
            "user_message",
            r#"{"content":[{"type":"text","text":"look\naround"}]}"#,
        ),
        raw("reasoning", r#"{"text":"hm"}"#),
        raw(
            "assistant_message",
            r#"{"text":"I will \u001b]0;evil\u0007look","cut":true}"#,
        ),
        raw(
            "tool_call",
            r#"{"call_id":"c","tool":"bash","arguments":"{\"command\":\"ls\"}"}"#,
        ),
        raw(
            "tool_result",
            &format!(
                r#"{{{call},"status":"ok","exit_code":0,"output":{blob},"content":[{{"type":"text","text":"a\nb"}},
                {{"type":"image","media_type":"image/png","data":{{"base64":"AAAA"}}}}]}}"#
            ),
        ),
        raw("interruption", r#"{"cause":"crash"}"#),
        raw("a_kind_of_tomorrow", r#"{"x":1}"#),
        raw("tool_call", r#"{"nothing":true}"#),
    ];
    let transcript: String = items.iter().map(item).collect();
    assert_snapshot!(transcript, @r#"
    > look
    > around

    (thinks) hm

    I will ]0;evillook [cut off]

    → bash ls

    ← exit 0 (the whole output has 99 bytes)
        a
        b
        [image/png, 3 bytes]

    [interrupted: the server ended without notice]

    [a_kind_of_tomorrow] {"x":1}

    [a tool_call that cannot be read]
    "#);
}

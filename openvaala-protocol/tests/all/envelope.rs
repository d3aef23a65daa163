//! JSON-RPC messages, right ones and wrong ones.

use openvaala_protocol::rpc::{ErrorCode, Incoming, Request, RequestId, Response, RpcError};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};

/// The id and the code that a text is refused with.
#[track_caller]
fn refusal(text: &str) -> (Option<RequestId>, i64) {
    match Incoming::parse(text) {
        Err(response) => (response.id.clone(), response.result.unwrap_err().code),
        Ok(_) => panic!("taken: {}", text.chars().take(200).collect::<String>()),
    }
}

#[test]
fn s_141_messages_that_are_no_json_are_parse_errors() {
    for text in [
        "",
        " ",
        "{",
        "nonsense",
        "{\"jsonrpc\":\"2.0\"",
        "\u{feff}{}",
        "{} {}",
        "{'a':1}",
    ] {
        assert_eq!(refusal(text), (None, ErrorCode::Parse.number()), "{text:?}");
    }
}

#[test]
fn s_141_messages_that_are_no_requests_are_refused_with_their_id_where_it_can_be_read() {
    let number = |id| Some(RequestId::Number(id));
    for (text, id) in [
        ("[]", None),
        (" \n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}]", None),
        ("3", None),
        ("\"text\"", None),
        ("null", None),
        ("true", None),
        ("{}", None),
        (r#"{"id":1,"method":"a"}"#, number(1)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, number(1)),
        (r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, None),
        (r#"{"jsonrpc":"2.0"}"#, None),
        (r#"{"jsonrpc":"2.0","id":7}"#, number(7)),
        (
            r#"{"jsonrpc":"2.0","id":"x"}"#,
            Some(RequestId::Text("x".to_owned())),
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, None),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"a"}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","result":1}"#,
            number(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"a","error":{"code":1,"message":""}}"#,
            number(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#,
            number(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no code"}}"#,
            None,
        ),
        (r#"{"jsonrpc":"2.0","result":1}"#, None),
        (r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, None),
    ] {
        assert_eq!(
            refusal(text),
            (id, ErrorCode::InvalidRequest.number()),
            "{text}"
        );
    }
}

#[test]
fn s_141_a_batch_of_a_hundred_thousand_is_one_refusal() {
    let batch = format!(
        "[{}{{}}]",
        r#"{"jsonrpc":"2.0","method":"a"},"#.repeat(100_000)
    );
    assert_eq!(refusal(&batch), (None, ErrorCode::InvalidRequest.number()));
}

#[test]
fn s_132_a_message_nested_a_million_deep_is_an_error() {
    let deep = 1_000_000;
    for text in [
        "[".repeat(deep),
        r#"{"a":"#.repeat(deep),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#,
            "[".repeat(deep)
        ),
        format!(r#"{{"unknown":{}"#, r#"{"a":"#.repeat(deep)),
    ] {
        assert!(Incoming::parse(&text).is_err());
    }
    // Well formed to its end, so only the depth can be the reason.
    let nested = |depth| {
        let params = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#)
    };
    let id = Some(RequestId::Number(1));
    assert_eq!(
        refusal(&nested(deep)),
        (id.clone(), ErrorCode::Parse.number())
    );
    assert_eq!(refusal(&nested(128)), (id, ErrorCode::Parse.number()));
    assert!(Incoming::parse(&nested(127)).is_ok());
}

#[test]
fn s_132_brackets_within_a_text_are_not_nested() {
    let brackets = format!(r#""\\\"{}""#, "[{".repeat(1000));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":{brackets}}}}}"#);
    assert!(Incoming::parse(&text).is_ok());
}

#[test]
fn what_a_server_tells_may_be_nested_as_deep_as_a_provider_made_it() {
    let body = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let text = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"body":{body}}}}}"#);
    assert!(matches!(
        Incoming::parse(&text),
        Ok(Incoming::Notification(_))
    ));
}

#[test]
fn right_messages_are_told_apart_by_their_fields() {
    let request = r#"{"jsonrpc":"2.0","id":"a b","method":"x/y","params":{ "b":1, "a": 2 }}"#;
    let Ok(Incoming::Request(request)) = Incoming::parse(request) else {
        panic!("no request")
    };
    assert_eq!(
        (request.id, request.method, request.params.unwrap().get()),
        (
            RequestId::Text("a b".to_owned()),
            "x/y".to_owned(),
            r#"{ "b":1, "a": 2 }"#
        )
    );
    let text = r#"{"method":"x","jsonrpc":"2.0","extra":[]}"#;
    let Ok(Incoming::Notification(notice)) = Incoming::parse(text) else {
        panic!("no notice")
    };
    assert_eq!(
        (notice.method, notice.params.is_none()),
        ("x".to_owned(), true)
    );
    let text = r#"{"jsonrpc":"2.0","id":3,"result":null}"#;
    let Ok(Incoming::Response(response)) = Incoming::parse(text) else {
        panic!("no response")
    };
    assert_eq!(
        (response.id, response.result.unwrap().get()),
        (Some(RequestId::Number(3)), "null")
    );
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}"#;
    let Ok(Incoming::Response(response)) = Incoming::parse(text) else {
        panic!("no response")
    };
    let error = response.result.unwrap_err();
    assert_eq!((response.id, error.kind()), (None, Some(ErrorCode::Parse)));
}

#[test]
fn a_version_mismatch_names_both_versions_and_the_way_out() {
    let error = RpcError::version_mismatch("0.0");
    let text = serde_json::to_string(&error).unwrap();
    insta::assert_snapshot!(text);
    let back: RpcError = serde_json::from_str(&text).unwrap();
    assert_eq!(
        back.mismatched_version().as_deref(),
        Some(openvaala_protocol::PROTOCOL_VERSION)
    );
    let other = RpcError::new(ErrorCode::InvalidRequest, "initialize comes first");
    assert_eq!(other.mismatched_version(), None);
}

proptest! {
    #[test]
    fn s_141_no_text_makes_the_parser_panic(text in ".{0,200}") {
        let _ = Incoming::parse(&text);
    }

    #[test]
    fn s_141_no_mixture_of_fields_makes_the_parser_panic(
        fields in proptest::collection::vec((0..7_usize, 0..9_usize), 0..8)
    ) {
        let names = ["jsonrpc", "id", "method", "params", "result", "error", "other"];
        let values = ["\"2.0\"", "1", "null", "\"a\"", "{}", "[]", "{\"code\":1,\"message\":\"\"}", "-0", "1e999"];
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{}\":{}", names[*name], values[*value])).collect();
        let _ = Incoming::parse(&format!("{{{}}}", fields.join(",")));
    }

    #[test]
    fn a_request_comes_back_as_it_was_sent(id: i64, method in ".{0,30}", params in "[a-z]{0,9}") {
        let params = to_raw_value(&params).unwrap();
        let request = Request { id: RequestId::Number(id), method, params: Some(params) };
        let Ok(Incoming::Request(back)) = Incoming::parse(&request.to_text().unwrap()) else {
            panic!("no request")
        };
        prop_assert_eq!(back.id, request.id);
        prop_assert_eq!(back.method, request.method);
        let text = |params: Option<Box<RawValue>>| params.map(|params| params.get().to_owned());
        prop_assert_eq!(text(back.params), text(request.params));
    }

    #[test]
    fn an_error_comes_back_as_it_was_sent(id in ".{0,9}", code: i64, message in ".{0,30}") {
        let error = RpcError { code, message: message.clone(), data: None };
        let response = Response { id: Some(RequestId::Text(id.clone())), result: Err(error) };
        let Ok(Incoming::Response(back)) = Incoming::parse(&response.to_text().unwrap()) else {
            panic!("no response")
        };
        let error = back.result.unwrap_err();
        prop_assert_eq!(back.id, Some(RequestId::Text(id)));
        prop_assert_eq!((error.code, error.message), (code, message));
    }
}

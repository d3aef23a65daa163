//! Items keep their text, wherever they are put.

use openvaala_protocol::content::Content;
use openvaala_protocol::event::{Entry, SessionSnapshot};
use openvaala_protocol::item::{
    AssistantMessage, Item, ItemHead, ItemKind, Opaque, Reasoning, UserMessage,
};
use openvaala_protocol::rpc::params::conversation::EntryParams;
use openvaala_protocol::rpc::params::session::ItemsResult;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Items that a rewriting would damage: numbers beyond 64 bits, unknown kinds and fields, order, spaces, escapes.
const ITEMS: &[&str] = &[
    r#"{"id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","kind":"user_message","turn":null,"pos":1,"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z","body":{"content":[{"type":"text","text":"hello"}]}}"#,
    r#"{"id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","kind":"reasoning","turn":"0192d3f5-8c1e-7a5b-9c2d-000000000001","pos":2,"started_at":"2026-12-02T04:22:41.123Z","ended_at":"2026-12-02T04:22:41.123Z","body":{"text":"","opaque":{"provider":"p","model":"m","data":{"z":12345678901234567890123,"a":1.10,"e":1E+2}}}}"#,
    r#"{"body":{ "b" : [ 1 , 2 ],  "a":"\u0041\/" },"later_field":{"x":-0.0},"pos":9007199254740993,"kind":"dream","id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","ended_at":"2026-12-02T04:22:41.123Z","started_at":"2026-12-02T05:22:41.123456+01:00","turn":null}"#,
    "{\"id\":\"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d\",\n \"kind\":\"plan\",\t\"pos\":3,\"started_at\":\"2026-12-02T04:22:41Z\",\"ended_at\":\"2026-12-02T04:22:41Z\",\"body\":{\"steps\":[]}}",
];

fn item(text: &str) -> Item {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_item_comes_back_byte_for_byte() {
    for text in ITEMS {
        assert_eq!(serde_json::to_string(&item(text)).unwrap(), *text);
        assert_eq!(item(text).raw().get(), *text);
        assert_eq!(item(text).into_raw().get(), *text);
        let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
        assert_eq!(Item::from_raw(raw).unwrap(), item(text));
    }
}

#[test]
fn an_item_inside_an_entry_comes_back_byte_for_byte() {
    for text in ITEMS {
        let entry = format!(
            r#"{{"item":{{"seq":4,"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","item":{text}}}}}"#
        );
        let read: Entry = serde_json::from_str(&entry).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), entry);

        let params = format!(
            r#"{{"conversation_id":"0192d3f5-8c1e-7a5b-9c2d-000000000003","entry":{entry},"cursor":"c"}}"#
        );
        let read: EntryParams = serde_json::from_str(&params).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), params);

        let result = format!(r#"{{"items":[{entry},{entry}],"next":null}}"#);
        let read: ItemsResult = serde_json::from_str(&result).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), result);
    }
}

#[test]
fn an_item_inside_a_snapshot_comes_back_byte_for_byte() {
    let entry = format!(
        r#"{{"item":{{"seq":4,"session_id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","item":{}}}}}"#,
        ITEMS[1]
    );
    let session = r#"{"id":"0192d3f5-8c1e-7a5b-9c2d-000000000002","conversation_id":"0192d3f5-8c1e-7a5b-9c2d-000000000003","parent":null,"path":"main","model":{"provider":"p","model":"m"},"status":"idle","active_turn":null,"pending":[],"held":false,"usage":{"input_tokens":1,"cached_input_tokens":null,"output_tokens":2,"reasoning_tokens":null},"created_at":"2026-12-02T04:22:41.123Z","updated_at":"2026-12-02T04:22:41.123Z"}"#;
    let item = ITEMS[1];
    let text = format!(
        r#"{{"session":{session},"turn":null,"items":[{entry}],"before":3,"questions":[{item}]}}"#
    );
    let read: SessionSnapshot = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn the_head_of_an_item_is_read_whatever_its_kind() {
    let read = item(ITEMS[2]);
    let expected = ItemHead::new(
        "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap(),
        ItemKind::Unknown("dream".into()),
        None,
        9_007_199_254_740_993,
        "2026-12-02T04:22:41.123Z".parse().unwrap(),
        "2026-12-02T04:22:41.123Z".parse().unwrap(),
    );
    assert_eq!(*read.head(), expected);
    assert_eq!(
        read.raw_body().unwrap().get(),
        r#"{ "b" : [ 1 , 2 ],  "a":"\u0041\/" }"#
    );
    assert!(read.body::<UserMessage>().is_none());
}

#[test]
fn a_body_is_decoded_by_its_kind_only() {
    let read = item(ITEMS[0]);
    let body = read.body::<UserMessage>().unwrap().unwrap();
    assert_eq!(body, UserMessage::new(vec![Content::text("hello")], false));
    assert!(read.body::<AssistantMessage>().is_none());
    let wrong = item(&ITEMS[0].replace("user_message", "assistant_message"));
    assert!(wrong.body::<AssistantMessage>().unwrap().is_err());
}

#[test]
fn opaque_data_keeps_integers_that_no_machine_word_holds() {
    let reasoning = item(ITEMS[1]).body::<Reasoning>().unwrap().unwrap();
    let data = reasoning.opaque.as_ref().unwrap().data.get();
    assert_eq!(data, r#"{"z":12345678901234567890123,"a":1.10,"e":1E+2}"#);
    let written = Item::new(item(ITEMS[1]).head().clone(), &reasoning).unwrap();
    assert_eq!(written.raw().get(), ITEMS[1]);
}

#[test]
fn an_item_without_a_whole_head_names_the_field() {
    for (gone, name) in [
        (r#""pos":1,"#, "missing field `pos`"),
        (r#""kind":"user_message","#, "missing field `kind`"),
        (
            r#""id":"0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d","#,
            "missing field `id`",
        ),
    ] {
        let error = serde_json::from_str::<Item>(&ITEMS[0].replace(gone, "")).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let no_body = ITEMS[0].split(",\"body\"").next().unwrap().to_owned() + "}";
    assert!(
        item(&no_body)
            .raw_body()
            .unwrap_err()
            .to_string()
            .contains("missing field `body`")
    );
}

#[test]
fn every_kind_has_one_name_that_comes_back() {
    for kind in ItemKind::KNOWN {
        let text = serde_json::to_string(kind).unwrap();
        assert_eq!(text, format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<ItemKind>(&text).unwrap(), *kind);
    }
    let unknown: ItemKind = serde_json::from_str("\"\\u0064ream\"").unwrap();
    assert_eq!(unknown, ItemKind::Unknown("dream".into()));
}

proptest! {
    #[test]
    fn any_text_of_a_model_survives_in_an_item(text in any::<String>(), pos in 1..u64::MAX, cut: bool) {
        let head = ItemHead::new(
            "0192d3f5-8c1e-7a5b-9c2d-3e4f5a6b7c8d".parse().unwrap(),
            ItemKind::AssistantMessage,
            None,
            pos,
            "2026-12-02T04:22:41.123Z".parse().unwrap(),
            "2026-12-02T04:22:41.123Z".parse().unwrap(),
        );
        let body = AssistantMessage::new(text, cut);
        let written = Item::new(head.clone(), &body).unwrap();
        let read = item(&serde_json::to_string(&written).unwrap());
        prop_assert_eq!(read.head(), &head);
        prop_assert_eq!(read.body::<AssistantMessage>().unwrap().unwrap(), body);
    }

    #[test]
    fn any_integer_of_a_provider_survives(digits in "[1-9][0-9]{0,40}") {
        let data = RawValue::from_string(digits.clone()).unwrap();
        let opaque = Opaque::new("p".to_owned(), "m".to_owned(), None, data);
        let text = serde_json::to_string(&opaque).unwrap();
        let read: Opaque = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.data.get(), digits);
    }
}

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::{json_schema, markdown, typescript};
use crate::item::ItemKind;
use crate::rpc::params::{server, session};
use crate::rpc::{Call, ERRORS, Incoming, METHODS, NOTIFICATIONS, Notice, RequestId, RpcError};

const PROSE: &str = include_str!("protocol.md");

/// The text of every fenced block of that language in the prose.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    PROSE
        .split(&*fence)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

#[test]
fn every_reference_of_the_schema_leads_to_a_definition() {
    fn walk<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| walk(value, found)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match value {
                Value::String(target) if name == "$ref" => {
                    found.insert(target.strip_prefix("#/$defs/").unwrap());
                }
                _ => walk(value, found),
            }),
            _ => {}
        }
    }
    let document = json_schema();
    let mut referred = BTreeSet::from(["Item", "RpcError"]);
    walk(&document, &mut referred);
    let defined: BTreeSet<&str> = document["$defs"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(referred, defined);
}

#[test]
fn the_schema_has_every_row_of_every_table() {
    let document = json_schema();
    let names = |table: &str| -> BTreeSet<String> {
        document[table]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let set = |names: Vec<&str>| {
        names
            .into_iter()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        names("methods"),
        set(METHODS.iter().map(|row| row.name).collect())
    );
    assert_eq!(
        names("notifications"),
        set(NOTIFICATIONS.iter().map(|row| row.name).collect())
    );
    assert_eq!(
        names("items"),
        set(ItemKind::KNOWN.iter().map(ItemKind::as_str).collect())
    );
    assert_eq!(
        names("errors"),
        set(ERRORS.iter().map(|row| row.name).collect())
    );
}

#[test]
fn schema_and_typescript_have_the_same_types_under_the_same_names() {
    let document = json_schema();
    let in_schema: BTreeSet<String> = document["$defs"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let in_typescript: BTreeSet<String> = typescript::declarations().into_keys().collect();
    assert_eq!(in_schema, in_typescript);
}

#[test]
fn no_typescript_type_is_a_bigint() {
    assert!(!typescript().contains("bigint"));
}

#[test]
fn fields_that_may_be_left_out_are_optional_in_typescript() {
    let declarations = typescript::declarations();
    for (name, field) in [
        ("SessionSendParams", "mode?: SendMode"),
        ("SessionSendParams", "session_id?: SessionId | null"),
        ("SessionItemsParams", "cursor?: number"),
        (
            "ConversationCreateParams",
            "executors?: Array<WorkLocation>",
        ),
        ("AssistantMessage", "cut?: boolean"),
        ("RpcError", "data?: unknown"),
    ] {
        assert!(
            declarations[name].contains(field),
            "{name}: {}",
            declarations[name]
        );
    }
}

#[test]
fn every_link_of_the_document_leads_to_a_heading() {
    let document = markdown();
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        heading
            .chars()
            .filter(kept)
            .collect::<String>()
            .to_ascii_lowercase()
    };
    let headings: BTreeSet<String> = document
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(anchor)
        .collect();
    let targets = document
        .split("](#")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap());
    let missing: Vec<&str> = targets
        .filter(|target| !headings.contains(*target))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn the_messages_in_the_document_are_right() {
    let mut methods = std::collections::HashMap::new();
    for text in blocks("json") {
        match Incoming::parse(text).unwrap() {
            Incoming::Request(request) => {
                Call::parse(&request.method, request.params.as_deref()).unwrap();
                methods.insert(request.id, request.method);
            }
            Incoming::Notification(notice) => {
                Notice::parse(&notice.method, notice.params.as_deref())
                    .unwrap()
                    .unwrap();
            }
            Incoming::Response(response) => match response.result {
                Err(error) => assert_eq!(error.message, RpcError::version_mismatch("0.0").message),
                Ok(result) => {
                    let id: RequestId = response.id.unwrap();
                    match methods[&id].as_str() {
                        "initialize" => {
                            serde_json::from_str::<server::InitializeResult>(result.get()).unwrap();
                        }
                        "session/send" => {
                            serde_json::from_str::<session::SendResult>(result.get()).unwrap();
                        }
                        other => panic!("the document has a result of {other}"),
                    }
                }
            },
        }
    }
    let shown: BTreeSet<String> = methods.into_values().collect();
    let expected = [
        "conversation/create",
        "conversation/subscribe",
        "initialize",
        "session/send",
    ];
    assert_eq!(shown, expected.map(str::to_owned).into());
}

#[cfg(feature = "handshake")]
#[test]
fn the_worked_example_of_the_handshake_is_right() {
    use crate::handshake::{Challenge, NONCE_HEADER, client_proof, server_proof};

    let numbers: Vec<&str> = blocks("text")[0]
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    let (token, client) = (numbers[0].parse().unwrap(), numbers[1].parse().unwrap());
    let challenge: Challenge = serde_json::from_str(blocks("text")[1]).unwrap();
    let server = numbers[2].parse().unwrap();
    assert_eq!(
        challenge,
        Challenge {
            nonce: server,
            proof: server_proof(&token, &client, &server)
        }
    );
    let requests = blocks("http");
    let nonce = requests[0].lines().last().unwrap();
    assert_eq!(
        nonce.to_ascii_lowercase(),
        format!("{NONCE_HEADER}: {client}")
    );
    let authorization = client_proof(&token, &client, &server).to_authorization();
    assert!(requests[1].contains(&format!("\nAuthorization: {authorization}\n")));
}

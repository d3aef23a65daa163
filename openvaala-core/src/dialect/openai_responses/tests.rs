mod request;
mod server;
mod stream;
mod variants;

use serde_json::{Value, json};

use super::reader::ResponseReader;
use crate::dialect::http::Redactor;
use crate::dialect::test_answer::{Answer, read_pieces};
use crate::model::{ModelErrorKind, ModelEvent, StopReason};

/// What `shown` says of the tokens when the service does not count them.
const NO_USAGE: &str = "in None cached None out None reasoning None";

fn reader() -> ResponseReader {
    ResponseReader::new("http://test/v1", Redactor::default())
}

/// Reads an answer as it would come over the network.
fn read(bytes: &[u8]) -> Answer {
    read_pieces(reader(), [bytes])
}

/// One event, its type put in front of its fields.
fn event(name: &str, mut fields: Value) -> String {
    fields["type"] = json!(name);
    format!("event: {name}\ndata: {fields}\n\n")
}

/// A delta for the item at that index.
fn delta(name: &str, index: u64, text: &str) -> String {
    event(name, json!({ "output_index": index, "delta": text }))
}

fn added(index: u64, item: Value) -> String {
    event(
        "response.output_item.added",
        json!({ "output_index": index, "item": item }),
    )
}

fn done(index: u64, item: Value) -> String {
    event(
        "response.output_item.done",
        json!({ "output_index": index, "item": item }),
    )
}

fn completed() -> String {
    event("response.completed", json!({ "response": {} }))
}

fn reason(stream: &str) -> StopReason {
    match read(stream.as_bytes()) {
        (mut events, None) => match events.pop() {
            Some(ModelEvent::Finished { reason, .. }) => reason,
            other => panic!("no end: {other:?}"),
        },
        (_, Some(error)) => panic!("{error}"),
    }
}

fn error_kind(stream: &str) -> ModelErrorKind {
    read(stream.as_bytes()).1.unwrap().kind
}

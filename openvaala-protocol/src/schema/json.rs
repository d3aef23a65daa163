//! The protocol as one JSON Schema document.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use ts_rs::TS;

use super::{VisitTypes, names};
use crate::PROTOCOL_VERSION;
use crate::item::{Item, body_types};
use crate::rpc::{ERRORS, ErrorCode, RpcError, method_types, notification_types};

impl VisitTypes for SchemaGenerator {
    fn visit<T: JsonSchema + TS + 'static>(&mut self) {
        self.subschema_for::<T>();
    }
}

/// The whole protocol as one document: `$defs` has every type, and `methods`, `notifications`, `items` and `errors`
/// are the tables that refer to them.
///
/// A schema says what is accepted, so a field with a default is not required in it.
#[must_use]
pub fn json_schema() -> Value {
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The OpenVaala protocol",
        "version": PROTOCOL_VERSION,
        "methods": methods(),
        "notifications": notifications(),
        "items": items(),
        "errors": errors(),
        "$defs": definitions(),
    });
    // The order of keys must not hang on the features of serde_json that others in a build turn on.
    document.sort_all_objects();
    document
}

/// Every type of the protocol by its name.
pub(super) fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    method_types(&mut generator);
    notification_types(&mut generator);
    body_types(&mut generator);
    generator.subschema_for::<Item>();
    generator.subschema_for::<RpcError>();
    let mut definitions = generator.take_definitions(true);
    definitions.values_mut().for_each(say_null);
    definitions.sort_keys();
    definitions.values_mut().for_each(Value::sort_all_objects);
    definitions
}

/// The comments speak of Rust's `None`, which is `null` in JSON.
fn say_null(schema: &mut Value) {
    match schema {
        Value::Array(values) => values.iter_mut().for_each(say_null),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match value {
            Value::String(text) if name == "description" => {
                *text = text.replace("`None`", "`null`")
            }
            _ => say_null(value),
        }),
        _ => {}
    }
}

fn methods() -> Map<String, Value> {
    let row = |method: names::MethodTypes| {
        let errors: Vec<&str> = method
            .info
            .errors
            .iter()
            .map(|code| error_name(*code))
            .collect();
        let row = json!({
            "about": names::about(method.info.about),
            "params": reference(&method.params),
            "result": reference(&method.result),
            "errors": errors,
            "rights": method.info.rights,
            "since": method.info.since,
        });
        (method.info.name.to_owned(), row)
    };
    names::methods().into_iter().map(row).collect()
}

fn notifications() -> Map<String, Value> {
    let rows = names::notifications().into_iter().map(|(info, params)| {
        let row = json!({
            "about": names::about(info.about),
            "params": reference(&params),
            "since": info.since,
        });
        (info.name.to_owned(), row)
    });
    rows.collect()
}

fn items() -> Map<String, Value> {
    let rows = names::items();
    rows.into_iter()
        .map(|(kind, body)| (kind.to_string(), reference(&body)))
        .collect()
}

fn errors() -> Map<String, Value> {
    let rows = ERRORS.iter().map(|error| {
        let row = json!({ "code": error.code.number(), "about": error.about });
        (error.name.to_owned(), row)
    });
    rows.collect()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

pub(super) fn error_name(code: ErrorCode) -> &'static str {
    ERRORS
        .iter()
        .find(|error| error.code == code)
        .map_or("unknown", |error| error.name)
}

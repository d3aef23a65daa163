//! The protocol's document: prose for who writes a client, then all tables and types.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::json::{definitions, error_name};
use super::names;
use crate::item::ItemKind;
use crate::rpc::{ERRORS, ErrorCode, Repeatable, Right};

/// The whole of `docs/protocol.md`.
#[must_use]
pub fn markdown() -> String {
    let definitions = definitions();
    let mut text = include_str!("protocol.md").to_owned();
    methods(&mut text);
    notifications(&mut text);
    errors(&mut text);
    items(&mut text, &definitions);
    types(&mut text, &definitions);
    text
}

fn methods(text: &mut String) {
    text.push_str("\n## Methods\n\n| method | what it does | right |\n| --- | --- | --- |\n");
    for method in names::methods() {
        let (name, about) = (method.info.name, names::about(method.info.about));
        let first = about.lines().next().unwrap_or_default();
        let rights = rights_text(method.info.rights);
        let _ = writeln!(
            text,
            "| [`{name}`](#{}) | {first} | {rights} |",
            anchor(name)
        );
    }
    for method in names::methods() {
        let (params, result) = (link(&method.params), link(&method.result));
        let errors: Vec<String> = method
            .info
            .errors
            .iter()
            .map(|code| code_text(*code))
            .collect();
        let _ = write!(
            text,
            "\n### `{}`\n\n{}\n\n- Parameters: {params}\n- Result: {result}\n",
            method.info.name,
            names::about(method.info.about),
        );
        if !errors.is_empty() {
            let _ = writeln!(text, "- Errors of its own: {}", errors.join(", "));
        }
        let again = match method.info.repeatable {
            Repeatable::Yes => "yes".to_owned(),
            Repeatable::With(field) => format!("yes, if it has `{field}`"),
            Repeatable::No => "no: it does something each time".to_owned(),
        };
        let _ = writeln!(
            text,
            "- May be sent again when its answer was lost: {again}"
        );
        if !method.info.rights.is_empty() {
            let _ = writeln!(text, "- Needs: {}", rights_text(method.info.rights));
        }
        let _ = writeln!(text, "- Since: {}", method.info.since);
    }
}

/// What a token must allow.
fn rights_text(rights: &[Right]) -> String {
    let names: Vec<String> = rights.iter().map(|right| format!("`{right}`")).collect();
    names.join(", ")
}

fn notifications(text: &mut String) {
    text.push_str(
        "\n## Notifications\n\n| notification | what it tells | parameters | since |\n| --- | --- | --- | --- |\n",
    );
    for (info, params) in names::notifications() {
        let about = cell(&names::about(info.about));
        let _ = writeln!(
            text,
            "| `{}` | {about} | {} | {} |",
            info.name,
            link(&params),
            info.since
        );
    }
}

fn errors(text: &mut String) {
    text.push_str(
        "\n## Error codes\n\n| code | name | when, and what to do |\n| --- | --- | --- |\n",
    );
    for error in ERRORS {
        let _ = writeln!(
            text,
            "| {} | `{}` | {} |",
            error.code.number(),
            error.name,
            error.about
        );
    }
    let any = [
        ErrorCode::InvalidRequest,
        ErrorCode::InvalidParams,
        ErrorCode::Overloaded,
        ErrorCode::Forbidden,
        ErrorCode::Runtime,
    ];
    let any = any.map(code_text).join(", ");
    let _ = writeln!(
        text,
        "\nAny method can give {any}; a method lists what else it gives, and what is likely."
    );
}

fn items(text: &mut String, definitions: &Map<String, Value>) {
    text.push_str("\n## Kinds of items\n\n| kind | body | what it is |\n| --- | --- | --- |\n");
    for (kind, body) in names::items() {
        let about = definitions.get(&body).map(description).unwrap_or_default();
        let kind: &ItemKind = kind;
        let _ = writeln!(text, "| `{kind}` | {} | {} |", link(&body), cell(about));
    }
}

fn types(text: &mut String, definitions: &Map<String, Value>) {
    text.push_str(
        "\n## Types\n\nA field marked *optional* may be absent. Numbers are whole unless said otherwise.\n",
    );
    for (name, schema) in definitions {
        let _ = write!(text, "\n### `{name}`\n\n{}\n", description(schema));
        match schema.get("oneOf").and_then(Value::as_array) {
            Some(variants)
                if variants
                    .iter()
                    .all(|variant| variant.get("const").is_some()) =>
            {
                values(text, variants);
            }
            Some(variants) => {
                for variant in variants {
                    let _ = writeln!(text, "\nEither: {}", cell(description(variant)));
                    fields(text, variant);
                }
            }
            None if schema.get("properties").is_some() => fields(text, schema),
            None if schema.get("type").and_then(Value::as_str) == Some("object") => {
                text.push_str("\nAn object without fields.\n");
            }
            None => {
                let _ = writeln!(text, "\nIn JSON: {}", type_text(schema));
            }
        }
    }
}

/// The values of an enumeration.
fn values(text: &mut String, variants: &[Value]) {
    text.push_str("\n| value | meaning |\n| --- | --- |\n");
    for variant in variants {
        let _ = writeln!(
            text,
            "| {} | {} |",
            type_text(variant),
            cell(description(variant))
        );
    }
}

fn fields(text: &mut String, schema: &Value) {
    text.push_str("\n| field | type | meaning |\n| --- | --- | --- |\n");
    rows(text, schema, "");
}

/// A row for each field; those of an object without a name of its own stand as `outer.inner`.
fn rows(text: &mut String, schema: &Value, prefix: &str) {
    let required = schema.get("required").and_then(Value::as_array);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, field) in properties {
        let name = format!("{prefix}{name}");
        if field.get("properties").is_some() {
            rows(text, field, &format!("{name}."));
            continue;
        }
        let own = name.strip_prefix(prefix).unwrap_or_default();
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == own));
        let optional = if is_required { "" } else { ", *optional*" };
        let about = cell(description(field));
        let _ = writeln!(
            text,
            "| `{name}` | {}{optional} | {about} |",
            type_text(field)
        );
    }
}

/// A type in words, with links to those that have a section.
fn type_text(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return link(reference.trim_start_matches("#/$defs/"));
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
        return variants
            .iter()
            .map(type_text)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => {
            format!(
                "array of {}",
                schema.get("items").map(type_text).unwrap_or_default()
            )
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any JSON".to_owned(),
    }
}

fn description(schema: &Value) -> &str {
    schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A text as it may stand in a table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn link(type_name: &str) -> String {
    format!("[`{type_name}`](#{})", anchor(type_name))
}

/// The anchor that Markdown renderers give a heading.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-' || *letter == '_';
    heading
        .chars()
        .filter(kept)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

fn code_text(code: ErrorCode) -> String {
    format!("`{}` ({})", error_name(code), code.number())
}

//! Answers that follow a JSON Schema.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::CliError;
use crate::output::one_line;

/// The largest schema, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a JSON Schema: a file with a JSON object.
pub(super) fn read(path: &Path) -> Result<Box<RawValue>, CliError> {
    let name = one_line(&path.display().to_string(), 200);
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| CliError::usage(format!("{name} cannot be read")).because(error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("{name} has more than {} MiB", MAX_BYTES >> 20);
        return Err(CliError::usage(message).hint("a schema is smaller than that"));
    }
    parse(&name, &bytes)
}

fn parse(name: &str, bytes: &[u8]) -> Result<Box<RawValue>, CliError> {
    let wrong = |what: String| {
        CliError::usage(what)
            .hint("--output-schema takes a JSON Schema, such as {\"type\":\"object\"}")
    };
    let schema: Box<RawValue> = serde_json::from_slice(bytes).map_err(|error| {
        let place = format!("{name}:{}:{}", error.line(), error.column());
        wrong(format!("{place}: that is no JSON")).because(error)
    })?;
    if schema.get().starts_with('{') {
        Ok(schema)
    } else {
        Err(wrong(format!("{name} has JSON, but no JSON object")))
    }
}

/// Checks the answer that was to follow a schema: the model may have been unable to.
pub(super) fn check(answer: Option<&str>) -> Result<&str, CliError> {
    let answer = answer.map(str::trim).unwrap_or_default();
    if answer.is_empty() {
        return Err(CliError::server("the turn has ended without an answer"));
    }
    match serde_json::from_str::<IgnoredAny>(answer) {
        Ok(_) => Ok(answer),
        Err(error) => Err(CliError::server("the answer is no JSON")
            .because(error)
            .because_text(format!("it is: {}", one_line(answer, 400)))
            .hint("the model may not be able to follow a schema: try another one")),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_schema_is_passed_on_as_it_is_written() {
        let text = "{\"z\": 1,\n \"a\": 12345678901234567890123}";
        let schema = parse("s.json", format!("\n{text}\n").as_bytes()).unwrap();
        assert_eq!(schema.get(), text);
    }

    #[test]
    fn what_is_no_schema_is_told_with_its_place() {
        assert_snapshot!(parse("s.json", b"{\n  \"type\": object\n}").unwrap_err().text(), @r#"
        error: s.json:2:11: that is no JSON
          because: expected value at line 2 column 11
        hint: --output-schema takes a JSON Schema, such as {"type":"object"}
        "#);
        assert_snapshot!(parse("s.json", b"[1]").unwrap_err().text(), @r#"
        error: s.json has JSON, but no JSON object
        hint: --output-schema takes a JSON Schema, such as {"type":"object"}
        "#);
        for bytes in [&b""[..], b"{} {}", b"\xff"] {
            let said = parse("s.json", bytes).unwrap_err().text();
            assert!(said.starts_with("error: s.json:"), "{said}");
        }
    }

    #[test]
    fn an_answer_must_be_json_and_nothing_else() {
        assert_eq!(check(Some(" {\"a\":1}\n")).unwrap(), "{\"a\":1}");
        assert_eq!(check(Some("null")).unwrap(), "null");
        let said = |answer| check(answer).unwrap_err().text();
        assert_snapshot!(said(Some("Sure! {\"a\":1}")), @r#"
        error: the answer is no JSON
          because: expected value at line 1 column 1
          because: it is: Sure! {"a":1}
        hint: the model may not be able to follow a schema: try another one
        "#);
        assert_eq!(said(None), "error: the turn has ended without an answer\n");
        assert_eq!(said(Some(" ")), said(None));
    }
}

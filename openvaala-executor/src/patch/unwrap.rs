//! What models put around a patch.

use std::borrow::Cow;

use serde_json::Value;

/// Wrappers stand within each other, but not deeper than this.
const DEEPEST: usize = 6;

/// Takes off what models put around a patch.
///
/// A patch may stand in a code fence, in a heredoc, behind the command `apply_patch` or
/// `applypatch`, in quotes, or in JSON: a string, an object with the patch in `patch`, `input`,
/// `command` or `cmd`, or an array that ends with it. What is no wrapper is left as it is, but
/// for white space at both ends.
#[must_use]
pub fn unwrap(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(trim(text));
    for _ in 0..DEEPEST {
        if text.starts_with("***") {
            break;
        }
        let inner = match &text {
            Cow::Borrowed(text) => inner(text),
            Cow::Owned(text) => inner(text).map(|inner| Cow::Owned(inner.into_owned())),
        };
        match inner {
            Some(inner) => text = inner,
            None => break,
        }
    }
    text
}

fn trim(text: &str) -> &str {
    text.trim().trim_start_matches('\u{feff}').trim()
}

fn inner(text: &str) -> Option<Cow<'_, str>> {
    let plain = fenced(text)
        .or_else(|| command(text))
        .or_else(|| heredoc(text))
        .or_else(|| quoted(text));
    match plain {
        Some(inner) => Some(Cow::Borrowed(trim(inner))),
        None => json(text).map(|inner| Cow::Owned(trim(&inner).to_owned())),
    }
}

/// ```` ```diff … ``` ````
fn fenced(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    first.strip_prefix("```")?;
    rest.trim_end().strip_suffix("```")
}

/// `apply_patch …`
fn command(text: &str) -> Option<&str> {
    let rest = text
        .strip_prefix("apply_patch")
        .or_else(|| text.strip_prefix("applypatch"))?;
    rest.starts_with([' ', '\t', '\r', '\n', '<', '\'', '"'])
        .then_some(rest)
}

/// `<<'EOF' … EOF`
fn heredoc(text: &str) -> Option<&str> {
    let (first, rest) = text.strip_prefix("<<")?.split_once('\n')?;
    let word = first.trim_start_matches('-').trim();
    let word = word.trim_matches(['\'', '"']);
    if word.is_empty() {
        return None;
    }
    let (body, last) = rest.trim_end().rsplit_once('\n')?;
    (last.trim() == word).then_some(body)
}

/// `'…'`
fn quoted(text: &str) -> Option<&str> {
    let strip = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let inner = strip('\'').or_else(|| strip('"'))?;
    trim(inner)
        .starts_with("***")
        .then_some(inner)
        .filter(|inner| inner.contains('\n'))
}

fn json(text: &str) -> Option<String> {
    if !text.starts_with(['{', '[', '"']) {
        return None;
    }
    string_in(serde_json::from_str(text).ok()?)
}

fn string_in(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(mut values) => string_in(values.pop()?),
        Value::Object(mut fields) => ["patch", "input", "command", "cmd"]
            .into_iter()
            .find_map(|name| fields.remove(name))
            .and_then(string_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

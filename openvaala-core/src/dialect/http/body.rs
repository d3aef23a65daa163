//! What a body that is no event stream says: a JSON error, an HTML page, or anything else.

use std::borrow::Cow;

use serde_json::Value;

/// The most characters of a foreign text that an error shows.
const SHOWN_CHARS: usize = 500;

/// An error as a provider words it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProviderError {
    /// What happened, ready to be shown; empty if the provider does not say.
    pub(crate) message: String,
    /// Its code, as text.
    pub(crate) code: String,
    /// Its type.
    pub(crate) kind: String,
}

impl ProviderError {
    /// Reads the body of a failed request.
    pub(crate) fn from_body(body: &str) -> Self {
        let text = body.trim();
        // Some servers answer in the shape of an event stream although nothing streams.
        let json = text
            .strip_prefix("data:")
            .and_then(|rest| rest.lines().next())
            .unwrap_or(text);
        match serde_json::from_str::<Value>(json.trim()) {
            Ok(value) => Self::from_json(&value),
            Err(_) => Self {
                message: shown(&without_html(text)),
                ..Self::default()
            },
        }
    }

    /// Reads an error from the JSON shapes that are in use: `{"error": {…}}`, `{"error": "…"}`,
    /// `{"message": "…"}`, `{"detail": …}`, or a list of one of those.
    pub(crate) fn from_json(value: &Value) -> Self {
        let value = value
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(value);
        let error = value
            .get("error")
            .filter(|error| !error.is_null())
            .unwrap_or(value);
        let message = error
            .as_str()
            .or_else(|| error.get("message")?.as_str())
            .map_or_else(
                || plain(error.get("detail").unwrap_or(error)),
                Cow::Borrowed,
            );
        let field = |name: &str| error.get(name).map(|field| plain(field).into_owned());
        Self {
            message: shown(&message),
            code: field("code").unwrap_or_default(),
            kind: field("type")
                .or_else(|| field("status"))
                .unwrap_or_default(),
        }
    }
}

fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// A foreign text on one line, its control characters escaped, cut to 500 characters.
pub(crate) fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = String::new();
    for (count, character) in line.chars().enumerate() {
        if count == SHOWN_CHARS {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// What an HTML page is called, instead of its tags; any other text as it is.
fn without_html(text: &str) -> Cow<'_, str> {
    let start = text
        .get(..text.len().min(2_048))
        .unwrap_or(text)
        .to_ascii_lowercase();
    if !start.starts_with('<') || !(start.contains("<html") || start.contains("<!doctype")) {
        return Cow::Borrowed(text);
    }
    // Lower-casing ASCII keeps every byte in its place.
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|open| {
        let begin = open + "<title>".len();
        let length = lower.get(begin..)?.find("</title>")?;
        text.get(begin..begin + length)
    });
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => Cow::Owned(format!("an HTML page titled {title:?}")),
        None => Cow::Borrowed("an HTML page"),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn message(body: &str) -> String {
        ProviderError::from_body(body).message
    }

    #[test]
    fn every_shape_of_a_json_error_is_read() {
        let full = r#"{"error":{"message":"no","type":"t","param":null,"code":429}}"#;
        let expected = ProviderError {
            message: "no".into(),
            code: "429".into(),
            kind: "t".into(),
        };
        assert_eq!(ProviderError::from_body(full), expected);
        assert_eq!(ProviderError::from_body(&format!("[{full}]")), expected);
        assert_eq!(
            ProviderError::from_body(&format!("data: {full}\n\ndata: [DONE]\n")),
            expected
        );
        assert_eq!(message(r#"{"error":"no"}"#), "no");
        assert_eq!(message(r#"{"message":"no"}"#), "no");
        assert_eq!(message(r#"{"object":"error","message":"no"}"#), "no");
        assert_eq!(message(r#"{"detail":"no"}"#), "no");
        assert_eq!(message(r#"{"detail":[{"msg":"no"}]}"#), r#"[{"msg":"no"}]"#);
        assert_eq!(message(r#""no""#), "no");
        assert_eq!(message(""), "");
    }

    #[test]
    fn m_08_an_html_page_is_called_by_its_title() {
        let page = "<!DOCTYPE html>\n<HTML><head><TITLE>502 Bad Gateway</TITLE></head><body>…";
        assert_eq!(message(page), "an HTML page titled \"502 Bad Gateway\"");
        assert_eq!(message("<html><body>x</body></html>"), "an HTML page");
    }

    #[test]
    fn m_08_a_body_is_cut_and_its_control_characters_are_escaped() {
        assert_eq!(message("a\x1b[31m\r\nb\0"), "a\\u{1b}[31m b\\u{0}");
        assert_eq!(message(&"é".repeat(501)), format!("{}…", "é".repeat(500)));
    }
}

//! Keeps texts of any content within their place in a Markdown document.

use crate::output::one_line;

/// Text in a fenced block; the fence is longer than any in the text.
pub(super) fn fence(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// Text in a block quote: whatever it opens is closed where the quote ends.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for line in text.lines() {
        quoted.push_str(if line.is_empty() { ">" } else { "> " });
        quoted.push_str(line);
        quoted.push('\n');
    }
    if quoted.is_empty() {
        quoted.push_str(">\n");
    }
    quoted
}

/// A message that is Markdown itself: as it is, or in a block quote if it could reach beyond its end or pass for a
/// section of the transcript.
pub(super) fn message(text: &str) -> String {
    if !text.trim().is_empty() && is_contained(text) {
        format!("{}\n", text.trim_end_matches('\n'))
    } else {
        quote(text)
    }
}

/// A short text as code within a line.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text, 400);
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    // A backtick at either end would become part of the fence.
    let space = if text.is_empty() || text.contains('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A short text with nothing in it that Markdown would read.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

fn longest_run(text: &str, of: char) -> usize {
    let runs = text.split(|c| c != of);
    runs.map(str::len).max().unwrap_or_default()
}

/// Whether a message certainly ends where it ends and has no heading: headings, raw HTML and fences other than
/// plain closed ones are taken for reasons to doubt it.
fn is_contained(text: &str) -> bool {
    let mut open: Option<&str> = None;
    let mut after_text = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(fence) = open {
            if trimmed.trim_start_matches(first(fence)).is_empty() && trimmed.len() >= fence.len() {
                // An indented one may or may not close it.
                if line.trim_end() != trimmed {
                    return false;
                }
                open = None;
            }
            continue;
        }
        let doubtful = trimmed.starts_with(['<', '#']) || is_underline(trimmed) && after_text;
        if doubtful {
            return false;
        }
        open = match opening_fence(line) {
            Fence::Plain(fence) => Some(fence),
            Fence::None => None,
            Fence::Doubtful => return false,
        };
        after_text = !trimmed.is_empty();
    }
    open.is_none()
}

enum Fence<'a> {
    /// The line opens a fence at its beginning.
    Plain(&'a str),
    /// There may be a fence within the line.
    Doubtful,
    None,
}

fn opening_fence(line: &str) -> Fence<'_> {
    for c in ['`', '~'] {
        let rest = line.trim_start_matches(c);
        let length = line.len() - rest.len();
        if length >= 3 && !rest.contains(c) {
            return Fence::Plain(&line[..length]);
        }
    }
    if line.contains("```") || line.contains("~~~") {
        Fence::Doubtful
    } else {
        Fence::None
    }
}

/// Whether a line makes a heading of the one above it.
fn is_underline(line: &str) -> bool {
    !line.is_empty() && (line.chars().all(|c| c == '=') || line.chars().all(|c| c == '-'))
}

fn first(fence: &str) -> char {
    fence.chars().next().unwrap_or('`')
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        assert_eq!(fence("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fence("sh", "ls\n"), "```sh\nls\n```\n");
        assert_eq!(fence("", ""), "```\n```\n");
    }

    #[test]
    fn a_message_that_ends_where_it_ends_stays_as_it_is() {
        for text in [
            "Done.",
            "- one\n- two\n\n```rust\n# fn main() {}\n```\nAnd so on.",
            "~~~~\n~~~\n```\n~~~~\n",
            "a | b\n--|--\n",
            "one\n\n---\n\ntwo",
        ] {
            assert_eq!(message(text), format!("{}\n", text.trim_end()), "{text:?}");
        }
    }

    #[test]
    fn a_message_that_could_reach_further_stands_in_a_quote() {
        for text in [
            "",
            "```\nopen",
            "```\n  ```",
            "````\n```",
            "- ```\n  a\n  ```\n```\nopen",
            "<!-- open",
            "# a heading",
            "another\n-------",
            "say ``` in a line",
        ] {
            assert!(
                message(text).lines().all(|line| line.starts_with('>')),
                "{text:?}"
            );
        }
    }

    #[test]
    fn code_within_a_line_and_plain_text_say_what_they_say() {
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(plain("a *b* <c>"), r"a \*b\* \<c\>");
    }
}

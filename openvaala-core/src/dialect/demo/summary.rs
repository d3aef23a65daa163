//! What the script says in the end.

use super::listing::Listing;

/// What ends every answer of the script, so that nobody takes it for a model.
const NO_AI: &str = "This answer comes from the demo script, not from an AI. \
                     Add a real model with `openvaala provider add`.";
/// The most characters of a file that are quoted.
const QUOTED_CHARS: usize = 400;

/// The answer when a tool is missing.
pub(super) fn no_tool(tool: &str, purpose: &str) -> String {
    format!("I cannot {purpose}, because the tool `{tool}` is not offered here.\n\n{NO_AI}")
}

/// The answer when the folder cannot be listed.
pub(super) fn no_listing(error: &str) -> String {
    format!(
        "I could not look at the folder: {}\n\n{NO_AI}",
        cut(error.trim())
    )
}

/// Sums up the folder and the file that was read; without a path, `found` is the folder's own path.
pub(super) fn summary(listing: &Listing, path: Option<&str>, found: Option<&str>) -> String {
    let folder = match (path, found) {
        (None, Some(folder)) => format!("The folder {}", cut(folder.trim())),
        _ => "This folder".to_owned(),
    };
    let mut paragraphs = vec![listing.in_words(&folder)];
    if let Some(path) = path {
        paragraphs.push(match found {
            Some(text) => file_in_words(path, text),
            None => format!("I could not read {path}."),
        });
    }
    paragraphs.push(NO_AI.to_owned());
    paragraphs.join("\n\n")
}

fn file_in_words(path: &str, text: &str) -> String {
    let (title, paragraph) = if path.ends_with(".toml") || path.ends_with(".json") {
        (value_of(text, "name"), value_of(text, "description"))
    } else {
        (title(text), paragraph(text))
    };
    match (title, paragraph) {
        (Some(title), Some(paragraph)) => {
            format!(
                "{path} is titled \"{}\" and begins:\n\n> {}",
                cut(&title),
                cut(&paragraph)
            )
        }
        (Some(title), None) => format!("{path} is titled \"{}\".", cut(&title)),
        (None, Some(paragraph)) => format!("{path} begins:\n\n> {}", cut(&paragraph)),
        (None, None) => format!("{path} does not say in words what this is."),
    }
}

/// The text of the first `name = "…"` or `"name": "…"`.
fn value_of(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().trim_start_matches('"').strip_prefix(name)?;
        let rest = rest.trim_start_matches('"').trim_start();
        let value = rest
            .strip_prefix(['=', ':'])?
            .trim_start()
            .strip_prefix('"')?;
        let (value, _) = value.split_once('"')?;
        (!value.is_empty()).then(|| value.to_owned())
    })
}

/// The first heading, or else the first line.
fn title(text: &str) -> Option<String> {
    let heading = text.lines().find_map(|line| line.trim().strip_prefix("# "));
    let first = || text.lines().map(str::trim).find(|line| is_prose(line));
    heading.or_else(first).map(|title| title.trim().to_owned())
}

/// The first paragraph after the title.
fn paragraph(text: &str) -> Option<String> {
    let title = title(text)?;
    let after = text
        .lines()
        .skip_while(|line| !line.contains(&title))
        .skip(1);
    let prose = after.map(str::trim).skip_while(|line| !is_prose(line));
    let lines: Vec<&str> = prose.take_while(|line| is_prose(line)).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Whether a line is a sentence, not a heading, badge, picture, rule, table, code or remark of a tool.
fn is_prose(line: &str) -> bool {
    line.starts_with(|first: char| first.is_alphanumeric() || "*_`\"'(>".contains(first))
        && !line.starts_with("```")
        && line.chars().any(char::is_alphabetic)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

//! The head of a `SKILL.md`: the part of YAML that such heads are written in.

/// Why a file is no skill.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// It does not begin with a head between two lines of `---`.
    #[error("it does not begin with front matter between two lines of `---`")]
    NoFrontMatter,
    /// The head lacks a field, or that is empty.
    #[error("its front matter has no `{field}` with a text")]
    Missing {
        /// The field's name.
        field: &'static str,
    },
}

/// Reads `name` and `description`; other fields are left alone.
pub(super) fn read(text: &str) -> Result<(String, String), SkillError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err(SkillError::NoFrontMatter);
    }
    let rest: Vec<&str> = lines.collect();
    let end = rest.iter().position(|line| line.trim_end() == "---");
    let head = &rest[..end.ok_or(SkillError::NoFrontMatter)?];
    let field = |field| value(head, field).ok_or(SkillError::Missing { field });
    Ok((field("name")?, field("description")?))
}

/// The text of a field: on its line, or on the lines below it that stand further in.
fn value(head: &[&str], field: &str) -> Option<String> {
    let mut lines = head.iter().enumerate();
    let (at, first) = lines.find_map(|(at, line)| Some((at, on_line(line, field)?)))?;
    let below = head[at + 1..]
        .iter()
        .take_while(|line| line.is_empty() || line.starts_with([' ', '\t']))
        .map(|line| line.trim());
    // A block of lines, folded or not: it is shown in one line anyway.
    let is_block = matches!(first, ">" | ">-" | ">+" | "|" | "|-" | "|+");
    let first = if is_block { "" } else { first };
    let all: Vec<&str> = std::iter::once(first)
        .chain(below)
        .filter(|line| !line.is_empty())
        .collect();
    let text = all.join(" ");
    let text = if is_block { text } else { unquoted(&text) };
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// What stands behind a field's name, if the line is of that field.
fn on_line<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(field)?.trim_start().strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest.trim())
}

fn unquoted(text: &str) -> String {
    if let Some(rest) = text.strip_prefix('\'') {
        let inside = rest.strip_suffix('\'').unwrap_or(rest);
        return inside.replace("''", "'");
    }
    if let Some(rest) = text.strip_prefix('"') {
        let inside = rest.strip_suffix('"').unwrap_or(rest);
        return inside.replace("\\\"", "\"").replace("\\\\", "\\");
    }
    match text.find(" #") {
        Some(comment) => text[..comment].to_owned(),
        None if text.starts_with('#') => String::new(),
        None => text.to_owned(),
    }
}

//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::Path;

/// The longest part of a line that is shown.
const SHOWN: usize = 120;

/// Everything that is wrong with a configuration: the first fault of every broken file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub struct ConfigError {
    /// The faults, by file.
    pub faults: Vec<ConfigFault>,
}

impl ConfigError {
    pub(super) const fn new(faults: Vec<ConfigFault>) -> Self {
        Self { faults }
    }
}

impl ConfigError {
    /// The configuration could not even be looked at.
    pub(crate) fn fault(error: impl fmt::Display) -> Self {
        Self::new(vec![ConfigFault::whole("configuration", error.to_string())])
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.len() {
            1 => f.write_str("the configuration has an error")?,
            count => write!(f, "the configuration has errors in {count} files")?,
        }
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "\n\n{fault}"))
    }
}

/// One thing that is wrong with a file of the configuration, or with a variable of the environment.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConfigFault {
    /// The path of the file, or `environment: NAME`.
    pub origin: String,
    /// Line and column, both from 1, where they are known.
    pub place: Option<(usize, usize)>,
    /// The field as a path, such as `headers.X-Team`; `None` for the file as a whole.
    pub field: Option<String>,
    /// What is wrong and what would be right.
    pub message: String,
    /// The line itself; `None` where it could show a secret or is not known.
    pub line: Option<String>,
}

impl ConfigFault {
    /// A fault of a file or variable as a whole.
    pub(super) fn whole(origin: impl Into<String>, message: impl Into<String>) -> Self {
        let (origin, message) = (origin.into(), message.into());
        Self {
            origin,
            place: None,
            field: None,
            message,
            line: None,
        }
    }

    /// What the YAML reader found.
    pub(super) fn yaml(path: &Path, text: &str, error: &serde_yaml::Error) -> Self {
        let whole = error.to_string();
        let mut place = error.location().map(|at| (at.line(), at.column()));
        let message = match &place {
            Some((line, column)) => {
                let suffix = format!(" at line {line} column {column}");
                // Some errors go on after the place.
                whole.replacen(&suffix, "", 1)
            }
            None => whole,
        };
        let (field, message) = split_field(&message);
        // The reader names the beginning of the mapping; its second occurrence is what has to go.
        if let Some(name) = message
            .strip_prefix("duplicate field `")
            .and_then(|s| s.strip_suffix('`'))
        {
            place = key_places(text, name).nth(1).or(place);
        }
        Self::at(path, text, place, field, message)
    }

    /// A fault of a field whose line is looked for in the text.
    pub(super) fn field(path: &Path, text: &str, field: &str, message: impl Into<String>) -> Self {
        let last = field.rsplit('.').next().unwrap_or(field);
        let place = key_places(text, last).next();
        Self::at(path, text, place, Some(field.to_owned()), message.into())
    }

    fn at(
        path: &Path,
        text: &str,
        place: Option<(usize, usize)>,
        field: Option<String>,
        message: String,
    ) -> Self {
        let line = place
            .and_then(|(line, _)| text.lines().nth(line - 1))
            .map(without_secret);
        Self {
            origin: path.display().to_string(),
            place,
            field,
            message,
            line,
        }
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.message)?;
        if let (Some((number, column)), Some(line)) = (self.place, &self.line) {
            let margin = " ".repeat(number.to_string().len());
            let shown: String = line.chars().take(SHOWN).map(visible).collect();
            let caret = " ".repeat(column.saturating_sub(1).min(SHOWN));
            write!(
                f,
                "\n {margin} |\n {number} | {shown}\n {margin} | {caret}^"
            )?;
        }
        Ok(())
    }
}

/// One character for one, so that the caret stays where it belongs.
fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Keys whose values are no secrets.
const HARMLESS: &[&str] = &[
    "allow",
    "attempts",
    "api_key_env",
    "base_url",
    "default_model",
    "description",
    "effort",
    "environment",
    "first_wait_ms",
    "headers",
    "idle_exit_seconds",
    "idle_timeout_seconds",
    "keep_days",
    "listen",
    "longest_wait_seconds",
    "model",
    "instructions",
    "provider",
    "retry",
    "compaction",
    "step_limit",
    "repeat_limit",
    "tools",
    "trash",
    "type",
    "unload_after_seconds",
    "agent_limits",
    "depth",
    "open",
    "approval",
    "mode",
    "rules",
    "answer_within_seconds",
    "decision",
    "certificate",
    "hosts",
    "insecure",
    "origins",
    "remote",
];

/// Takes off what may be a secret: any value of a key that is not known to have none, and any text without a key.
fn without_secret(line: &str) -> String {
    let trimmed = line.trim_start();
    match line.split_once(':') {
        Some((key, value)) if HARMLESS.contains(&key.trim()) || value.trim().is_empty() => {
            line.to_owned()
        }
        Some((key, _)) => format!("{key}: …"),
        None if trimmed.starts_with(['-', '[', ']', '{', '}', '#']) => line.to_owned(),
        None => "…".to_owned(),
    }
}

/// Takes the field off the front of a message of the YAML reader: `headers.x: invalid type …`.
fn split_field(message: &str) -> (Option<String>, String) {
    match message.split_once(": ") {
        Some((field, rest)) if !field.contains([' ', '`']) && !field.is_empty() => {
            (Some(field.to_owned()), rest.to_owned())
        }
        _ => (None, message.to_owned()),
    }
}

/// Where lines begin with that key.
fn key_places(text: &str, key: &str) -> impl Iterator<Item = (usize, usize)> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let trimmed = line.trim_start();
        let rest = trimmed.strip_prefix(key)?;
        let column = line.chars().count() - trimmed.chars().count() + 1;
        rest.trim_start()
            .starts_with(':')
            .then_some((index + 1, column))
    })
}

//! Which variables may be set without an effect on what commands do.

/// Variables that change what commands print, and nothing else.
const HARMLESS: &[&str] = &[
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "TERM",
    "TZ",
];

/// Whether a variable is the writer's own, or one that changes only what is printed.
pub(super) fn is_harmless(name: &str) -> bool {
    let is_own = name.starts_with(|char: char| char.is_ascii_lowercase())
        && name
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        && !name.ends_with("_proxy");
    is_own || HARMLESS.contains(&name) || name.starts_with("LC_")
}

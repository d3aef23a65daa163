//! Names that may have been meant.

use std::path::Path;

use crate::error::ExecutorError;
use crate::file::Files;

/// How many names are suggested.
const SUGGESTIONS: usize = 3;

/// How many names of a directory are compared.
const COMPARED: usize = 10_000;

/// What to say behind "there is no file `path`".
pub(in crate::tools) async fn hint(files: &dyn Files, path: &str) -> String {
    let path = Path::new(path);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return String::new();
    };
    let (parent, name) = (parent.to_string_lossy(), name.to_string_lossy());
    match files.list(&parent).await {
        Ok(entries) => {
            let names = entries
                .iter()
                .take(COMPARED)
                .map(|entry| entry.name.as_str());
            let near = near(&name, names);
            if near.is_empty() {
                return String::new();
            }
            format!("; {parent} has {}", near.join(", "))
        }
        Err(ExecutorError::NotFound { .. }) => "; its directory does not exist either".to_owned(),
        Err(_) => String::new(),
    }
}

/// The names most like `wanted`, the nearest first.
fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let most = (wanted.chars().count() / 3).max(1);
    let mut ranked: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let same_stem = Path::new(&lower).file_stem() == Path::new(&wanted).file_stem();
            let distance = distance(&wanted, &lower);
            (distance <= most || same_stem).then_some((distance, name))
        })
        .collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .take(SUGGESTIONS)
        .map(|(_, name)| name)
        .collect()
}

/// How many characters have to be added, dropped or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = [
            "Cargo.lock",
            "README.md",
            "Reader.md",
            "cargo.toml",
            "main.rs",
        ];
        assert_eq!(
            near("readme.md", names.into_iter()),
            ["README.md", "Reader.md"]
        );
        assert_eq!(
            near("Cargo.tml", names.into_iter()),
            ["cargo.toml", "Cargo.lock"]
        );
        assert_eq!(near("xyz", names.into_iter()), Vec::<&str>::new());
    }

    #[test]
    fn distance_counts_changes() {
        let pairs = [("", ""), ("abc", ""), ("kitten", "sitting"), ("漢字", "漢")];
        assert_eq!(pairs.map(|(a, b)| distance(a, b)), [0, 3, 3, 1]);
    }
}

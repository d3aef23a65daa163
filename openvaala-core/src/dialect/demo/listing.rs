//! What the script makes of the output of `ls -1Ap`.

use std::collections::BTreeMap;

/// Files that tell what a folder is, the most telling first.
const TELLING: &[&str] = &["Cargo.toml", "package.json", "pyproject.toml", "go.mod"];
/// Other files of text that do no harm when they are read.
const TEXT_NAMES: &[&str] = &["Makefile", "Dockerfile", "LICENSE", "CMakeLists.txt"];
/// Endings of files of text.
const TEXT_ENDINGS: &[&str] = &[
    "adoc", "c", "cc", "cpp", "cs", "css", "csv", "go", "h", "hpp", "html", "java", "js", "json",
    "jsx", "kt", "lua", "org", "php", "pl", "py", "rb", "rs", "rst", "scala", "sh", "sql", "swift",
    "tex", "toml", "ts", "tsx", "xml", "yaml", "yml",
];
/// The most kinds of files that the summary names.
const KINDS: usize = 5;

/// The names in a folder.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Listing {
    files: Vec<String>,
    folders: Vec<String>,
}

impl Listing {
    /// Reads the output; lines in brackets are remarks of the tool.
    pub(super) fn parse(output: &str) -> Self {
        let mut listing = Self::default();
        for line in output.lines() {
            let is_remark = line.starts_with('[') && line.ends_with(']');
            if line.is_empty() || is_remark {
                continue;
            }
            match line.strip_suffix('/') {
                Some(folder) => listing.folders.push(folder.to_owned()),
                None => listing.files.push(line.to_owned()),
            }
        }
        listing
    }

    /// The file that says most about the folder. Hidden files are left alone: they may hold secrets.
    pub(super) fn best_file(&self) -> Option<&str> {
        let named = |name: &str| self.files.iter().find(|file| file.as_str() == name);
        let ending = |wanted: &[&str]| self.files.iter().find(|file| has_ending(file, wanted));
        self.readme()
            .or_else(|| TELLING.iter().find_map(|name| named(name)))
            .or_else(|| ending(&["md"]))
            .or_else(|| ending(&["txt"]))
            .or_else(|| TEXT_NAMES.iter().find_map(|name| named(name)))
            .or_else(|| ending(TEXT_ENDINGS))
            .map(String::as_str)
    }

    fn readme(&self) -> Option<&String> {
        let is_readme = |file: &&String| {
            file.get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case("readme"))
                && (!file.contains('.') || has_ending(file, &["md", "txt", "rst", "adoc", "org"]))
        };
        // The shortest is the general one: `README.md` before `README.zh-CN.md`.
        self.files
            .iter()
            .filter(is_readme)
            .min_by_key(|file| file.len())
    }

    /// What the folder holds, in one or two sentences.
    pub(super) fn in_words(&self, folder: &str) -> String {
        if self.files.is_empty() && self.folders.is_empty() {
            return format!("{folder} is empty.");
        }
        let files = count(self.files.len(), "file");
        let folders = count(self.folders.len(), "folder");
        let mut words = format!("{folder} holds {files} and {folders}.");
        let kinds = self.kinds();
        if !kinds.is_empty() {
            words.push_str(&format!(" Kinds of files: {}.", kinds.join(", ")));
        }
        words
    }

    /// The commonest endings with their counts.
    fn kinds(&self) -> Vec<String> {
        let mut counts = BTreeMap::<String, usize>::new();
        for file in &self.files {
            if let Some(ending) = ending(file) {
                *counts.entry(ending).or_default() += 1;
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let kinds = counts.into_iter().take(KINDS);
        kinds
            .map(|(ending, count)| format!("{count} .{ending}"))
            .collect()
    }
}

fn ending(file: &str) -> Option<String> {
    let (stem, ending) = file.rsplit_once('.')?;
    (!stem.is_empty() && !ending.is_empty()).then(|| ending.to_ascii_lowercase())
}

fn has_ending(file: &str, wanted: &[&str]) -> bool {
    !file.starts_with('.') && ending(file).is_some_and(|ending| wanted.contains(&ending.as_str()))
}

fn count(number: usize, of: &str) -> String {
    match number {
        0 => format!("no {of}s"),
        1 => format!("1 {of}"),
        _ => format!("{number} {of}s"),
    }
}

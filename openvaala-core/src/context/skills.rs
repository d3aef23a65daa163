//! Skills: files that tell how something is done. The model sees a list of them, and reads those that it needs.

mod front_matter;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use futures::future::join_all;
use openvaala_executor::file::{FileKind, Files};
use openvaala_executor::{ExecutorError, Workspace};

pub use self::front_matter::SkillError;

/// The folder in a work location that has a folder for each skill.
const FOLDER: &str = ".agents/skills";
/// The file in the folder of a skill.
const FILE: &str = "SKILL.md";
/// The most bytes of a file that are looked at: its head is at its beginning.
const HEAD: usize = 16 << 10;
/// The most skills of a work location that are looked at.
const MAX_SKILLS: usize = 200;
/// The most bytes that the list may have in a prompt.
const BUDGET: usize = 8 << 10;
/// The most characters that are shown of a name, and of a description.
const NAME: usize = 64;
const DESCRIPTION: usize = 300;

/// A file that tells how something is done, as the model is told of it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for and when to read it.
    pub description: String,
    /// Where the model reads it.
    pub path: String,
}

impl Skill {
    /// A skill of that name in the file at that path.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        path: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            path: path.into(),
        }
    }

    /// Reads the head of a `SKILL.md`: YAML front matter with `name` and `description`.
    ///
    /// # Errors
    /// [`SkillError`] says what is missing.
    pub fn parse(path: impl Into<String>, text: &str) -> Result<Self, SkillError> {
        let (name, description) = front_matter::read(text)?;
        Ok(Self::new(name, description, path))
    }
}

/// What is found in the work locations: skills, and files that are none with the reason.
#[derive(Debug, Default)]
struct Found {
    skills: Vec<Skill>,
    broken: Vec<(String, String)>,
    /// How many folders were not looked at.
    unread: usize,
}

/// Makes the list for a prompt out of the skills of the work locations and those that every conversation has; empty without any.
///
/// Of skills with the same name the first counts: those of the work locations come first.
pub(crate) async fn list_skills(workspaces: &[Arc<dyn Workspace>], given: &[Skill]) -> String {
    let several = workspaces.len() > 1;
    let read = workspaces.iter().map(|workspace| async move {
        let mut found = read_location(workspace.files(), workspace.root()).await;
        if several {
            let on = workspace.executor();
            for skill in &mut found.skills {
                skill.path = format!("{on}:{}", skill.path);
            }
        }
        found
    });
    let mut all = Found::default();
    for found in join_all(read).await {
        all.skills.extend(found.skills);
        all.broken.extend(found.broken);
        all.unread += found.unread;
    }
    all.skills.extend_from_slice(given);
    section(all)
}

async fn read_location(files: &dyn Files, root: &str) -> Found {
    let folder = format!("{}/{FOLDER}", root.trim_end_matches('/'));
    let mut found = Found::default();
    let entries = match files.list(&folder).await {
        Ok(entries) => entries,
        Err(ExecutorError::NotFound { .. }) => return found,
        Err(error) => {
            found.broken.push((folder, error.to_string()));
            return found;
        }
    };
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| entry.kind != FileKind::File)
        .map(|entry| entry.name)
        .collect();
    names.sort();
    found.unread = names.len().saturating_sub(MAX_SKILLS);
    names.truncate(MAX_SKILLS);
    let paths = names.iter().map(|name| format!("{folder}/{name}/{FILE}"));
    let read = paths.map(|path| async move { (files.read(&path, 0, HEAD).await, path) });
    for (content, path) in join_all(read).await {
        let skill = match content {
            Ok(content) => Skill::parse(&path, &String::from_utf8_lossy(&content))
                .map_err(|error| error.to_string()),
            Err(ExecutorError::NotFound { .. }) => continue,
            Err(error) => Err(error.to_string()),
        };
        match skill {
            Ok(skill) => found.skills.push(skill),
            Err(error) => found.broken.push((path, error)),
        }
    }
    found
}

/// The list, with a word on what is not in it.
fn section(found: Found) -> String {
    let Found {
        skills,
        broken,
        unread,
    } = found;
    let mut names = BTreeSet::new();
    let lines: Vec<String> = skills
        .iter()
        .filter(|skill| names.insert(skill.name.clone()))
        .map(|skill| {
            let (name, about) = (
                shortened(&skill.name, NAME),
                shortened(&skill.description, DESCRIPTION),
            );
            format!("- {name}: {about} ({})\n", skill.path)
        })
        .collect();
    let skipped = broken.iter().map(|(path, why)| {
        let why = shortened(why, DESCRIPTION);
        format!("- {path} is skipped: {why}\n")
    });
    let mut text = String::new();
    let mut left_out = unread;
    for line in lines.into_iter().chain(skipped) {
        if text.len() + line.len() > BUDGET {
            left_out += 1;
        } else {
            text.push_str(&line);
        }
    }
    if left_out > 0 {
        // Writing to a text does not fail.
        let _ = writeln!(text, "- {left_out} more are left out: the list is full.");
    }
    text
}

/// A text in one line, cut to that many characters.
fn shortened(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

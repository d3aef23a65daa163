//! What every conversation is told: `AGENTS.md`, and the skills `skills/NAME/SKILL.md`.

use std::fs;
use std::path::{Path, PathBuf};

use openvaala_core::context::Skill;
use openvaala_protocol::item::Instructions;

use super::load::read;

/// The file with instructions for every conversation.
const AGENTS_MD: &str = "AGENTS.md";
/// The directory with a directory for each skill.
const SKILLS: &str = "skills";
/// The file in the directory of a skill.
const SKILL: &str = "SKILL.md";

/// Reads the instructions; what is wrong with them is a warning.
pub(super) fn load_instructions(dir: &Path, warnings: &mut Vec<String>) -> Option<Instructions> {
    let path = dir.join(AGENTS_MD);
    let text = text_of(&path, warnings)?;
    let bytes = text.len() as u64;
    Some(Instructions::new(path.display().to_string(), text, bytes))
}

/// Reads the skills by the names of their directories; a broken one is a warning and left out.
pub(super) fn load_skills(dir: &Path, warnings: &mut Vec<String>) -> Vec<Skill> {
    let mut skills = Vec::new();
    for path in skill_files(&dir.join(SKILLS)) {
        let Some(text) = text_of(&path, warnings) else {
            continue;
        };
        match Skill::parse(path.display().to_string(), &text) {
            Ok(skill) => skills.push(skill),
            Err(error) => warnings.push(format!("{} is skipped: {error}", path.display())),
        }
    }
    skills
}

fn skill_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .map(|path| path.join(SKILL))
        .collect();
    paths.sort();
    paths
}

fn text_of(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
    read(path).unwrap_or_else(|fault| {
        warnings.push(format!("{fault}; it is skipped"));
        None
    })
}

//! What a shell command line does, as far as it can be told without running it.
//!
//! The grammar is that of tree-sitter-bash. Whatever is not known here to be without effect makes a line
//! [opaque](Line::opaque): then nothing is proven by it.

mod git;
mod harmless;
mod variable;
mod walk;
mod word;
mod wrapper;

use self::walk::Walk;
pub(super) use self::word::Word;

/// The longest line that is looked at.
const MAX_BYTES: usize = 32 << 10;

/// A command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// All simple commands, wherever they stand, those that others run for them as well.
    pub(super) commands: Vec<Command>,
    /// The files that it writes by redirections.
    pub(super) writes: Vec<Word>,
    /// The files that it reads by redirections.
    pub(super) reads: Vec<Word>,
    /// Where it goes; `None` is a folder that is not known.
    pub(super) folders: Vec<Option<String>>,
    /// Why nothing is proven by what is known of it.
    pub(super) opaque: Option<String>,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    /// Its name and its arguments.
    pub(super) words: Vec<Word>,
    /// Whether it does nothing but run another one of the line.
    pub(super) runs_another: bool,
}

impl Line {
    /// Reads a line.
    pub(super) fn read(text: &str) -> Self {
        if text.len() > MAX_BYTES {
            return Self::not_understood("it is too long to be looked at");
        }
        Walk::read(text, 0)
    }

    pub(super) fn not_understood(why: &str) -> Self {
        Self {
            opaque: Some(why.to_owned()),
            ..Self::default()
        }
    }

    /// Why it may do more than read; `None` if it is proven that it does not.
    pub(super) fn harm(&self) -> Option<String> {
        if let Some(why) = &self.opaque {
            return Some(why.clone());
        }
        if let Some(file) = self.writes.first() {
            return Some(format!("it writes to {}", file.raw));
        }
        self.commands
            .iter()
            .find_map(|command| self.harm_of(command))
    }

    /// Why one of its commands may do more than read.
    pub(super) fn harm_of(&self, command: &Command) -> Option<String> {
        if !self.folders.is_empty() && command.is_git() {
            return Some("git may obey what stands in the folder it runs in".to_owned());
        }
        command.harm()
    }

    pub(super) fn is_opaque(&mut self, why: impl Into<String>) {
        self.opaque.get_or_insert_with(|| why.into());
    }
}

impl Command {
    pub(super) const fn new(words: Vec<Word>) -> Self {
        Self {
            words,
            runs_another: false,
        }
    }

    /// The name, if it is known.
    pub(super) fn name(&self) -> Option<&str> {
        self.words.first()?.text.as_deref()
    }

    fn is_git(&self) -> bool {
        self.name()
            .is_some_and(|name| name.rsplit('/').next() == Some("git"))
    }

    /// Why it may do more than read.
    fn harm(&self) -> Option<String> {
        if self.runs_another {
            return None;
        }
        let Some(name) = self.name() else {
            return Some("which command it runs is not known before it runs".to_owned());
        };
        let is_harmless = harmless::is_harmless(name, &self.words[1..]);
        (!is_harmless).then(|| format!("`{}` is not known to only read", self.text()))
    }

    /// Its words with single spaces between, quoted where they would read otherwise.
    pub(super) fn text(&self) -> String {
        let words: Vec<String> = self.words.iter().map(Word::quoted).collect();
        words.join(" ")
    }

    /// The same with the name alone of a program that is given with its folder.
    pub(super) fn text_without_folder(&self) -> Option<String> {
        let (folder, name) = self.name()?.rsplit_once('/')?;
        let rest = self.words[1..].iter().map(Word::quoted);
        let words: Vec<String> = std::iter::once(name.to_owned()).chain(rest).collect();
        (!folder.is_empty() || !name.is_empty()).then(|| words.join(" "))
    }
}

#[cfg(test)]
mod tests;

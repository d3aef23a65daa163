//! Changes files that are there: the new text counts only if the whole still loads.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;

use openvaala_core::dialect::http::Secret;
use openvaala_protocol::conversation::ModelRef;
use sha2::{Digest, Sha256};

use super::ConfigDir;
use super::fault::ConfigError;
use super::load::{MAIN, PROVIDERS, check_name};
use super::provider_type::ProviderType;
use super::write::{AddProviderError, Before};
use crate::environment::Environment;
use crate::files::write_private;

/// How many hex digits a revision has.
const REVISION: usize = 16;
/// The longest text that is written.
const MAX_TEXT: usize = 1 << 20;

/// A change of files that are there.
#[derive(Debug)]
pub(crate) enum ConfigEdit {
    /// A provider that is different.
    Provider(Box<ProviderEdit>),
    /// Another model of new conversations.
    DefaultModel(ModelRef),
    /// Another text of the main file, if it still is at that revision.
    Main {
        text: String,
        expected: Option<String>,
    },
}

/// What is to be different in the file of a provider; what is left out stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderEdit {
    pub(crate) name: String,
    pub(crate) speaks: Option<ProviderType>,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<KeyEdit>,
    pub(crate) default_model: Option<String>,
}

/// Another key.
#[derive(Clone, Debug)]
pub(crate) enum KeyEdit {
    Given(Secret),
    /// Taken from that variable.
    Variable(String),
}

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error(
        "the configuration has changed meanwhile: it is at revision {now} now, look at it again"
    )]
    Changed { now: String },
    #[error("there is no file {} to change: `provider/add` makes one", path.display())]
    NoFile { path: PathBuf },
    #[error("{message}")]
    InvalidName { message: String },
    #[error("with that the configuration does not load, nothing was changed")]
    Refused { source: ConfigError },
    #[error("the text has {bytes} bytes, {MAX_TEXT} are read")]
    TooLarge { bytes: usize },
    #[error(transparent)]
    Files(#[from] AddProviderError),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl EditError {
    /// Whether it is the fault of what was asked for.
    pub(crate) const fn is_of_caller(&self) -> bool {
        !matches!(self, Self::Files(_) | Self::Write { .. })
    }
}

/// Stands for a text.
pub(crate) fn revision(text: Option<&str>) -> String {
    let digest = Sha256::digest(text.unwrap_or_default());
    let mut hex = String::with_capacity(2 * digest.len());
    for byte in digest {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(REVISION);
    hex
}

impl ConfigDir {
    /// The path of the main file, and what it says; `None` if there is none. Blocks for as long as the disk does.
    pub(crate) fn main_text(&self) -> (PathBuf, io::Result<Option<String>>) {
        let path = self.path.join(MAIN);
        // It may be a link into a repository of such files.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let text = match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        (path, text)
    }

    /// Changes a file, if the whole loads with it. Blocks for as long as the disk does.
    pub(crate) fn edit(
        &self,
        edit: ConfigEdit,
        environment: &Environment,
    ) -> Result<Before, EditError> {
        match edit {
            ConfigEdit::Provider(edit) => self.edit_provider(&edit, environment),
            ConfigEdit::DefaultModel(model) => self.set_default_model(&model, environment),
            ConfigEdit::Main { text, expected } => {
                self.set_main(&text, expected.as_deref(), environment)
            }
        }
    }

    fn set_main(
        &self,
        text: &str,
        expected: Option<&str>,
        environment: &Environment,
    ) -> Result<Before, EditError> {
        if text.len() > MAX_TEXT {
            let bytes = text.len();
            return Err(EditError::TooLarge { bytes });
        }
        let (path, old) = self.main_text();
        let old = match old {
            Ok(old) => old,
            Err(source) => return Err(EditError::Write { path, source }),
        };
        let now = revision(old.as_deref());
        if expected.is_some_and(|expected| expected != now) {
            return Err(EditError::Changed { now });
        }
        // Looked at before anything is written: a fault is shown in the text that was given.
        self.load_with(environment, Some(text))
            .map_err(|source| EditError::Refused { source })?;
        self.replace(path, old, text, environment)
    }

    fn set_default_model(
        &self,
        model: &ModelRef,
        environment: &Environment,
    ) -> Result<Before, EditError> {
        let (path, old) = self.main_text();
        let old = match old {
            Ok(old) => old,
            Err(source) => return Err(EditError::Write { path, source }),
        };
        let mut lines = format!(
            "default_model:\n  provider: {}\n  model: {}\n",
            scalar(&model.provider),
            scalar(&model.model)
        );
        if let Some(effort) = &model.effort {
            let _ = writeln!(lines, "  effort: {}", scalar(effort));
        }
        let text = with_field(old.as_deref().unwrap_or_default(), "default_model", &lines);
        self.replace(path, old, &text, environment)
    }

    fn edit_provider(
        &self,
        edit: &ProviderEdit,
        environment: &Environment,
    ) -> Result<Before, EditError> {
        check_name(&edit.name).map_err(|message| EditError::InvalidName { message })?;
        let path = self
            .path
            .join(PROVIDERS)
            .join(format!("{}.yaml", edit.name));
        let old = match fs::read_to_string(&path) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(EditError::NoFile { path });
            }
            Err(source) => return Err(EditError::Write { path, source }),
        };
        let mut text = old.clone();
        let mut set = |field: &str, value: &str| {
            text = with_field(&text, field, &format!("{field}: {}\n", scalar(value)));
        };
        if let Some(speaks) = edit.speaks {
            set("type", speaks.as_str());
        }
        if let Some(base_url) = &edit.base_url {
            set("base_url", base_url);
        }
        if let Some(model) = &edit.default_model {
            set("default_model", model);
        }
        match &edit.key {
            Some(KeyEdit::Given(key)) => {
                set("api_key", key.expose());
                text = with_field(&text, "api_key_env", "");
            }
            Some(KeyEdit::Variable(name)) => {
                set("api_key_env", name);
                text = with_field(&text, "api_key", "");
            }
            None => {}
        }
        self.replace(path, Some(old), &text, environment)
    }

    fn replace(
        &self,
        path: PathBuf,
        old: Option<String>,
        text: &str,
        environment: &Environment,
    ) -> Result<Before, EditError> {
        if let Err(source) = write_private(&path, text) {
            return Err(EditError::Write { path, source });
        }
        let before = Before::of(path, old);
        match self.load(environment) {
            Ok(_) => Ok(before),
            Err(source) => {
                before.restore()?;
                Err(EditError::Refused { source })
            }
        }
    }
}

/// A text as one YAML scalar, whatever is in it: JSON is YAML.
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text with other lines for a field of the outermost mapping; all other lines stay, comments too.
///
/// Without lines the field goes; one that is not there yet comes at the end.
fn with_field(text: &str, field: &str, lines: &str) -> String {
    let mut result = String::with_capacity(text.len() + lines.len());
    let (mut is_inside, mut is_done) = (false, false);
    for line in text.split_inclusive('\n') {
        let begins = line
            .strip_prefix(field)
            .is_some_and(|rest| rest.trim_start().starts_with(':'));
        // What belongs to a field is indented, or begins with the dash of a list.
        let goes_on = line.starts_with([' ', '\t', '-']) && !line.trim().is_empty();
        if begins {
            is_inside = true;
            if !is_done {
                result.push_str(lines);
                is_done = true;
            }
            continue;
        }
        if is_inside && goes_on {
            continue;
        }
        is_inside = false;
        result.push_str(line);
    }
    if !is_done && !lines.is_empty() {
        if !result.is_empty() && !result.ends_with('\n') {
            result.push('\n');
        }
        result.push_str(lines);
    }
    result
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const OLD: &str = "# mine\nlisten: 127.0.0.1:1 # here\ndefault_model:\n  # the best\n  provider: a\n  model: b\n\n# more\nstep_limit: 5";

    #[test]
    fn a_field_gets_other_lines_and_all_others_stay() {
        let lines = "default_model:\n  provider: \"c\"\n";
        assert_eq!(
            with_field(OLD, "default_model", lines),
            "# mine\nlisten: 127.0.0.1:1 # here\ndefault_model:\n  provider: \"c\"\n\n# more\nstep_limit: 5"
        );
        assert_eq!(
            with_field(OLD, "origins", "origins: []\n"),
            format!("{OLD}\norigins: []\n")
        );
        assert_eq!(with_field("", "a", "a: 1\n"), "a: 1\n");
    }

    #[test]
    fn a_field_without_lines_goes_and_one_whose_name_begins_alike_stays() {
        let old = "api_key_env: A\napi_key: >\n  b\n  c\nbase_url: d\n";
        assert_eq!(
            with_field(old, "api_key", ""),
            "api_key_env: A\nbase_url: d\n"
        );
    }

    #[test]
    fn any_text_is_a_scalar() {
        for text in ["", "a: b", "\"", "\u{7}\n#", "~", "yes", "ü", "\\"] {
            let read: String = serde_yaml::from_str(&scalar(text)).unwrap();
            assert_eq!(read, text);
        }
    }
}

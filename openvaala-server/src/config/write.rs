//! Writes to the configuration directory: the new files count only if the whole still loads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use openvaala_core::dialect::http::Secret;
use serde::Serialize;

use super::ConfigDir;
use super::fault::ConfigError;
use super::load::{MAIN, PROVIDERS, check_name, load};
use super::provider_type::ProviderType;
use crate::environment::Environment;
use crate::files::{create_private_dir, write_private};

/// A provider to add.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewProvider {
    /// Its name.
    pub name: String,
    /// What it speaks; `openai_chat` by default.
    pub speaks: ProviderType,
    /// Where its API begins.
    pub base_url: String,
    /// Its key.
    pub key: NewKey,
    /// The model it is asked for by default.
    pub default_model: String,
    /// Whether new conversations ask it. The first provider of a directory is the default in any case.
    pub make_default: bool,
}

impl NewProvider {
    /// A provider that speaks Chat Completions and is not made the default.
    pub fn new(
        name: impl Into<String>,
        base_url: impl Into<String>,
        key: NewKey,
        default_model: impl Into<String>,
    ) -> Self {
        let (name, base_url, default_model) = (name.into(), base_url.into(), default_model.into());
        Self {
            name,
            speaks: ProviderType::default(),
            base_url,
            key,
            default_model,
            make_default: false,
        }
    }
}

/// The key of a provider to add.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NewKey {
    /// It wants none.
    None,
    /// It is written to the provider's file.
    Given(Secret),
    /// It is taken from this variable of the server's environment.
    Variable(String),
}

/// Why a provider was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddProviderError {
    /// The configuration was broken before.
    #[error("the configuration was broken before: mend it first")]
    BrokenBefore {
        /// What is wrong with it.
        source: ConfigError,
    },
    /// There is a provider of that name in the directory.
    #[error("there is a provider {name:?} already: edit or delete {}", path.display())]
    Exists {
        /// The name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// The name cannot be a provider's.
    #[error("{message}")]
    InvalidName {
        /// What is wrong with it.
        message: String,
    },
    /// `openvaala.yaml` names another default model, and only a person can tell where in it.
    #[error("{} names a default model: change `default_model` there to provider {name:?}", path.display())]
    DefaultIsSet {
        /// The file.
        path: PathBuf,
        /// The new provider.
        name: String,
    },
    /// The new provider is wrong; nothing was changed.
    #[error("the new provider is wrong, nothing was changed")]
    Refused {
        /// What is wrong with it.
        source: ConfigError,
    },
    /// The configuration names the provider that is to be removed; nothing was changed.
    #[error("the configuration does not load without provider {name:?}, nothing was changed")]
    StillNamed {
        /// The provider.
        name: String,
        /// What is wrong without it.
        source: ConfigError,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The file of a provider, in the order in which its lines are written.
#[derive(Serialize)]
struct ProviderText<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    base_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key_env: Option<&'a str>,
    default_model: &'a str,
}

pub(super) fn add_provider(
    dir: &ConfigDir,
    provider: &NewProvider,
    environment: &Environment,
) -> Result<PathBuf, AddProviderError> {
    check_name(&provider.name).map_err(|message| AddProviderError::InvalidName { message })?;
    // A default model that names this very provider is no fault: it is about to come true.
    let before = load(&dir.path, None, environment)
        .map_err(|source| AddProviderError::BrokenBefore { source })?;
    let providers = dir.path.join(PROVIDERS);
    let path = providers.join(format!("{}.yaml", provider.name));
    if before.providers.contains_key(&provider.name) {
        return Err(AddProviderError::Exists {
            name: provider.name.clone(),
            path,
        });
    }
    let make_default = provider.make_default || before.providers.is_empty();
    let main = dir.path.join(MAIN);
    // It may be a link into a repository of such files.
    let main = fs::canonicalize(&main).unwrap_or(main);
    let old_main = read_old(&main)?;
    let new_main = match (&before.default_model, make_default) {
        (None, true) => Some(with_default(old_main.as_deref(), &provider.name)),
        (Some(choice), true) if provider.make_default && choice.provider != provider.name => {
            let name = provider.name.clone();
            return Err(AddProviderError::DefaultIsSet { path: main, name });
        }
        _ => None,
    };
    create_private_dir(&providers).map_err(|source| AddProviderError::Write {
        path: providers,
        source,
    })?;
    write(&path, &text(provider, &path)?)?;
    let written = match &new_main {
        Some(text) => write(&main, text),
        None => Ok(()),
    };
    let checked = written.and_then(|()| {
        dir.load(environment)
            .map_err(|source| AddProviderError::Refused { source })
    });
    if let Err(error) = checked {
        restore(&path, None)?;
        if new_main.is_some() {
            restore(&main, old_main.as_deref())?;
        }
        return Err(error);
    }
    Ok(path)
}

/// Files as they were before a change.
#[derive(Debug)]
pub(crate) struct Before(Vec<(PathBuf, Option<String>)>);

impl Before {
    /// A file with that text; `None` means that there was none.
    pub(super) fn of(path: PathBuf, text: Option<String>) -> Self {
        Self(vec![(path, text)])
    }

    fn of_provider(dir: &ConfigDir, name: &str) -> Result<Self, AddProviderError> {
        check_name(name).map_err(|message| AddProviderError::InvalidName { message })?;
        let main = dir.path.join(MAIN);
        let main = fs::canonicalize(&main).unwrap_or(main);
        let file = dir.path.join(PROVIDERS).join(format!("{name}.yaml"));
        let read = |path: PathBuf| read_old(&path).map(|text| (path, text));
        Ok(Self(vec![read(file)?, read(main)?]))
    }

    /// Puts them back.
    pub(crate) fn restore(&self) -> Result<(), AddProviderError> {
        for (path, text) in &self.0 {
            if read_old(path)? != *text {
                restore(path, text.as_deref())?;
            }
        }
        Ok(())
    }
}

pub(super) fn put_provider(
    dir: &ConfigDir,
    provider: &NewProvider,
    environment: &Environment,
) -> Result<Before, AddProviderError> {
    let before = Before::of_provider(dir, &provider.name)?;
    match add_provider(dir, provider, environment) {
        Ok(_) => Ok(before),
        // The answer to the first time may have been lost.
        Err(AddProviderError::Exists { path, .. })
            if read_old(&path)?
                .is_some_and(|old| text(provider, &path).is_ok_and(|new| old == new)) =>
        {
            Ok(before)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn remove_provider(
    dir: &ConfigDir,
    name: &str,
    environment: &Environment,
) -> Result<Before, AddProviderError> {
    let before = Before::of_provider(dir, name)?;
    dir.load(environment)
        .map_err(|source| AddProviderError::BrokenBefore { source })?;
    restore(&dir.path.join(PROVIDERS).join(format!("{name}.yaml")), None)?;
    if let Err(source) = dir.load(environment) {
        before.restore()?;
        let name = name.to_owned();
        return Err(AddProviderError::StillNamed { name, source });
    }
    Ok(before)
}

fn text(provider: &NewProvider, path: &Path) -> Result<String, AddProviderError> {
    let (api_key, api_key_env) = match &provider.key {
        NewKey::None => (None, None),
        NewKey::Given(key) => (Some(key.expose()), None),
        NewKey::Variable(name) => (None, Some(name.as_str())),
    };
    let lines = ProviderText {
        kind: provider.speaks.as_str(),
        base_url: &provider.base_url,
        api_key,
        api_key_env,
        default_model: &provider.default_model,
    };
    serde_yaml::to_string(&lines).map_err(|error| AddProviderError::Write {
        path: path.to_owned(),
        source: io::Error::other(error.to_string()),
    })
}

/// The main file with one more line; its comments and its order stay.
fn with_default(old: Option<&str>, name: &str) -> String {
    let mut text = old.unwrap_or_default().to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("default_model:\n  provider: {name:?}\n"));
    text
}

fn read_old(path: &Path) -> Result<Option<String>, AddProviderError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AddProviderError::Write {
            path: path.to_owned(),
            source,
        }),
    }
}

fn write(path: &Path, text: &str) -> Result<(), AddProviderError> {
    write_private(path, text).map_err(|source| AddProviderError::Write {
        path: path.to_owned(),
        source,
    })
}

fn restore(path: &Path, old: Option<&str>) -> Result<(), AddProviderError> {
    let restored = match old {
        Some(text) => write_private(path, text),
        None => match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
    };
    restored.map_err(|source| AddProviderError::Write {
        path: path.to_owned(),
        source,
    })
}

//! The configuration: a directory of YAML files, and what the environment offers besides.
//!
//! `openvaala.yaml` has everything but the providers, `providers/<name>.yaml` has one model provider each; all of it
//! is optional. Loading checks every file: either all of it counts or nothing does.

mod agents;
mod approvals;
mod context_files;
mod detect;
mod edit;
mod fault;
mod limits;
mod load;
mod provider_type;
mod remote;
mod schema;
mod write;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use openvaala_core::context::Skill;
use openvaala_core::dialect::http::Secret;
use openvaala_core::{AgentLimits, ApprovalPolicy, CompactionPolicy, ContextWindows, RetryPolicy};
use openvaala_protocol::approval::ApprovalRule;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::item::Instructions;

pub use self::approvals::AddRuleError;
pub use self::detect::LocalProbe;
pub(crate) use self::edit::{ConfigEdit, EditError, KeyEdit, ProviderEdit, revision};
pub use self::fault::{ConfigError, ConfigFault};
pub use self::limits::Limits;
pub use self::provider_type::{ProviderType, UnknownProviderType};
pub use self::remote::{RemoteConfig, TlsFiles};
pub(crate) use self::write::Before;
pub use self::write::{AddProviderError, NewKey, NewProvider};
use crate::environment::{Environment, ProviderKeys};

/// The name of the provider that is always there: a script, no AI.
pub(crate) const DEMO: &str = "demo";

/// A configuration directory; it need not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigDir {
    path: PathBuf,
}

impl ConfigDir {
    /// The directory at that path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads and checks every file, without looking for providers elsewhere. Blocks for as long as the disk does.
    ///
    /// # Errors
    /// The first fault of every broken file, or a variable whose value cannot be used.
    pub fn load(&self, environment: &Environment) -> Result<Config, ConfigError> {
        self.load_with(environment, None)
    }

    /// Loads all of it as if the main file had that text; `None` is the text that it has.
    pub(crate) fn load_with(
        &self,
        environment: &Environment,
        main: Option<&str>,
    ) -> Result<Config, ConfigError> {
        let config = load::load(&self.path, main, environment)?;
        let detected = detect::from_environment(environment)?;
        if let Some(choice) = &config.default_model {
            let known = config.providers.values().chain(&detected);
            let known: Vec<&str> = known.map(|p| p.name.as_str()).chain([DEMO]).collect();
            let name = choice.provider.as_str();
            if !known.contains(&name) {
                let message = format!(
                    "there is no provider {name:?}; there are: {}",
                    known.join(", ")
                );
                return Err(load::main_fault(
                    &self.path,
                    main,
                    "default_model.provider",
                    message,
                ));
            }
        }
        let known = config.providers.values().chain(&detected);
        let known: Vec<&str> = known.map(|p| p.name.as_str()).chain([DEMO]).collect();
        let faults = config.agents.values();
        let faults: Vec<ConfigFault> = faults
            .filter_map(|agent| agents::check_provider(&self.path, agent, &known).err())
            .collect();
        if !faults.is_empty() {
            return Err(ConfigError::new(faults));
        }
        Ok(config)
    }

    /// Adds a provider: writes `providers/<name>.yaml`, readable by its owner only.
    ///
    /// The whole configuration is loaded with the new file before this returns; if that fails everything is as it was
    /// before. Blocks for as long as the disk does.
    ///
    /// # Errors
    /// Names what is wrong with the new provider, or which file cannot be written.
    pub fn add_provider(
        &self,
        provider: &NewProvider,
        environment: &Environment,
    ) -> Result<PathBuf, AddProviderError> {
        write::add_provider(self, provider, environment)
    }

    /// Adds a provider like [`add_provider`](Self::add_provider), but takes one that is there exactly so for added.
    pub(crate) fn put_provider(
        &self,
        provider: &NewProvider,
        environment: &Environment,
    ) -> Result<Before, AddProviderError> {
        write::put_provider(self, provider, environment)
    }

    /// Removes the file of a provider, if there is one and the rest still loads.
    pub(crate) fn remove_provider(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<Before, AddProviderError> {
        write::remove_provider(self, name, environment)
    }

    /// Adds a rule about tool calls to `approvals.yaml`; one that is there already changes nothing.
    ///
    /// The whole configuration is loaded with the new file before this returns; if that fails everything is as it was
    /// before. Blocks for as long as the disk does.
    ///
    /// # Errors
    /// The configuration was broken before, or the file cannot be written.
    pub fn add_approval_rule(
        &self,
        rule: &ApprovalRule,
        environment: &Environment,
    ) -> Result<(), AddRuleError> {
        approvals::add_rule(self, rule, environment)
    }
}

/// A configuration whose files are all in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen; `None` means 127.0.0.1:8790, or any free port if that is taken.
    pub listen: Option<SocketAddr>,
    /// Where other machines reach the server; `None` means nowhere.
    pub remote: Option<RemoteConfig>,
    /// The web pages besides its own that may open a connection, such as `https://app.example.org`.
    pub origins: Vec<String>,
    /// The model that new conversations ask; `None` means the first provider's default.
    pub default_model: Option<ModelChoice>,
    /// Variables that children see although their names look like those of secrets.
    pub environment_allow: Vec<String>,
    /// How many model responses a turn may take; `None` means the runtime's own limit.
    pub step_limit: Option<u32>,
    /// At how many equal tool calls in a row, with equal results, a turn fails; `None` means the runtime's own limit, 0 never.
    pub repeat_limit: Option<u32>,
    /// How often a failed model request is asked again.
    pub retry: RetryPolicy,
    /// When a conversation is summarised by itself.
    pub compaction: CompactionPolicy,
    /// How long a server that a client started stays without work; `None` means 30 minutes.
    pub idle_exit: Option<Duration>,
    /// How long a deleted conversation stays in the trash; `None` means for ever.
    pub keep_trash: Option<Duration>,
    /// How long a conversation stays in memory that nobody uses; `None` means the runtime's own time.
    pub unload_after: Option<Duration>,
    /// Which tool calls run without a question: what `openvaala.yaml` says, and the rules of `approvals.yaml`.
    pub approval: ApprovalPolicy,
    /// How many agents may work in a conversation besides the main one.
    pub agent_limits: AgentLimits,
    /// What clients may cost.
    pub limits: Limits,
    /// The providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The agents by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Instructions for every conversation, of `AGENTS.md`.
    pub instructions: Option<Instructions>,
    /// Skills for every conversation, of `skills/NAME/SKILL.md`.
    pub skills: Vec<Skill>,
    /// What is in order but will not work, in words.
    pub warnings: Vec<String>,
}

/// A model that the configuration names.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// The provider's name.
    pub provider: String,
    /// The model; `None` means the provider's default.
    pub model: Option<String>,
    /// How hard it shall think, in the provider's words.
    pub effort: Option<String>,
}

/// An agent of `agents/NAME.yaml`.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is told.
    pub instructions: Option<String>,
    /// The model that it asks; `None` means the default one.
    pub model: Option<ModelChoice>,
    /// How hard the model shall think, in the provider's words.
    pub effort: Option<String>,
    /// The tools that it has; `None` means all.
    pub tools: Option<Vec<String>>,
}

/// A model provider and where it comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Its name.
    pub name: String,
    /// The model it is asked for by default.
    pub default_model: String,
    /// Where it comes from: `providers/x.yaml`, `environment: NAME`, `found at …` or `built in`.
    pub origin: String,
    /// What it speaks and how it is reached.
    pub kind: ProviderKind,
}

/// What answers for a provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProviderKind {
    /// The built-in script.
    Demo,
    /// A service that is asked over HTTP.
    Http(HttpProvider),
}

/// What a service speaks and how it is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpProvider {
    /// What it speaks.
    pub speaks: ProviderType,
    /// Where its API begins.
    pub base_url: String,
    /// Its key.
    pub key: Key,
    /// More headers for every request.
    pub headers: Vec<(String, Secret)>,
    /// How long it may stay silent; `None` means the dialect's default.
    pub idle_timeout: Option<Duration>,
    /// How many tokens an answer may have, for a dialect that has to say so; `None` means the dialect's default.
    pub max_tokens: Option<u32>,
    /// How much its models can read, in tokens, as far as it is known.
    pub context_windows: ContextWindows,
}

/// The key of a provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Key {
    /// It wants none.
    None,
    /// It stands in its file.
    Given(Secret),
    /// It stands in a variable.
    FromVariable {
        /// The variable.
        variable: String,
        /// The key.
        key: Secret,
    },
    /// It should stand in a variable that is not set.
    Missing {
        /// The variable.
        variable: String,
    },
}

impl Config {
    /// Adds the providers that need no file: those whose key is in the environment, else a local model server that
    /// `probe` finds, and always the built-in script.
    ///
    /// # Errors
    /// Names a variable whose value cannot be used.
    pub async fn with_detected(
        mut self,
        environment: &Environment,
        probe: &LocalProbe,
    ) -> Result<Self, ConfigError> {
        let mut found = detect::from_environment(environment)?;
        if self.providers.is_empty() && found.is_empty() && self.default_model.is_none() {
            found.extend(probe.find().await);
        }
        // What comes first is the default if the configuration names none.
        let first = self
            .providers
            .keys()
            .next()
            .or_else(|| found.first().map(|p| &p.name));
        let first = first.map_or(DEMO, String::as_str).to_owned();
        self.default_model.get_or_insert(ModelChoice {
            provider: first,
            model: None,
            effort: None,
        });
        found.push(ProviderConfig {
            name: DEMO.to_owned(),
            default_model: DEMO.to_owned(),
            origin: "built in".to_owned(),
            kind: ProviderKind::Demo,
        });
        for provider in found {
            self.providers
                .entry(provider.name.clone())
                .or_insert(provider);
        }
        Ok(self)
    }

    /// The model that new conversations ask.
    #[must_use]
    pub fn model(&self) -> ModelRef {
        self.resolve(self.default_model.clone().unwrap_or_else(|| ModelChoice {
            provider: DEMO.to_owned(),
            model: None,
            effort: None,
        }))
    }

    /// The model that a choice means.
    pub(crate) fn resolve(&self, choice: ModelChoice) -> ModelRef {
        let default = || {
            self.providers
                .get(&choice.provider)
                .map(|p| p.default_model.clone())
        };
        let model = choice
            .model
            .clone()
            .or_else(default)
            .unwrap_or_else(|| DEMO.to_owned());
        ModelRef {
            provider: choice.provider,
            model,
            effort: choice.effort,
        }
    }

    /// The keys of all providers.
    #[must_use]
    pub(crate) fn keys(&self) -> ProviderKeys {
        let mut keys = ProviderKeys::default();
        for provider in self.providers.values() {
            let ProviderKind::Http(service) = &provider.kind else {
                continue;
            };
            match &service.key {
                Key::None => {}
                Key::Given(key) => keys.values.push(key.expose().to_owned()),
                Key::FromVariable { variable, key } => {
                    keys.names.push(variable.clone());
                    keys.values.push(key.expose().to_owned());
                }
                Key::Missing { variable } => keys.names.push(variable.clone()),
            }
            keys.values.extend(
                service
                    .headers
                    .iter()
                    .map(|(_, value)| value.expose().to_owned()),
            );
        }
        keys
    }
}

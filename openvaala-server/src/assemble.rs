//! From a configuration to what conversations are run with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use openvaala_core::dialect::anthropic_messages::{AnthropicMessages, AnthropicMessagesOptions};
use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::dialect::http::{ClientOptions, HttpOptions, client};
use openvaala_core::dialect::openai_chat::{OpenAiChat, OpenAiChatOptions};
use openvaala_core::dialect::openai_responses::{OpenAiResponses, OpenAiResponsesOptions};
use openvaala_core::executor::Executor;
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use openvaala_core::{AgentDefinition, ContextWindows, Definitions, ModelProvider};
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::rpc::params::provider::Provider;

use crate::config::{
    AgentConfig, Config, DEMO, HttpProvider, Key, ProviderConfig, ProviderKind, ProviderType,
};
use crate::environment::Environment;
use crate::error::ServerError;
use crate::process::leftovers::Marker;

/// How long a server that a client started stays without work, unless configured.
const IDLE_EXIT: Duration = Duration::from_secs(30 * 60);

/// Everything that a configuration comes to.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) config: Config,
    pub(crate) default_model: ModelRef,
    pub(crate) providers: Vec<Provider>,
    /// What answers while no real model is configured, and how to add one.
    pub(crate) notice: Option<String>,
    pub(crate) idle_exit: Duration,
}

/// Makes the definitions of a runtime from a configuration.
pub(crate) fn assemble(
    config: Config,
    environment: &Environment,
    marker: &Marker,
) -> Result<(Assembled, Definitions), ServerError> {
    let mut definitions = Definitions {
        default_model: config.model(),
        ..Definitions::default()
    };
    if let Some(limit) = config.step_limit {
        definitions.step_limit = limit;
    }
    definitions.repeat_limit = config.repeat_limit.unwrap_or(definitions.repeat_limit);
    definitions.retry = config.retry;
    definitions.compaction = config.compaction;
    definitions.context_windows = context_windows(&config);
    definitions.approval = config.approval.clone();
    definitions.agent_limits = config.agent_limits;
    definitions
        .global_instructions
        .clone_from(&config.instructions);
    definitions.skills.clone_from(&config.skills);
    definitions.keep_trash = config.keep_trash;
    definitions.unload_after = config.unload_after.or(definitions.unload_after);
    definitions.agents = config
        .agents
        .values()
        .map(|agent| (agent.name.clone(), agent_definition(agent, &config)))
        .collect();
    definitions.providers = providers(&config, environment)?;
    let variables = environment.for_children(&config.keys(), &config.environment_allow);
    let options = LocalOptions::new(variables).with_marker(marker.to_string());
    let local: Arc<dyn Executor> = Arc::new(LocalExecutor::new(options));
    definitions.executors.insert(local.id().clone(), local);
    let default_model = config.model();
    let assembled = Assembled {
        notice: notice(&default_model),
        providers: config.providers.values().map(listed).collect(),
        idle_exit: config.idle_exit.unwrap_or(IDLE_EXIT),
        default_model,
        config,
    };
    Ok((assembled, definitions))
}

fn context_windows(config: &Config) -> BTreeMap<String, ContextWindows> {
    let known = |provider: &ProviderConfig| match &provider.kind {
        ProviderKind::Demo => None,
        ProviderKind::Http(service) => {
            Some((provider.name.clone(), service.context_windows.clone()))
        }
    };
    config.providers.values().filter_map(known).collect()
}

fn agent_definition(agent: &AgentConfig, config: &Config) -> AgentDefinition {
    let mut definition = AgentDefinition::default();
    definition.description.clone_from(&agent.description);
    definition.instructions.clone_from(&agent.instructions);
    definition.model = agent.model.clone().map(|choice| config.resolve(choice));
    definition.effort.clone_from(&agent.effort);
    definition.tools.clone_from(&agent.tools);
    definition
}

fn notice(model: &ModelRef) -> Option<String> {
    (model.provider == DEMO).then(|| {
        "No model is configured: a built-in demo script answers, which is no AI. \
         Add a real model with `openvaala provider add`."
            .to_owned()
    })
}

fn listed(provider: &ProviderConfig) -> Provider {
    let (dialect, base_url) = match &provider.kind {
        ProviderKind::Demo => ("demo", None),
        ProviderKind::Http(service) => (service.speaks.as_str(), Some(service.base_url.clone())),
    };
    Provider {
        name: provider.name.clone(),
        dialect: dialect.to_owned(),
        base_url,
        default_model: provider.default_model.clone(),
        origin: provider.origin.clone(),
    }
}

fn providers(
    config: &Config,
    environment: &Environment,
) -> Result<BTreeMap<String, Arc<dyn ModelProvider>>, ServerError> {
    let mut providers = BTreeMap::new();
    let mut http = None;
    for provider in config.providers.values() {
        let failed = |source| ServerError::Provider {
            name: provider.name.clone(),
            origin: provider.origin.clone(),
            source,
        };
        let made: Arc<dyn ModelProvider> = match &provider.kind {
            ProviderKind::Demo => Arc::new(DemoProvider::new()),
            ProviderKind::Http(HttpProvider {
                key: Key::Missing { variable },
                ..
            }) => Arc::new(KeylessProvider::new(provider, variable)),
            ProviderKind::Http(service) => {
                // One client for all, made only when one is needed: it reads the system's certificates.
                let client = match &http {
                    Some(client) => reqwest::Client::clone(client),
                    None => {
                        let made = client(proxy(environment)).map_err(failed)?;
                        http.insert(made).clone()
                    }
                };
                speaking(service, http_options(client, service)).map_err(failed)?
            }
        };
        providers.insert(provider.name.clone(), made);
    }
    Ok(providers)
}

fn http_options(client: reqwest::Client, service: &HttpProvider) -> HttpOptions {
    let mut options = HttpOptions::new(client, &service.base_url);
    if let Key::Given(key) | Key::FromVariable { key, .. } = &service.key {
        options = options.with_api_key(key.clone());
    }
    for (name, value) in &service.headers {
        options = options.with_header(name, value.clone());
    }
    match service.idle_timeout {
        Some(timeout) => options.with_idle_timeout(timeout),
        None => options,
    }
}

fn speaking(
    service: &HttpProvider,
    http: HttpOptions,
) -> Result<Arc<dyn ModelProvider>, ModelError> {
    Ok(match service.speaks {
        ProviderType::OpenAiChat => Arc::new(OpenAiChat::new(OpenAiChatOptions::new(http))?),
        ProviderType::OpenAiResponses => {
            Arc::new(OpenAiResponses::new(OpenAiResponsesOptions::new(http))?)
        }
        ProviderType::AnthropicMessages => {
            let mut options = AnthropicMessagesOptions::new(http);
            if let Some(tokens) = service.max_tokens {
                options = options.with_max_tokens(tokens);
            }
            Arc::new(AnthropicMessages::new(options)?)
        }
    })
}

/// The proxy that the environment names.
fn proxy(environment: &Environment) -> ClientOptions {
    let first = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| environment.get(name))
            .map(str::to_owned)
    };
    let mut options = ClientOptions::default();
    options.proxy = first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]);
    options.no_proxy = first(&["NO_PROXY", "no_proxy"]);
    options
}

/// A provider whose key is not there: says so to whoever asks it.
#[derive(Debug)]
struct KeylessProvider {
    message: String,
}

impl KeylessProvider {
    fn new(provider: &ProviderConfig, variable: &str) -> Self {
        let (name, origin) = (&provider.name, &provider.origin);
        let message = format!(
            "the provider {name:?} ({origin}) takes its key from the variable {variable}, which is not set where \
             the server was started: set it, run `openvaala serve stop` and try again"
        );
        Self { message }
    }
}

#[async_trait]
impl ModelProvider for KeylessProvider {
    async fn stream(
        &self,
        _: ModelRequest,
    ) -> Result<BoxStream<'static, Result<ModelEvent, ModelError>>, ModelError> {
        Err(ModelError::new(
            ModelErrorKind::Unauthorized,
            self.message.clone(),
        ))
    }

    fn account(&self) -> Option<&str> {
        None
    }
}

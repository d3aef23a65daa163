//! Providers that need no file: keys in the environment, and model servers on this machine.

use std::time::Duration;

use openvaala_core::ContextWindows;
use openvaala_core::dialect::http::default_client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::fault::{ConfigError, ConfigFault};
use super::load::from_variable;
use super::schema::check_url;
use super::{HttpProvider, Key, ProviderConfig, ProviderKind, ProviderType};
use crate::environment::Environment;

/// How long model servers on this machine have to answer.
const PROBE_LIMIT: Duration = Duration::from_millis(300);
/// The largest list of models that is read.
const MAX_LIST: usize = 1 << 20;

/// A service that is there as soon as its key is.
struct Service {
    name: &'static str,
    key_variable: &'static str,
    url_variable: &'static str,
    url: &'static str,
    speaks: ProviderType,
    model: &'static str,
}

const SERVICES: &[Service] = &[
    Service {
        name: "openai",
        key_variable: "OPENAI_API_KEY",
        url_variable: "OPENAI_BASE_URL",
        url: "https://api.openai.com/v1",
        speaks: ProviderType::OpenAiChat,
        model: "gpt-5.4-mini",
    },
    Service {
        name: "anthropic",
        key_variable: "ANTHROPIC_API_KEY",
        url_variable: "ANTHROPIC_BASE_URL",
        url: "https://api.anthropic.com",
        speaks: ProviderType::AnthropicMessages,
        model: "claude-sonnet-5-5",
    },
    Service {
        name: "openrouter",
        key_variable: "OPENROUTER_API_KEY",
        url_variable: "OPENROUTER_BASE_URL",
        url: "https://openrouter.ai/api/v1",
        speaks: ProviderType::OpenAiChat,
        model: "openrouter/auto",
    },
    Service {
        name: "deepseek",
        key_variable: "DEEPSEEK_API_KEY",
        url_variable: "DEEPSEEK_BASE_URL",
        url: "https://api.deepseek.com/v1",
        speaks: ProviderType::OpenAiChat,
        model: "deepseek-flash",
    },
    Service {
        name: "groq",
        key_variable: "GROQ_API_KEY",
        url_variable: "GROQ_BASE_URL",
        url: "https://api.groq.com/openai/v1",
        speaks: ProviderType::OpenAiChat,
        model: "openai/gpt-oss-120b",
    },
    Service {
        name: "xai",
        key_variable: "XAI_API_KEY",
        url_variable: "XAI_BASE_URL",
        url: "https://api.x.ai/v1",
        speaks: ProviderType::OpenAiChat,
        model: "grok-4.6",
    },
];

/// The providers whose keys are in the environment, the preferred one first.
pub(super) fn from_environment(
    environment: &Environment,
) -> Result<Vec<ProviderConfig>, ConfigError> {
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for service in SERVICES {
        if environment.get(service.key_variable).is_none() {
            continue;
        }
        match service.provider(environment) {
            Ok(provider) => found.push(provider),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        Ok(found)
    } else {
        Err(ConfigError::new(faults))
    }
}

impl Service {
    fn provider(&self, environment: &Environment) -> Result<ProviderConfig, ConfigFault> {
        let fault =
            |variable, message| ConfigFault::whole(format!("environment: {variable}"), message);
        let key = from_variable(self.key_variable.to_owned(), environment)
            .map_err(|message| fault(self.key_variable, message))?;
        let url = environment.get(self.url_variable).unwrap_or(self.url);
        let base_url = check_url(url).map_err(|message| fault(self.url_variable, message))?;
        Ok(ProviderConfig {
            name: self.name.to_owned(),
            default_model: self.model.to_owned(),
            origin: format!("environment: {}", self.key_variable),
            kind: service(self.speaks, base_url, key),
        })
    }
}

const fn service(speaks: ProviderType, base_url: String, key: Key) -> ProviderKind {
    ProviderKind::Http(HttpProvider {
        speaks,
        base_url,
        key,
        headers: Vec::new(),
        idle_timeout: None,
        max_tokens: None,
        context_windows: ContextWindows::unknown(),
    })
}

/// Where to look for model servers on this machine.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LocalProbe {
    /// Where Ollama may be, `host:port`; `None`: do not look for it.
    pub ollama: Option<String>,
    /// Where the server of llama.cpp may be, `host:port`; `None`: do not look for it.
    pub llama_cpp: Option<String>,
    /// How long they have to answer; 300 milliseconds by default.
    pub limit: Duration,
}

impl LocalProbe {
    /// Looks nowhere.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self {
            ollama: None,
            llama_cpp: None,
            limit: PROBE_LIMIT,
        }
    }

    /// Looks at the usual ports, at `OLLAMA_HOST` for Ollama, and nowhere if `OPENVAALA_NO_PROBE` is set.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Self {
        if environment.get("OPENVAALA_NO_PROBE").is_some() {
            return Self::nowhere();
        }
        let ollama = environment.get("OLLAMA_HOST").unwrap_or("127.0.0.1:11434");
        Self {
            ollama: Some(ollama_address(ollama)),
            llama_cpp: Some("127.0.0.1:8080".to_owned()),
            limit: PROBE_LIMIT,
        }
    }

    /// Asks both at once; whoever has a model is a provider.
    pub(super) async fn find(&self) -> Option<ProviderConfig> {
        let ollama = async {
            let address = self.ollama.as_deref()?;
            let list: OllamaList = get(&format!("http://{address}/api/tags")).await?;
            let model = list.models.into_iter().next()?.name;
            Some(local("ollama", address, model))
        };
        let llama_cpp = async {
            let address = self.llama_cpp.as_deref()?;
            let list: ModelList = get(&format!("http://{address}/v1/models")).await?;
            let model = list.data.into_iter().next()?.id;
            Some(local("llama_cpp", address, model))
        };
        let (ollama, llama_cpp) =
            tokio::join!(timeout(self.limit, ollama), timeout(self.limit, llama_cpp));
        ollama.ok().flatten().or_else(|| llama_cpp.ok().flatten())
    }
}

#[derive(Deserialize)]
struct OllamaList {
    models: Vec<OllamaModel>,
}

#[derive(Deserialize)]
struct OllamaModel {
    name: String,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

fn local(name: &str, address: &str, model: String) -> ProviderConfig {
    ProviderConfig {
        name: name.to_owned(),
        default_model: model,
        origin: format!("found at {address}"),
        kind: service(
            ProviderType::OpenAiChat,
            format!("http://{address}/v1"),
            Key::None,
        ),
    }
}

/// The JSON at an address; whatever else is there is no model server.
async fn get<T: DeserializeOwned>(url: &str) -> Option<T> {
    let mut response = default_client().ok()?.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_LIST {
            return None;
        }
    }
    serde_json::from_slice(&body).ok()
}

/// `OLLAMA_HOST` may be a URL, a host, a port, or what a server listens on.
fn ollama_address(text: &str) -> String {
    let text = text.trim().trim_end_matches('/');
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.ends_with(':') => (host, port),
        _ => (text, "11434"),
    };
    let host = match host {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        host => host,
    };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::ollama_address;

    #[test]
    fn every_form_of_ollama_host_is_an_address() {
        let table = [
            ("127.0.0.1:11434", "127.0.0.1:11434"),
            ("http://box:1234/", "box:1234"),
            ("0.0.0.0", "127.0.0.1:11434"),
            (":5000", "127.0.0.1:5000"),
            ("[::1]:5000", "[::1]:5000"),
            ("box", "box:11434"),
        ];
        for (given, expected) in table {
            assert_eq!(ollama_address(given), expected, "{given}");
        }
    }
}

//! `agents/NAME.yaml`: agents with instructions, a model and tools of their own.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};

use super::fault::ConfigFault;
use super::load::{name_of, parse, read, yaml_files};
use super::schema::{Filled, from_text, given};
use super::{AgentConfig, ModelChoice};

/// The directory with a file for each agent.
pub(super) const AGENTS: &str = "agents";

/// An agent's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "settings, each as `name: value`")]
struct AgentFile {
    #[serde(default, deserialize_with = "given")]
    description: Option<Filled>,
    #[serde(default, deserialize_with = "given")]
    instructions: Option<Filled>,
    #[serde(default, deserialize_with = "given")]
    model: Option<Model>,
    #[serde(default, deserialize_with = "given")]
    effort: Option<Filled>,
    #[serde(default, deserialize_with = "given")]
    tools: Option<Vec<Filled>>,
}

/// A model as `PROVIDER/MODEL`, or a provider alone for its default model.
#[derive(Debug)]
struct Model(ModelChoice);

impl<'de> Deserialize<'de> for Model {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "a model as PROVIDER/MODEL", |text| {
            let (provider, model) = match text.trim().split_once('/') {
                Some((provider, model)) => (provider, Some(model.to_owned())),
                None => (text.trim(), None),
            };
            if provider.is_empty() || model.as_deref() == Some("") {
                return Err(format!("{text:?} is no model: expected PROVIDER/MODEL"));
            }
            Ok(Self(ModelChoice {
                provider: provider.to_owned(),
                model,
                effort: None,
            }))
        })
    }
}

/// Reads all agents; adds what is wrong to `faults`.
pub(super) fn load_agents(
    dir: &Path,
    faults: &mut Vec<ConfigFault>,
) -> BTreeMap<String, AgentConfig> {
    let mut agents = BTreeMap::new();
    let files = yaml_files(&dir.join(AGENTS)).unwrap_or_else(|fault| {
        faults.push(fault);
        Vec::new()
    });
    for path in files {
        match load_agent(&path) {
            Ok(agent) => {
                agents.insert(agent.name.clone(), agent);
            }
            Err(fault) => faults.push(fault),
        }
    }
    agents
}

fn load_agent(path: &Path) -> Result<AgentConfig, ConfigFault> {
    let whole = |message: String| ConfigFault::whole(path.display().to_string(), message);
    let name = name_of(path, "an agent")?;
    let text = read(path)?.ok_or_else(|| whole("it is gone".to_owned()))?;
    let file: AgentFile = parse(path, &text)?;
    let tools = file
        .tools
        .map(|tools| tools.into_iter().map(|tool| tool.0).collect());
    Ok(AgentConfig {
        name: name.to_owned(),
        description: file.description.map(|text| text.0),
        instructions: file.instructions.map(|text| text.0),
        model: file.model.map(|model| model.0),
        effort: file.effort.map(|effort| effort.0),
        tools,
    })
}

/// Names the agent whose model is of a provider that there is not.
pub(super) fn check_provider(
    dir: &Path,
    agent: &AgentConfig,
    known: &[&str],
) -> Result<(), ConfigFault> {
    let Some(choice) = agent.model.as_ref() else {
        return Ok(());
    };
    let provider = choice.provider.as_str();
    if known.contains(&provider) {
        return Ok(());
    }
    let path = dir.join(AGENTS).join(format!("{}.yaml", agent.name));
    let text = read(&path).ok().flatten().unwrap_or_default();
    let message = format!(
        "there is no provider {provider:?}; there are: {}",
        known.join(", ")
    );
    Err(ConfigFault::field(&path, &text, "model", message))
}

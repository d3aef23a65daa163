//! What conversations are run with: models, executors, tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::Executor;
use openvaala_executor::tool::Tool;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::ExecutorId;
use openvaala_protocol::item::Instructions;

use super::windows::{CompactionPolicy, ContextWindows};
use crate::agent::{Limits, RetryPolicy};
use crate::agents::AgentLimits;
use crate::approval::ApprovalPolicy;
use crate::context::Skill;
use crate::error::RuntimeError;
use crate::model::ModelProvider;

/// How many model responses a turn may take, unless something else is set.
pub(crate) const STEP_LIMIT: u32 = 500;
/// How often in a row the same call may have the same result, unless something else is set.
const REPEAT_LIMIT: u32 = 5;
/// How long a conversation stays open that nobody uses.
const UNLOAD_AFTER: Duration = Duration::from_secs(600);

/// What conversations are run with; can be replaced while the runtime runs and counts from the next turn on.
#[derive(Clone, Debug)]
pub struct Definitions {
    /// Model providers by name.
    pub providers: BTreeMap<String, Arc<dyn ModelProvider>>,
    /// The model that new conversations ask.
    pub default_model: ModelRef,
    /// Executors by id.
    pub executors: BTreeMap<ExecutorId, Arc<dyn Executor>>,
    /// Tools that belong to no executor; every conversation has them.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Agents by name; a conversation names the one that works in it.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Added to the system prompt of every conversation.
    pub instructions: Option<String>,
    /// Instructions that stand in every conversation before those of its folders, as an item of their own.
    pub global_instructions: Option<Instructions>,
    /// Skills that every conversation is told of beside those of its folders.
    pub skills: Vec<Skill>,
    /// How many model responses a turn may take; 500 unless set.
    pub step_limit: u32,
    /// At how many equal tool calls in a row, with equal results, a turn fails; 5 unless set, 0 for never. The model is
    /// warned two before.
    pub repeat_limit: u32,
    /// How often a failed model request is asked again.
    pub retry: RetryPolicy,
    /// How long a deleted conversation stays in the trash; for ever unless set.
    pub keep_trash: Option<Duration>,
    /// How long a conversation stays open that nobody uses; 10 minutes unless set, `None` for ever.
    pub unload_after: Option<Duration>,
    /// When a conversation is summarised by itself.
    pub compaction: CompactionPolicy,
    /// How much the models can read, by the name of the provider.
    pub context_windows: BTreeMap<String, ContextWindows>,
    /// Which tool calls run without a question; all of them unless set. A conversation may have a mode of its own.
    pub approval: ApprovalPolicy,
    /// How many agents may work in a conversation besides the main one.
    pub agent_limits: AgentLimits,
}

/// An agent with instructions, a model and tools of its own.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// What it is for, in a line for people who choose.
    pub description: Option<String>,
    /// Added to its system prompt.
    pub instructions: Option<String>,
    /// The model of conversations that it begins; `None` means the default one.
    pub model: Option<ModelRef>,
    /// How hard that model shall think, in the provider's words; `None` leaves it to `model`.
    pub effort: Option<String>,
    /// The names of the tools that it has; `None` means all.
    pub tools: Option<Vec<String>>,
}

impl AgentDefinition {
    /// An agent that is told that.
    pub fn instructed(instructions: impl Into<String>) -> Self {
        Self {
            instructions: Some(instructions.into()),
            ..Self::default()
        }
    }

    /// The same with another model.
    #[must_use]
    pub fn with_model(mut self, model: ModelRef) -> Self {
        self.model = Some(model);
        self
    }

    /// The same with these tools only.
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }
}

impl Default for Definitions {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            default_model: ModelRef {
                provider: String::new(),
                model: String::new(),
                effort: None,
            },
            executors: BTreeMap::new(),
            tools: Vec::new(),
            agents: BTreeMap::new(),
            instructions: None,
            global_instructions: None,
            skills: Vec::new(),
            step_limit: STEP_LIMIT,
            repeat_limit: REPEAT_LIMIT,
            retry: RetryPolicy::default(),
            keep_trash: None,
            unload_after: Some(UNLOAD_AFTER),
            compaction: CompactionPolicy::default(),
            context_windows: BTreeMap::new(),
            approval: ApprovalPolicy::default(),
            agent_limits: AgentLimits::default(),
        }
    }
}

impl Definitions {
    /// How far a turn goes.
    pub(crate) const fn limits(&self) -> Limits {
        Limits {
            steps: self.step_limit,
            repeats: self.repeat_limit,
            retry: self.retry,
            tokens: None,
        }
    }

    /// How much a model can read, in tokens, if that is known.
    pub(crate) fn window_of(&self, model: &ModelRef) -> Option<u64> {
        self.context_windows.get(&model.provider)?.of(&model.model)
    }

    /// Finds an agent by name.
    pub(crate) fn agent(&self, name: &str) -> Result<&AgentDefinition, RuntimeError> {
        self.agents
            .get(name)
            .ok_or_else(|| RuntimeError::UnknownAgent {
                name: name.to_owned(),
                known: self.agents.keys().cloned().collect(),
            })
    }

    /// The model that a new conversation of that agent asks.
    pub(crate) fn model_of(&self, agent: Option<&str>) -> Result<ModelRef, RuntimeError> {
        let Some(agent) = agent.map(|name| self.agent(name)).transpose()? else {
            return Ok(self.default_model.clone());
        };
        let mut model = agent
            .model
            .clone()
            .unwrap_or_else(|| self.default_model.clone());
        if let Some(effort) = &agent.effort {
            model.effort = Some(effort.clone());
        }
        Ok(model)
    }

    /// Finds a provider by name.
    pub(crate) fn provider(&self, name: &str) -> Result<&Arc<dyn ModelProvider>, RuntimeError> {
        self.providers
            .get(name)
            .ok_or_else(|| RuntimeError::UnknownProvider {
                name: name.to_owned(),
                known: self.providers.keys().cloned().collect(),
            })
    }
}

//! What conversations are run with: models, executors, tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use openvaala_executor::Executor;
use openvaala_executor::tool::Tool;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::ExecutorId;

use crate::agent::{Limits, RetryPolicy};
use crate::error::RuntimeError;
use crate::model::ModelProvider;

/// How many model responses a turn may take, unless something else is set.
pub(crate) const STEP_LIMIT: u32 = 500;

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
    /// Added to the system prompt of every conversation.
    pub instructions: Option<String>,
    /// How many model responses a turn may take; 500 unless set.
    pub step_limit: u32,
    /// How often a failed model request is asked again.
    pub retry: RetryPolicy,
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
            instructions: None,
            step_limit: STEP_LIMIT,
            retry: RetryPolicy::default(),
        }
    }
}

impl Definitions {
    /// How far a turn goes.
    pub(crate) const fn limits(&self) -> Limits {
        Limits {
            steps: self.step_limit,
            retry: self.retry,
        }
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

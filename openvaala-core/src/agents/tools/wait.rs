//! The tool that waits for other agents.

use std::time::Duration;

use async_trait::async_trait;
use openvaala_executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Colleagues;
use crate::agents::AgentRequest;

/// How long is waited unless something else is asked for, and at most, in seconds.
const USUAL: u64 = 600;
const LONGEST: u64 = 3_600;

#[derive(Debug)]
pub(super) struct WaitAgent(pub(super) Colleagues);

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Until {
    #[default]
    Any,
    All,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Their paths or names; default: all that work below you.
    #[serde(default)]
    agents: Vec<String>,
    /// Whether one of them has to end its turn, or all.
    #[serde(default)]
    until: Until,
    /// Default 600, at most 3600.
    timeout_seconds: Option<u64>,
}

#[async_trait]
impl TypedTool for WaitAgent {
    type Arguments = Arguments;

    const NAME: &'static str = "wait_agent";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Waits until agents end their turns, and gives their reports; also ends when somebody says something to you. Costs \
         nothing while it waits."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let seconds = args.timeout_seconds.unwrap_or(USUAL).clamp(1, LONGEST);
        let request = AgentRequest::Wait {
            agents: args.agents,
            all: matches!(args.until, Until::All),
            timeout: Duration::from_secs(seconds),
        };
        self.0.ask(&context, request).await
    }
}

//! The tools that list, interrupt and close agents.

use async_trait::async_trait;
use openvaala_executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Colleagues;
use crate::agents::AgentRequest;

#[derive(Debug)]
pub(super) struct ListAgents(pub(super) Colleagues);

#[derive(Debug)]
pub(super) struct InterruptAgent(pub(super) Colleagues);

#[derive(Debug)]
pub(super) struct CloseAgent(pub(super) Colleagues);

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Which {
    /// Its path or name.
    agent: String,
}

#[async_trait]
impl TypedTool for ListAgents {
    type Arguments = Nothing;

    const NAME: &'static str = "list_agents";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Lists all agents of this conversation and what they do.".to_owned()
    }

    async fn run(&self, context: ToolContext, _: Nothing) -> Result<ToolOutput, ToolError> {
        self.0.ask(&context, AgentRequest::List).await
    }
}

#[async_trait]
impl TypedTool for InterruptAgent {
    type Arguments = Which;

    const NAME: &'static str = "interrupt_agent";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Interrupts an agent below you and all below it; a message makes it go on.".to_owned()
    }

    async fn run(&self, context: ToolContext, args: Which) -> Result<ToolOutput, ToolError> {
        let agent = args.agent;
        self.0
            .ask(&context, AgentRequest::Interrupt { agent })
            .await
    }
}

#[async_trait]
impl TypedTool for CloseAgent {
    type Arguments = Which;

    const NAME: &'static str = "close_agent";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Ends an agent below you and all below it for good; what it has said stays.".to_owned()
    }

    async fn run(&self, context: ToolContext, args: Which) -> Result<ToolOutput, ToolError> {
        let agent = args.agent;
        self.0.ask(&context, AgentRequest::Close { agent }).await
    }
}

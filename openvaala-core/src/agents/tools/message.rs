//! The tool that says something to another agent.

use async_trait::async_trait;
use openvaala_executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Colleagues;
use crate::agents::AgentRequest;

#[derive(Debug)]
pub(super) struct SendMessage(pub(super) Colleagues);

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Read before its next step.
    #[default]
    Steer,
    /// Starts a later turn.
    Queue,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Its path or name.
    agent: String,
    text: String,
    #[serde(default)]
    mode: Mode,
}

#[async_trait]
impl TypedTool for SendMessage {
    type Arguments = Arguments;

    const NAME: &'static str = "send_message";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Says something to another agent; one that has ended its turn begins a new one with it."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let request = AgentRequest::Send {
            agent: args.agent,
            text: args.text,
            steer: matches!(args.mode, Mode::Steer),
        };
        self.0.ask(&context, request).await
    }
}

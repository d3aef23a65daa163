//! The tools with which an agent works with others.

mod control;
mod message;
mod plan;
mod spawn;
mod wait;

use std::sync::Arc;

use openvaala_executor::tool::{Tool, ToolContext, ToolError, ToolOutput, TypedTool, typed};
use openvaala_protocol::id::SessionId;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::plan::plan_tool;
use super::error::AgentError;
use super::request::{AgentReply, AgentRequest, Grants};
use crate::conversation::Upward;

/// The name of the tool that starts an agent.
pub(crate) const SPAWN: &str = spawn::SpawnAgent::NAME;

/// The way of one agent's tools to its conversation.
#[derive(Clone, Debug)]
pub(crate) struct Colleagues {
    pub(crate) session: SessionId,
    pub(crate) up: mpsc::UnboundedSender<Upward>,
    pub(crate) grants: Arc<Grants>,
}

/// The tools of one agent; without `may_spawn` it can start none itself.
pub(crate) fn agent_tools(colleagues: &Colleagues, may_spawn: bool) -> Vec<Arc<dyn Tool>> {
    let own = || colleagues.clone();
    let mut tools = Vec::new();
    if may_spawn {
        tools.push(typed(spawn::SpawnAgent(own())));
        tools.push(typed(wait::WaitAgent(own())));
        tools.push(typed(control::InterruptAgent(own())));
        tools.push(typed(control::CloseAgent(own())));
    }
    tools.push(typed(control::ListAgents(own())));
    tools.push(typed(message::SendMessage(own())));
    tools
}

type Answer = oneshot::Receiver<Result<AgentReply, AgentError>>;

impl Colleagues {
    /// Asks without waiting for the answer.
    fn begin(&self, request: AgentRequest) -> Result<Answer, ToolError> {
        let (reply, answer) = oneshot::channel();
        let from = self.session;
        let upward = Upward::Agents {
            from,
            request,
            reply,
        };
        self.up.send(upward).map_err(|_| stopped())?;
        Ok(answer)
    }

    /// Asks and waits for the answer, or for the call to be cancelled.
    async fn ask(
        &self,
        context: &ToolContext,
        request: AgentRequest,
    ) -> Result<ToolOutput, ToolError> {
        let answer = self.begin(request)?;
        tokio::select! {
            biased;
            answer = answer => output(answer),
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
        }
    }
}

fn output(
    answer: Result<Result<AgentReply, AgentError>, oneshot::error::RecvError>,
) -> Result<ToolOutput, ToolError> {
    let answer = answer.map_err(|_| stopped())?;
    let AgentReply { text, messages } =
        answer.map_err(|error| ToolError::failed(error.to_string()))?;
    // Others work on: to ask the same again is no circle.
    Ok(ToolOutput::text(text)
        .with_messages(messages)
        .with_goes_on(true))
}

fn stopped() -> ToolError {
    ToolError::failed("the conversation is being stopped")
}

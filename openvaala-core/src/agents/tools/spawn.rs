//! The tool that starts an agent.

use std::time::Duration;

use async_trait::async_trait;
use openvaala_executor::tool::{ToolContext, ToolError, ToolOutput, TypedTool};
use openvaala_protocol::id::{ExecutorId, InvalidId};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Colleagues, output};
use crate::agents::{AgentRequest, Given, Spawn};

/// How long an interrupted call waits for the end of the agent that it has started; the runtime gives a call 700 ms.
const LAST_WORDS: Duration = Duration::from_millis(600);

#[derive(Debug)]
pub(super) struct SpawnAgent(pub(super) Colleagues);

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// 1 to 40 of a-z, 0-9, - and _; it is found as your path, a slash, and this.
    name: String,
    /// All that it needs to know: it sees nothing of this conversation unless context says so.
    task: String,
    /// A defined agent; default: like you.
    agent: Option<String>,
    /// provider/model, or a model of your provider; default: yours.
    model: Option<String>,
    effort: Option<String>,
    /// Some of your executors; default: all.
    executors: Option<Vec<String>>,
    /// Works in this folder below yours.
    folder: Option<String>,
    /// What it is given of this conversation.
    #[serde(default)]
    context: Given,
    /// How many tokens it may use.
    token_budget: Option<u64>,
    /// Returns at once; its end comes as a message. Default: false, the call returns its report.
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl TypedTool for SpawnAgent {
    type Arguments = Arguments;

    const NAME: &'static str = "spawn_agent";
    // What it does is judged call by call, with the rights of whoever has started it.
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Starts another agent for a task of its own, with your tools and rights at most. Calls in one answer run at the \
         same time."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let Self(colleagues) = self;
        let agent = args.name.clone();
        let is_in_background = args.background;
        let executors = args.executors.map(executor_ids).transpose()?;
        let spawn = Spawn {
            name: args.name,
            task: args.task,
            agent: args.agent.filter(|agent| !agent.is_empty()),
            model: args.model.filter(|model| !model.is_empty()),
            effort: args.effort.filter(|effort| !effort.is_empty()),
            executors,
            folder: args.folder.filter(|folder| !folder.is_empty()),
            context: args.context,
            token_budget: args.token_budget,
            foreground: !is_in_background,
            grants: (*colleagues.grants).clone(),
        };
        let mut answer = colleagues.begin(AgentRequest::Spawn(Box::new(spawn)))?;
        tokio::select! {
            biased;
            answer = &mut answer => return output(answer),
            () = context.cancel.cancelled() => {}
        }
        if is_in_background {
            return Err(ToolError::Cancelled);
        }
        // Whoever waits for an agent takes it along when it is interrupted.
        drop(colleagues.begin(AgentRequest::Interrupt { agent })?);
        match timeout(LAST_WORDS, answer).await {
            Ok(answer) => output(answer),
            Err(_) => Err(ToolError::Cancelled),
        }
    }
}

fn executor_ids(names: Vec<String>) -> Result<Vec<ExecutorId>, ToolError> {
    let ids = names.into_iter().map(|name| {
        let invalid =
            |error: InvalidId| ToolError::failed(format!("{name:?} names no executor: {error}"));
        name.parse().map_err(invalid)
    });
    ids.collect()
}

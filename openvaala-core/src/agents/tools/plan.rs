//! The tool that keeps the list of steps.
//!
//! It does nothing itself: when its call has a result the list is written down as an item, whose body is what the call has
//! as arguments.

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_executor::tool::{Tool, ToolContext, ToolError, ToolOutput, TypedTool, typed};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agents::PLAN;

/// The most steps that a list may have.
const MOST: usize = 50;

/// The tool that keeps the list of steps.
pub(crate) fn plan_tool() -> Arc<dyn Tool> {
    typed(KeepPlan)
}

#[derive(Debug)]
struct KeepPlan;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// All steps, in order.
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Step {
    #[expect(dead_code, reason = "the item has it")]
    text: String,
    state: StepState,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StepState {
    Pending,
    Running,
    Done,
}

#[async_trait]
impl TypedTool for KeepPlan {
    type Arguments = Arguments;

    const NAME: &'static str = PLAN;
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Shows the user your list of steps for a longer task; call it again with the whole list when a step begins or is done."
            .to_owned()
    }

    async fn run(&self, _: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let count = args.steps.len();
        if count > MOST {
            let why = format!("{count} steps are too many: give at most {MOST}");
            return Err(ToolError::failed(why));
        }
        let is_done = |step: &&Step| matches!(step.state, StepState::Done);
        let done = args.steps.iter().filter(is_done).count();
        Ok(ToolOutput::text(format!(
            "{done} of {count} steps are done"
        )))
    }
}

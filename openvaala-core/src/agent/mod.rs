//! The loop inside a turn: ask the model, run the tools it wants, ask again.

mod answer;
mod machine;
mod scribe;

pub(crate) use self::machine::{Agent, AgentEvent, Ending, RunningCall, ToolOutcome};
pub(crate) use self::scribe::{Scribe, Tick};

//! The loop inside a turn: ask the model, run the tools it wants, ask again.

mod answer;
mod machine;
mod retry;
mod scribe;

pub(crate) use self::machine::{
    Agent, AgentEvent, Alarm, Ending, Failure, Limits, RunningCall, ToolOutcome,
};
pub use self::retry::RetryPolicy;
pub(crate) use self::scribe::{Scribe, Tick};

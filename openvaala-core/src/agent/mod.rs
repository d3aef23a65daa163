//! The loop inside a turn: ask the model, run the tools it wants, ask again.

mod answer;
mod event;
mod gate;
mod machine;
mod retry;
mod scribe;

pub(crate) use self::event::{
    AgentEvent, Alarm, Ending, Failure, Limits, RunningCall, ToolOutcome,
};
pub(crate) use self::gate::Gate;
pub(crate) use self::machine::Agent;
pub use self::retry::RetryPolicy;
pub(crate) use self::scribe::{Place, Scribe, Tick};

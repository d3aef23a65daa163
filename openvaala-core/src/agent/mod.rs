//! The loop inside a turn: ask the model, run the tools it wants, ask again.

mod answer;
mod event;
mod gate;
mod machine;
mod patience;
mod repeats;
mod resume;
mod retry;
mod scribe;

pub(crate) use self::event::{
    AgentEvent, Alarm, Ending, Failure, Limits, RunningCall, ToolOutcome, spent,
};
pub(crate) use self::gate::Gate;
pub(crate) use self::machine::Agent;
pub(crate) use self::resume::LeftQuestion;
pub use self::retry::RetryPolicy;
pub(crate) use self::scribe::{Place, Scribe, Tick};

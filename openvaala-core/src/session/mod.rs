//! A session: one agent's line of work, one turn at a time, and the inputs that wait for it.

mod approvals;
mod child;
mod compaction;
mod context;
mod event;
mod handle;
mod inputs;
mod keep;
mod look_up;
mod machine;
mod opening;
mod pending;
mod prepare;
mod queue;
mod read_result;
mod recover;
mod request;
mod resume;
mod run;
#[cfg(test)]
mod simulation;
mod spool;
mod tools;
mod turn;

pub(crate) use self::event::{Effect, SessionSetup};
pub(crate) use self::handle::{CompactionCommand, SessionHandle};
pub(crate) use self::inputs::Inputs;
pub(crate) use self::opening::open_session;
pub(crate) use self::pending::PendingChange;
pub use self::request::SessionChange;
pub(crate) use self::request::{Answer, Request};
pub(crate) use self::run::{SessionReport, SessionStart, Surroundings, session, with_causes};

//! Agents that other agents start: what they ask of their conversation, and the tools with which they ask it.
//!
//! An agent that was started is a session with a parent. It is found by its path: `main`, `main/review`,
//! `main/review/tests`. The conversation owns the tree; nothing here keeps state.

mod error;
mod request;
mod tools;

pub(crate) use self::error::AgentError;
pub(crate) use self::request::{AgentReply, AgentRequest, Given, Grants, Spawn};
pub(crate) use self::tools::{Colleagues, SPAWN, agent_tools, plan_tool};

/// The name of the tool that keeps the list of steps.
pub(crate) const PLAN: &str = "plan";

/// How many agents may work in a conversation besides the main one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// How many levels there may be below the main agent; 3 unless set, 0 for no other agents at all.
    pub depth: usize,
    /// How many agents may be open in a conversation at once, whether they work or wait; 16 unless set.
    pub open: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { depth: 3, open: 16 }
    }
}

impl AgentLimits {
    /// Limits of that depth and number.
    #[must_use]
    pub const fn new(depth: usize, open: usize) -> Self {
        Self { depth, open }
    }
}

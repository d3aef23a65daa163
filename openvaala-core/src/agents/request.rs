//! What an agent asks of its conversation, and what it is told.

use std::time::Duration;

use openvaala_protocol::approval::{ApprovalMode, ApprovalRule};
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{ExecutorId, ItemId};
use schemars::JsonSchema;
use serde::Deserialize;

/// What an agent asks; agents are named by their paths, or by their names below the one that asks.
#[derive(Debug)]
pub(crate) enum AgentRequest {
    Spawn(Box<Spawn>),
    Send {
        agent: String,
        text: String,
        steer: bool,
    },
    /// Wait for the ends of turns; for whoever works below if none is named.
    Wait {
        agents: Vec<String>,
        all: bool,
        timeout: Duration,
    },
    List,
    Interrupt {
        agent: String,
    },
    Close {
        agent: String,
    },
}

/// An agent that is to be started.
#[derive(Debug)]
pub(crate) struct Spawn {
    pub(crate) name: String,
    pub(crate) task: String,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) executors: Option<Vec<ExecutorId>>,
    pub(crate) folder: Option<String>,
    pub(crate) context: Given,
    pub(crate) token_budget: Option<u64>,
    /// Whether the answer is how its first turn ends.
    pub(crate) foreground: bool,
    pub(crate) grants: Grants,
}

/// What a new agent is given of what its starter knows.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Given {
    /// The task alone.
    #[default]
    None,
    /// A summary of it.
    Summary,
    /// All of it.
    All,
}

/// What the one who starts an agent may do itself: the new one gets no more.
#[derive(Clone, Debug)]
pub(crate) struct Grants {
    pub(crate) model: ModelRef,
    pub(crate) agent: Option<String>,
    /// Its own mode, if it has one.
    pub(crate) approval_mode: Option<ApprovalMode>,
    /// The mode that counts for it.
    pub(crate) mode: ApprovalMode,
    pub(crate) rules: Vec<ApprovalRule>,
    /// The only tools that it has; `None` if nothing limits them.
    pub(crate) tools: Option<Vec<String>>,
    /// Whether it works elsewhere than the conversation.
    pub(crate) own_place: bool,
}

/// What an agent is told.
#[derive(Debug, Default)]
pub(crate) struct AgentReply {
    pub(crate) text: String,
    /// The messages that the text has.
    pub(crate) messages: Vec<ItemId>,
}

impl AgentReply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            messages: Vec::new(),
        }
    }
}

//! Why the conversation does not do what an agent asks; the text is what the model reads.

use crate::error::RuntimeError;

/// Why the conversation does not do what an agent asks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("there is no agent {name:?}; there are: {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("the name {name:?} cannot be: 1 to 40 of a-z, 0-9, - and _")]
    BadName { name: String },
    #[error("there is an agent {path} already: choose another name, or send it a message")]
    NameTaken { path: String },
    #[error("agents may not be more than {limit} levels below the main one: do this yourself")]
    TooDeep { limit: usize },
    #[error(
        "{limit} agents are open, which is all there may be: close one that you do not need any more"
    )]
    TooMany { limit: usize },
    #[error("agent {path} was closed: start a new one")]
    Closed { path: String },
    #[error(
        "{path} is not below you: only agents that you have started, and those below them, can be told that"
    )]
    NotBelow { path: String },
    #[error(
        "{path} reports to the one that has started it, not to you: wait for those that you have started"
    )]
    NotOwn { path: String },
    #[error("you cannot say something to yourself")]
    Yourself,
    #[error("there is no executor {name:?} for it; you have: {}", known.join(", "))]
    NoExecutor { name: String, known: Vec<String> },
    #[error("the folder is of several executors: name one of {}", known.join(", "))]
    WhichExecutor { known: Vec<String> },
    #[error("{folder} is not within your own folders: {}", known.join(", "))]
    OutsideFolder { folder: String, known: Vec<String> },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

//! What the methods do: parameters in, a call of the runtime, a result out. One module a resource.

pub(crate) mod agent;
pub(crate) mod approval;
pub(crate) mod compaction;
pub(crate) mod config;
pub(crate) mod conversation;
pub(crate) mod error;
pub(crate) mod executor;
pub(crate) mod model;
pub(crate) mod pending;
pub(crate) mod provider;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod terminal;
pub(crate) mod token;
pub(crate) mod trash;
pub(crate) mod turn;
pub(crate) mod update;
pub(crate) mod usage;

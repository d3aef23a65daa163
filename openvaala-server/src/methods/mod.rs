//! What the methods do: parameters in, a call of the runtime, a result out. One module a resource.

pub(crate) mod approval;
pub(crate) mod compaction;
pub(crate) mod conversation;
pub(crate) mod error;
pub(crate) mod pending;
pub(crate) mod provider;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod token;
pub(crate) mod trash;
pub(crate) mod update;

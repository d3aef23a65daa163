//! Parameters and results of the methods, one module a resource.
//!
//! Unknown fields in parameters are refused (the protocol version is the same on both sides, so a field that is
//! not known is a mistake); `initialize` alone takes any.

pub mod agent;
pub mod approval;
pub mod check;
pub mod compaction;
pub mod config;
pub mod conversation;
pub mod executor;
pub mod model;
pub mod pending;
pub mod provider;
pub mod server;
pub mod session;
pub mod terminal;
pub mod token;
pub mod trash;
pub mod turn;
pub mod update;
pub mod usage;

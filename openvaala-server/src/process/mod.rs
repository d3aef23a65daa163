//! The server as a process among others: how clients find it, how it is told to end.

pub mod discovery;
pub(crate) mod leftovers;
pub(crate) mod memory;
pub(crate) mod signals;

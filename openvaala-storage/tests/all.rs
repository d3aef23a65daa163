//! The back ends from outside: each passes the suites, and wrong ones do not.

#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod killed;
mod model;
mod wrong;

//! The back ends from outside: each passes the suites.

#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;

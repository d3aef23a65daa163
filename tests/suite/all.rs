//! Cross-crate tests: the real binary, driven from outside.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "this crate is test code"
)]

mod aimock;
mod background;
mod bad_input;
mod bench;
mod clients;
mod commands;
mod crash;
mod dialect;
mod documents;
mod examples;
mod first_request;
mod first_run;
mod full_disk;
mod interrupt;
mod litellm;
mod load;
mod small_model;
mod support;

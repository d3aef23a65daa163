//! Cross-crate tests: the real binary, driven from outside.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "this crate is test code"
)]

mod aimock;
mod approvals;
mod attacks;
mod background;
mod bad_input;
mod bench;
mod clients;
mod coming_back;
mod commands;
mod compaction;
mod config_writes;
mod crash;
mod crash_agents;
mod crash_batches;
mod deletion;
mod dialect;
mod disk_errors;
mod documents;
mod examples;
mod first_request;
mod first_run;
mod foreign_hands;
mod foreign_lines;
mod full_disk;
mod histories;
mod index;
mod interrupt;
mod interrupt_matrix;
mod interrupt_once;
mod kill_points;
mod litellm;
mod load;
mod many;
mod memory;
mod memory_bars;
mod one_owner;
mod pending_commands;
mod power_cut;
mod remote;
mod server_logs;
mod shared;
mod slow_disk;
mod small_model;
mod stalled;
mod steering;
mod support;

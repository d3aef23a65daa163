//! The kit of the cross-crate tests: everything that drives the real binary from outside.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`binary`] | finds the `openvaala` binary, or builds it once |
//! | [`sandbox`] | directories, environment and processes of one test |
//! | [`running`] | a started command: its output as it comes, its end |
//! | [`server`] | a server of a sandbox, and how to reach it |
//! | [`fake_model`] | a scripted model behind HTTP |
//! | [`recorder`] | stands before a service and keeps what it was asked |
//! | [`watcher`] | a client that keeps a journal of all that was acknowledged |
//! | [`journal`], [`checker`] | what was acknowledged, and whether a data directory still has it |
//! | [`strace`] | faults of single system calls of the real binary |
//! | [`mounts`] | file systems that are small, read-only, or lose their power |
//! | [`notice`] | says what could not be run here |
//! | [`raw_client`] | hand-written HTTP and WebSocket frames, for input that no client would send |
//! | [`wait`] | waiting for a condition with a deadline |
//! | [`cutter`] | a proxy that breaks connections |
//! | [`dice`] | seeded choices |
//!
//! A helper that cannot do its work panics: that fails the test which uses it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this crate is test code"
)]

pub mod binary;
pub mod checker;
pub mod cutter;
pub mod dice;
pub mod fake_model;
mod http_request;
pub mod journal;
mod loopback;
pub mod mounts;
pub mod notice;
pub mod raw_client;
pub mod recorder;
pub mod running;
pub mod sandbox;
pub mod server;
pub mod strace;
pub mod wait;
pub mod watcher;

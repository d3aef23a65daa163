//! Tests of the whole server, in process, over real sockets.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing helper fails its test"
)]

mod browser;
mod config;
mod conversation;
mod discovery;
mod handshake;
mod lifecycle;
mod limits;
mod model;
mod resources;
mod rpc;
mod support;
mod tokens;
mod trash;

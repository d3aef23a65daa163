//! Tests of the whole server, in process, over real sockets.

mod config;
mod conversation;
mod discovery;
mod handshake;
mod lifecycle;
mod rpc;
mod support;

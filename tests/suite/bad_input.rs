//! Bad input: each gets a clear error at its place, and nothing that was acknowledged is lost.

mod commands;
mod models;
mod tools;
mod wire;

//! What the types look like on the wire and on disk, and that the files made from them are up to date.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "clippy allows them in test functions only"
)]

mod envelope;
#[cfg(feature = "schema")]
mod generated;
mod items;
mod messages;
mod questions;
mod values;

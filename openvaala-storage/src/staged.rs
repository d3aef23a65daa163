//! Storages that keep something new in memory until it is promoted to the real storage.
//!
//! A conversation without a message lives in memory; its first message promotes it. Numbers, times and cursors stay the same, and a
//! conversation that never gets a message leaves nothing on disk.

mod log;
mod record;
#[cfg(test)]
mod tests;

pub use self::log::StagedLogStorage;
pub use self::record::StagedRecordStorage;

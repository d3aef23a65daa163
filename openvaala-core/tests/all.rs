//! Integration tests of the runtime: real storage, real executor, scripted models.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failing helper fails its test"
)]

mod simulation;

mod suite {
    pub(crate) mod agents;
    pub(crate) mod agents_recovery;
    pub(crate) mod background;
    pub(crate) mod cast;
    pub(crate) mod check;
    mod chosen_ids;
    pub(crate) mod compaction;
    pub(crate) mod conversations;
    pub(crate) mod index;
    pub(crate) mod interrupting;
    pub(crate) mod limits;
    pub(crate) mod opening;
    pub(crate) mod records;
    pub(crate) mod recovery;
    pub(crate) mod retrying;
    pub(crate) mod script;
    pub(crate) mod steering;
    pub(crate) mod subagents;
    pub(crate) mod trash;
    pub(crate) mod unloading;
    pub(crate) mod watching;
}

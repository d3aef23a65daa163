//! Whether the server has all that it needs to answer well.

use futures::FutureExt;
use openvaala_core::Runtime;
use tokio::sync::watch;

use crate::context::Phase;

/// Knows whether the server is ready.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    runtime: Runtime,
    phase: watch::Receiver<Phase>,
}

impl Readiness {
    pub(crate) const fn new(runtime: Runtime, phase: watch::Receiver<Phase>) -> Self {
        Self { runtime, phase }
    }

    /// What it is still, or already, busy with, in one word; `None` when it is ready.
    ///
    /// The word is for anybody, so it tells nothing about what is on this machine.
    pub(super) fn missing(&self) -> Option<&'static str> {
        if *self.phase.borrow() != Phase::Serving {
            return Some("stopping");
        }
        match self.runtime.caught_up().now_or_never() {
            Some(()) => None,
            None => Some("starting"),
        }
    }
}

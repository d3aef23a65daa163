//! What a server that vanished has left running.

use std::fmt;
use std::path::Path;

use openvaala_core::environment::{IdSource, RandomIds};
use openvaala_core::executor::local::end_leftovers;

/// Marks the processes of this server in their environment: the data directory and a name for this one run.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    data_dir: String,
    run: String,
}

impl Marker {
    /// A new one for the server that is about to hold that data directory.
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.display().to_string(),
            run: RandomIds.next().simple().to_string(),
        }
    }

    /// Ends what earlier servers of this data directory have left: since that is locked, nobody else can own it.
    pub(crate) async fn end_leftovers(self) {
        let all = format!("{}:", self.data_dir);
        for left in end_leftovers(&all, &self.to_string()).await {
            tracing::warn!(
                pid = left.pid,
                command = left.command,
                "ended a process that an earlier server had left running"
            );
        }
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.data_dir, self.run)
    }
}

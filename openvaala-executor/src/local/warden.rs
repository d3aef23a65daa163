//! What is done when a command is ended from outside.

use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::group::Group;
use super::leftover::{WORKSPACE_VARIABLE, Wanted, end_marked};

/// How often a group that was asked to end is looked at, at first.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The same for a group that does not end, at the rarest.
const LOOK_RARELY: Duration = Duration::from_secs(2);

/// A command that runs, and what may happen to it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) group: Arc<Group>,
    /// The mark of it and all that it starts.
    pub(super) mark: String,
    /// Fires when the workspace is closed.
    pub(super) closed: CancellationToken,
    /// Fires when it was sent a signal, or dropped before its shell had exited.
    pub(super) stopped: CancellationToken,
    /// Fires when its process is dropped.
    pub(super) released: CancellationToken,
}

/// Ends the group of a command when its workspace is closed first; when it is ended from outside, ends what has left the
/// group once the group is gone.
///
/// The search for the latter reads `/proc`, so a command that ends by itself is spared it; what it left stays until the
/// workspace is closed.
pub(super) async fn watch_over(call: Call) {
    select! {
        biased;
        () = call.closed.cancelled() => return end(&call.group).await,
        () = call.stopped.cancelled() => {}
        () = call.released.cancelled() => return,
    }
    let mut look = LOOK_EVERY;
    while call.group.is_alive() {
        select! {
            biased;
            () = call.closed.cancelled() => return end(&call.group).await,
            // Its group is killed then.
            () = call.released.cancelled() => break,
            () = sleep(look) => {}
        }
        look = (look * 2).min(LOOK_RARELY);
    }
    end_marked(WORKSPACE_VARIABLE, Wanted::Is(call.mark)).await;
}

async fn end(group: &Group) {
    if let Err(error) = group.end().await {
        tracing::warn!(group = group.id(), %error, "could not end a process group");
    }
}

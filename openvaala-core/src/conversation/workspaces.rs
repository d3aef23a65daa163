//! The workspaces of a conversation, opened when a turn first needs them.

use std::collections::BTreeMap;
use std::sync::Arc;

use openvaala_executor::{Executor, Workspace};
use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::id::ExecutorId;

use crate::error::RuntimeError;

/// Opens a workspace at every work location.
pub(crate) async fn open(
    locations: &[WorkLocation],
    executors: &BTreeMap<ExecutorId, Arc<dyn Executor>>,
) -> Result<Vec<Arc<dyn Workspace>>, RuntimeError> {
    let mut workspaces = Vec::with_capacity(locations.len());
    for location in locations {
        let executor = executor(&location.executor, executors)?;
        workspaces.push(executor.open(&location.root).await?);
    }
    Ok(workspaces)
}

/// Where workspaces are, as they name it themselves.
pub(crate) fn locations(workspaces: &[Arc<dyn Workspace>]) -> Vec<WorkLocation> {
    let location = |workspace: &Arc<dyn Workspace>| WorkLocation {
        executor: workspace.executor().clone(),
        root: workspace.root().to_owned(),
    };
    workspaces.iter().map(location).collect()
}

/// Finds an executor by its id.
pub(crate) fn executor<'a>(
    id: &ExecutorId,
    executors: &'a BTreeMap<ExecutorId, Arc<dyn Executor>>,
) -> Result<&'a Arc<dyn Executor>, RuntimeError> {
    executors
        .get(id)
        .ok_or_else(|| RuntimeError::UnknownExecutor {
            id: id.clone(),
            known: executors.keys().cloned().collect(),
        })
}

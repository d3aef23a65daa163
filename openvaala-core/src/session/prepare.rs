//! What a turn works with: workspaces, tools, prompt.

use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_executor::tool::{Offer, Toolbox};
use openvaala_protocol::conversation::WorkLocation;
use tokio::sync::oneshot;

use super::run::SessionDeps;
use crate::context::{PromptInput, system_prompt};
use crate::conversation::Upward;
use crate::error::RuntimeError;
use crate::runtime::Definitions;

/// What a turn works with, frozen for as long as it runs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) prompt: String,
    pub(super) locations: Vec<WorkLocation>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) account: Option<String>,
}

/// Opens the workspaces and freezes tools and prompt for a turn.
pub(super) async fn prepare(
    deps: &SessionDeps,
    definitions: Arc<Definitions>,
    provider: &str,
) -> Result<Prepared, RuntimeError> {
    let account = definitions.provider(provider)?.account().map(str::to_owned);
    let (reply, wait) = oneshot::channel();
    deps.up
        .send(Upward::Workspaces(reply))
        .map_err(|_| RuntimeError::Stopped)?;
    let workspaces: Vec<Arc<dyn Workspace>> = wait.await.map_err(|_| RuntimeError::Stopped)??;
    let mut offers: Vec<Offer> = definitions
        .tools
        .iter()
        .map(|tool| Offer::runtime(Arc::clone(tool)))
        .collect();
    for workspace in &workspaces {
        let executor = workspace.executor();
        let tools = workspace.tools().into_iter();
        offers.extend(tools.map(|tool| Offer::on(executor.clone(), tool)));
    }
    let toolbox = Toolbox::new(offers).map_err(|error| RuntimeError::Builder {
        message: error.to_string(),
    })?;
    let prompt = system_prompt(PromptInput {
        instructions: definitions.instructions.as_deref(),
        workspaces: &workspaces,
        now: deps.writer.clock.now(),
    });
    let locations = workspaces
        .iter()
        .map(|workspace| WorkLocation {
            executor: workspace.executor().clone(),
            root: workspace.root().to_owned(),
        })
        .collect();
    Ok(Prepared {
        toolbox: Arc::new(toolbox),
        prompt,
        locations,
        definitions,
        account,
    })
}

//! What a turn works with: workspaces, tools, prompt.

use std::collections::BTreeSet;
use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_executor::tool::{Offer, Toolbox};
#[cfg(feature = "tools")]
use openvaala_executor::tools::command_tools;
use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::item::Instructions;
use tokio::sync::oneshot;

use super::run::SessionDeps;
use crate::context::{PromptInput, read_instructions, system_prompt};
use crate::conversation::Upward;
use crate::error::RuntimeError;
use crate::runtime::Definitions;

/// The tool that starts commands; who has it also has those that look after them.
const SHELL: &str = "bash";

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
    agent: Option<&str>,
) -> Result<(Prepared, Vec<Instructions>), RuntimeError> {
    let agent = agent.map(|name| definitions.agent(name)).transpose()?;
    let account = definitions.provider(provider)?.account().map(str::to_owned);
    let (reply, wait) = oneshot::channel();
    deps.around
        .up
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
    offers.extend(command_offers(&offers));
    if let Some(tools) = agent.and_then(|agent| agent.tools.as_deref()) {
        only(&mut offers, tools)?;
    }
    let toolbox = Toolbox::new(offers).map_err(|error| RuntimeError::Builder {
        message: error.to_string(),
    })?;
    let prompt = system_prompt(PromptInput {
        instructions: definitions.instructions.as_deref(),
        agent: agent.and_then(|agent| agent.instructions.as_deref()),
        workspaces: &workspaces,
        now: deps.around.writer.clock.now(),
    });
    let locations = workspaces
        .iter()
        .map(|workspace| WorkLocation {
            executor: workspace.executor().clone(),
            root: workspace.root().to_owned(),
        })
        .collect();
    let instructions = read_instructions(&workspaces).await;
    let prepared = Prepared {
        toolbox: Arc::new(toolbox),
        prompt,
        locations,
        definitions,
        account,
    };
    Ok((prepared, instructions))
}

/// Leaves only the tools that an agent shall have.
fn only(offers: &mut Vec<Offer>, tools: &[String]) -> Result<(), RuntimeError> {
    let known: BTreeSet<String> = offers
        .iter()
        .map(|offer| offer.tool.spec().name.clone())
        .collect();
    if let Some(unknown) = tools.iter().find(|name| !known.contains(*name)) {
        return Err(RuntimeError::UnknownTool {
            name: unknown.clone(),
            known: known.into_iter().collect(),
        });
    }
    let has_commands = tools.iter().any(|name| name == SHELL);
    offers.retain(|offer| {
        let name = &offer.tool.spec().name;
        let of_shell = has_commands && name.starts_with("bash_");
        of_shell || tools.contains(name)
    });
    Ok(())
}

/// What looks after the commands of the session, wherever they run; nothing if none can be started.
#[cfg(feature = "tools")]
fn command_offers(offers: &[Offer]) -> Vec<Offer> {
    if offers.iter().any(|offer| offer.tool.spec().name == SHELL) {
        command_tools().into_iter().map(Offer::runtime).collect()
    } else {
        Vec::new()
    }
}

#[cfg(not(feature = "tools"))]
fn command_offers(_: &[Offer]) -> Vec<Offer> {
    Vec::new()
}

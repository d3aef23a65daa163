//! What a turn works with: workspaces, tools, prompt.

use std::collections::BTreeSet;
use std::sync::Arc;

use openvaala_executor::Workspace;
use openvaala_executor::tool::{Offer, Toolbox};
#[cfg(feature = "tools")]
use openvaala_executor::tools::command_tools;
use openvaala_protocol::approval::{ApprovalMode, ApprovalRule};
use openvaala_protocol::conversation::{ModelRef, WorkLocation};
use openvaala_protocol::item::Instructions;
use tokio::sync::oneshot;

use super::read_result::read_result;
use super::run::SessionDeps;
use crate::agents::{Colleagues, Grants, SPAWN, agent_tools, plan_tool};
use crate::context::{PromptInput, list_skills, read_instructions, system_prompt};
use crate::conversation::{Upward, level};
use crate::dao::record::ChildState;
use crate::error::RuntimeError;
use crate::runtime::Definitions;

/// The tool that starts commands; who has it also has those that look after them.
const SHELL: &str = "bash";
/// What whoever starts agents also has.
const AGENT_TOOLS: [&str; 5] = [
    "wait_agent",
    "interrupt_agent",
    "close_agent",
    "list_agents",
    "send_message",
];

/// What a turn works with, frozen for as long as it runs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) prompt: String,
    pub(super) locations: Vec<WorkLocation>,
    pub(super) definitions: Arc<Definitions>,
    pub(super) account: Option<String>,
    /// The most careful approval mode of the sessions above.
    pub(super) ceiling: Option<ApprovalMode>,
}

/// What a session is when a turn of it begins.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(super) model: ModelRef,
    pub(super) agent: Option<String>,
    pub(super) approval_mode: Option<ApprovalMode>,
    pub(super) rules: Vec<ApprovalRule>,
    pub(super) child: Option<ChildState>,
}

/// Asks the conversation for the workspaces, and for the most careful mode of those above.
async fn ground(
    deps: &SessionDeps,
    definitions: &Definitions,
    nature: &Nature,
) -> Result<(Vec<Arc<dyn Workspace>>, Option<ApprovalMode>), RuntimeError> {
    let (reply, wait) = oneshot::channel();
    let ask = Upward::Ground {
        session: deps.around.session,
        locations: nature
            .child
            .as_ref()
            .and_then(|child| child.locations.clone()),
        reply,
    };
    let sent = deps.around.up.send(ask);
    sent.map_err(|_| RuntimeError::Stopped)?;
    let ground = wait.await.map_err(|_| RuntimeError::Stopped)??;
    let usual = definitions.approval.mode;
    let modes = ground.modes_above.into_iter();
    let ceiling = modes.map(|mode| mode.unwrap_or(usual)).min();
    Ok((ground.workspaces, ceiling))
}

/// What the agents get that this one starts: nothing that it does not have itself.
fn colleagues(
    deps: &SessionDeps,
    definitions: &Definitions,
    nature: &Nature,
    ceiling: Option<ApprovalMode>,
    of_agent: Option<&[String]>,
) -> Colleagues {
    let own = nature.approval_mode.unwrap_or(definitions.approval.mode);
    let inherited = nature.child.as_ref().and_then(|child| child.tools.as_ref());
    let tools = match (of_agent, inherited) {
        (Some(own), Some(above)) => Some(
            own.iter()
                .filter(|name| above.contains(name))
                .cloned()
                .collect(),
        ),
        (Some(own), None) => Some(own.to_vec()),
        (None, above) => above.cloned(),
    };
    let child = nature.child.as_ref();
    Colleagues {
        session: deps.around.session,
        up: deps.around.up.clone(),
        grants: Arc::new(Grants {
            model: nature.model.clone(),
            agent: nature.agent.clone(),
            approval_mode: nature.approval_mode,
            mode: ceiling.map_or(own, |ceiling| ceiling.min(own)),
            rules: nature.rules.clone(),
            tools,
            own_place: child.is_some_and(|child| child.locations.is_some()),
        }),
    }
}

/// Opens the workspaces and freezes tools and prompt for a turn.
pub(super) async fn prepare(
    deps: &SessionDeps,
    definitions: Arc<Definitions>,
    nature: Nature,
) -> Result<(Prepared, Vec<Instructions>), RuntimeError> {
    let agent = nature.agent.as_deref();
    let agent = agent.map(|name| definitions.agent(name)).transpose()?;
    let provider = definitions.provider(&nature.model.provider)?;
    let account = provider.account().map(str::to_owned);
    let (workspaces, ceiling) = ground(deps, &definitions, &nature).await?;
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
    let of_agent = agent.and_then(|agent| agent.tools.as_deref());
    let colleagues = colleagues(deps, &definitions, &nature, ceiling, of_agent);
    let depth = nature.child.as_ref().map_or(0, |child| level(&child.path));
    if definitions.agent_limits.depth > 0 {
        let tools = agent_tools(&colleagues, depth < definitions.agent_limits.depth);
        offers.extend(tools.into_iter().map(Offer::runtime));
    }
    offers.push(Offer::runtime(plan_tool()));
    offers.push(Offer::runtime(read_result(deps)));
    if let Some(tools) = of_agent {
        only(&mut offers, tools)?;
    }
    if let Some(tools) = nature
        .child
        .as_ref()
        .and_then(|child| child.tools.as_deref())
    {
        retain(&mut offers, tools);
    }
    let toolbox = Toolbox::new(offers).map_err(|error| RuntimeError::Builder {
        message: error.to_string(),
    })?;
    let skills = list_skills(&workspaces, &definitions.skills).await;
    let prompt = system_prompt(PromptInput {
        instructions: definitions.instructions.as_deref(),
        agent: agent.and_then(|agent| agent.instructions.as_deref()),
        path: nature.child.as_ref().map(|child| child.path.as_str()),
        skills: &skills,
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
    let instructions =
        read_instructions(&workspaces, definitions.global_instructions.as_ref()).await;
    let prepared = Prepared {
        toolbox: Arc::new(toolbox),
        prompt,
        locations,
        definitions,
        account,
        ceiling,
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
    retain(offers, tools);
    Ok(())
}

/// Leaves only those tools, as far as they are there.
fn retain(offers: &mut Vec<Offer>, tools: &[String]) {
    let has_commands = tools.iter().any(|name| name == SHELL);
    let may_spawn = tools.iter().any(|name| name == SPAWN);
    offers.retain(|offer| {
        let name = &offer.tool.spec().name;
        let of_shell = has_commands && name.starts_with("bash_");
        let of_spawning = may_spawn && AGENT_TOOLS.contains(&name.as_str());
        of_shell || of_spawning || tools.contains(name)
    });
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

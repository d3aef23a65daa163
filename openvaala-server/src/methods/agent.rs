//! `agent/…`.

use openvaala_protocol::rpc::params::agent::{Agent, ListResult};

use crate::context::Context;

pub(crate) fn list(context: &Context) -> ListResult {
    let definitions = context.runtime.definitions();
    let agents = definitions.agents.iter().map(|(name, agent)| Agent {
        name: name.clone(),
        description: agent.description.clone(),
        model: agent.model.clone(),
        effort: agent.effort.clone(),
        tools: agent.tools.clone(),
    });
    ListResult {
        agents: agents.collect(),
    }
}

//! `model/…`.

use std::collections::BTreeSet;

use openvaala_core::RuntimeError;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::model::{
    DefaultSetParams, DefaultSetResult, ListParams, ListResult, Model,
};
use openvaala_protocol::rpc::params::provider::Provider;

use super::error::rpc_error;
use super::server;
use crate::config::ConfigEdit;
use crate::context::{ConfigChange, Context};

pub(crate) async fn set_default(
    context: &Context,
    params: DefaultSetParams,
) -> Result<DefaultSetResult, RpcError> {
    let change = ConfigChange::Edit(ConfigEdit::DefaultModel(params.model));
    let reloaded = server::change(context, Some(change)).await?;
    Ok(DefaultSetResult {
        default_model: reloaded.default_model,
    })
}

pub(crate) fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let assembled = context.assembled();
    let wanted = |provider: &&Provider| {
        params
            .provider
            .as_ref()
            .is_none_or(|name| *name == provider.name)
    };
    let models: Vec<Model> = assembled
        .providers
        .iter()
        .filter(wanted)
        .flat_map(|provider| models_of(context, provider))
        .collect();
    // Each provider has at least its default.
    if let Some(name) = params.provider.filter(|_| models.is_empty()) {
        let providers = assembled.providers.iter();
        let known = providers.map(|provider| provider.name.clone()).collect();
        return Err(rpc_error(&RuntimeError::UnknownProvider { name, known }));
    }
    Ok(ListResult {
        models,
        default_model: assembled.default_model.clone(),
    })
}

/// The models of a provider that the configuration names somewhere.
fn models_of(context: &Context, provider: &Provider) -> Vec<Model> {
    let definitions = context.runtime.definitions();
    let windows = definitions.context_windows.get(&provider.name);
    let of_agents = definitions.agents.values();
    let of_agents = of_agents.filter_map(|agent| agent.model.as_ref());
    let mut named: BTreeSet<&str> = of_agents
        .chain([&definitions.default_model])
        .filter(|model| model.provider == provider.name)
        .map(|model| model.model.as_str())
        .collect();
    named.insert(&provider.default_model);
    let known = windows.map(|windows| windows.models.keys());
    named.extend(known.into_iter().flatten().map(String::as_str));
    named
        .into_iter()
        .map(|model| Model {
            provider: provider.name.clone(),
            model: model.to_owned(),
            is_provider_default: model == provider.default_model,
            context_window: windows.and_then(|windows| windows.of(model)),
        })
        .collect()
}

//! `config/…`.

use openvaala_protocol::rpc::params::config::{
    Fault, GetResult, SetParams, SetResult, ValidateParams, ValidateResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};

use crate::config::{Config, ConfigDir, ConfigEdit, ConfigError, ConfigFault, revision};
use crate::context::{ConfigChange, Context};
use crate::environment::Environment;
use crate::methods::server::change;

pub(crate) async fn get(context: &Context) -> Result<GetResult, RpcError> {
    let warnings = context.assembled().config.warnings.clone();
    on_disk(context, |dir, environment| {
        let (path, text) = dir.main_text();
        let text = text.map_err(|error| {
            let message = format!("cannot read {}: {error}", path.display());
            RpcError::new(ErrorCode::Runtime, message)
        })?;
        let loaded = dir.load(environment);
        Ok(GetResult {
            path: path.display().to_string(),
            revision: revision(text.as_deref()),
            text: text.unwrap_or_default(),
            faults: faults(&loaded),
            warnings,
        })
    })
    .await?
}

pub(crate) async fn validate(
    context: &Context,
    params: ValidateParams,
) -> Result<ValidateResult, RpcError> {
    on_disk(context, move |dir, environment| {
        let loaded = dir.load_with(environment, params.text.as_deref());
        ValidateResult {
            faults: faults(&loaded),
            warnings: loaded.map_or_else(|_| Vec::new(), |config| config.warnings),
        }
    })
    .await
}

pub(crate) async fn set(context: &Context, params: SetParams) -> Result<SetResult, RpcError> {
    let SetParams {
        text,
        revision: expected,
    } = params;
    let revision = revision(Some(&text));
    let reloaded = change(
        context,
        Some(ConfigChange::Edit(ConfigEdit::Main { text, expected })),
    )
    .await?;
    Ok(SetResult {
        revision,
        default_model: reloaded.default_model,
        after_restart: reloaded.after_restart,
    })
}

async fn on_disk<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&ConfigDir, &Environment) -> T + Send + 'static,
) -> Result<T, RpcError> {
    let source = context.source.clone();
    let work = tokio::task::spawn_blocking(move || work(&source.dir, &source.environment));
    work.await
        .map_err(|error| RpcError::new(ErrorCode::Runtime, error.to_string()))
}

fn faults(loaded: &Result<Config, ConfigError>) -> Vec<Fault> {
    match loaded {
        Ok(_) => Vec::new(),
        Err(error) => error.faults.iter().map(fault).collect(),
    }
}

fn fault(fault: &ConfigFault) -> Fault {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Fault {
        origin: fault.origin.clone(),
        line: fault.place.map(|(line, _)| number(line)),
        column: fault.place.map(|(_, column)| number(column)),
        field: fault.field.clone(),
        message: fault.message.clone(),
    }
}

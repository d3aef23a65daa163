//! `openvaala provider …`.

use std::io::Read;
use std::process::ExitCode;

use openvaala_core::dialect::http::Secret;
use openvaala_protocol::rpc::method::{
    ModelDefaultSet, ProviderEdit, ProviderList, ProviderRemove, ProviderTest, ServerReload,
};
use openvaala_protocol::rpc::params::model::DefaultSetParams;
use openvaala_protocol::rpc::params::provider::{EditParams, ListParams, RemoveParams, TestParams};
use openvaala_protocol::rpc::params::server::ReloadParams;
use openvaala_server::config::{ConfigDir, NewKey, NewProvider};

use super::environment;
use super::exec::model;
use crate::args::{AddArgs, EditProviderArgs, ProviderCommand};
use crate::dirs::Dirs;
use crate::error::{CliError, FAILED};
use crate::output::{note, out};
use crate::start::{connect, connect_running};

pub(super) async fn run(dirs: &Dirs, command: ProviderCommand) -> Result<ExitCode, CliError> {
    match command {
        ProviderCommand::Add(args) => add(dirs, args).await,
        ProviderCommand::Edit(args) => edit(dirs, args).await,
        ProviderCommand::Remove { name } => remove(dirs, name).await,
        ProviderCommand::Default { model } => set_default(dirs, &model).await,
        ProviderCommand::List { json } => list(dirs, json).await,
        ProviderCommand::Test { name } => test(dirs, name).await,
    }
}

async fn add(dirs: &Dirs, args: AddArgs) -> Result<ExitCode, CliError> {
    let key = match args.api_key_env {
        Some(variable) => NewKey::Variable(variable),
        None if args.api_key_stdin => {
            let mut key = String::new();
            std::io::stdin().read_to_string(&mut key)?;
            NewKey::Given(Secret::new(key.trim()))
        }
        None => NewKey::None,
    };
    let mut new = NewProvider::new(args.name.clone(), args.base_url, key, args.model);
    new.speaks = args.speaks;
    new.make_default = args.default;
    let path = ConfigDir::new(&dirs.config)
        .add_provider(&new, &environment())
        .map_err(|error| CliError::user("the provider was not added").because(error))?;
    out(&format!("added {}\n", path.display()))?;
    if let Some((client, _notices)) = connect_running(dirs).await? {
        match client.call::<ServerReload>(ReloadParams::default()).await {
            Ok(_) => note("the running server uses it from now on"),
            Err(error) => note(&format!(
                "the running server keeps its old configuration: {error}\n\
                 hint: a variable that it lacks counts after `openvaala serve stop`"
            )),
        }
        client.close().await;
    }
    note(&format!(
        "try it with `openvaala provider test {}`",
        args.name
    ));
    Ok(ExitCode::SUCCESS)
}

async fn edit(dirs: &Dirs, args: EditProviderArgs) -> Result<ExitCode, CliError> {
    let api_key = if args.api_key_stdin {
        let mut key = String::new();
        std::io::stdin().read_to_string(&mut key)?;
        Some(key.trim().to_owned())
    } else {
        None
    };
    let params = EditParams {
        name: args.name.clone(),
        dialect: args.speaks.map(|speaks| speaks.as_str().to_owned()),
        base_url: args.base_url,
        api_key,
        api_key_env: args.api_key_env,
        default_model: args.model,
    };
    let (client, _notices) = connect(dirs).await?;
    client.call::<ProviderEdit>(params).await?;
    client.close().await;
    out(&format!("changed {}\n", args.name))?;
    note(&format!(
        "try it with `openvaala provider test {}`",
        args.name
    ));
    Ok(ExitCode::SUCCESS)
}

async fn remove(dirs: &Dirs, name: String) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let params = RemoveParams { name: name.clone() };
    client.call::<ProviderRemove>(params).await?;
    client.close().await;
    out(&format!("removed {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

async fn set_default(dirs: &Dirs, named: &str) -> Result<ExitCode, CliError> {
    let params = DefaultSetParams {
        model: model(named)?,
    };
    let (client, _notices) = connect(dirs).await?;
    let set = client.call::<ModelDefaultSet>(params).await?.default_model;
    client.close().await;
    out(&format!(
        "new conversations ask {}/{}\n",
        set.provider, set.model
    ))?;
    Ok(ExitCode::SUCCESS)
}

async fn list(dirs: &Dirs, json: bool) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let listed = client.call::<ProviderList>(ListParams::default()).await?;
    client.close().await;
    if json {
        out(&format!("{}\n", serde_json::to_string(&listed)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for provider in &listed.providers {
        let default = if provider.name == listed.default_model.provider {
            "*"
        } else {
            " "
        };
        out(&format!(
            "{default} {:<16} {:<16} {:<24} {}  ({})\n",
            provider.name,
            provider.dialect,
            provider.default_model,
            provider.base_url.as_deref().unwrap_or("-"),
            provider.origin,
        ))?;
    }
    note("* is asked by default");
    Ok(ExitCode::SUCCESS)
}

async fn test(dirs: &Dirs, name: Option<String>) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let name = name.unwrap_or_else(|| client.initialized().default_model.provider.clone());
    let params = TestParams {
        name: name.clone(),
        model: None,
    };
    let result = client.call::<ProviderTest>(params).await?;
    client.close().await;
    if result.ok {
        out(&format!(
            "{name} answered in {} ms: {}\n",
            result.millis, result.message
        ))?;
        Ok(ExitCode::SUCCESS)
    } else {
        note(&format!(
            "error: {name} does not answer as it should\n  because: {}",
            result.message
        ));
        Ok(ExitCode::from(FAILED))
    }
}

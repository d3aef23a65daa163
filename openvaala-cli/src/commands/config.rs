//! `openvaala config …`.

use std::path::Path;
use std::process::ExitCode;

use openvaala_protocol::rpc::method::{ConfigGet, ConfigSet};
use openvaala_protocol::rpc::params::config::{GetParams, SetParams};
use openvaala_server::config::ConfigDir;

use super::environment;
use crate::args::ConfigCommand;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::connect;

pub(super) async fn run(dirs: &Dirs, command: ConfigCommand) -> Result<ExitCode, CliError> {
    match command {
        ConfigCommand::Check => check(dirs),
        ConfigCommand::Show { json } => show(dirs, json).await,
        ConfigCommand::Set { file, revision } => set(dirs, &file, revision).await,
    }
}

async fn show(dirs: &Dirs, json: bool) -> Result<ExitCode, CliError> {
    let (client, _notices) = connect(dirs).await?;
    let got = client.call::<ConfigGet>(GetParams::default()).await?;
    client.close().await;
    if json {
        out(&format!("{}\n", serde_json::to_string(&got)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    out(&got.text)?;
    note(&format!("{}, revision {}", got.path, got.revision));
    for fault in &got.faults {
        let place = fault.line.map_or_else(String::new, |line| {
            format!(":{line}:{}", fault.column.unwrap_or(1))
        });
        note(&format!(
            "wrong: {}{place}: {}",
            fault.origin, fault.message
        ));
    }
    for warning in &got.warnings {
        note(&format!("warning: {warning}"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(dirs: &Dirs, file: &Path, revision: Option<String>) -> Result<ExitCode, CliError> {
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())?
    } else {
        std::fs::read_to_string(file).map_err(|error| {
            CliError::usage(format!("cannot read {}", file.display())).because(error)
        })?
    };
    let (client, _notices) = connect(dirs).await?;
    let set = client
        .call::<ConfigSet>(SetParams { text, revision })
        .await?;
    client.close().await;
    out(&format!("in force at revision {}\n", set.revision))?;
    for what in &set.after_restart {
        note(&format!("after a restart: {what}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn check(dirs: &Dirs) -> Result<ExitCode, CliError> {
    let config = ConfigDir::new(&dirs.config)
        .load(&environment())
        .map_err(|error| {
            CliError::user(error.to_string()).hint("mend the files and check again")
        })?;
    for warning in &config.warnings {
        note(&format!("warning: {warning}"));
    }
    let providers: Vec<&str> = config.providers.keys().map(String::as_str).collect();
    let providers = if providers.is_empty() {
        "none configured".to_owned()
    } else {
        providers.join(", ")
    };
    out(&format!(
        "{} is right\nproviders: {providers}\n",
        dirs.config.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

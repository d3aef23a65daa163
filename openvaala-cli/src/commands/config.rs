//! `openvaala config check`.

use std::process::ExitCode;

use openvaala_server::config::ConfigDir;

use super::environment;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};

pub(super) fn check(dirs: &Dirs) -> Result<ExitCode, CliError> {
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

//! Where things are.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::args::{DirArgs, ServerArgs};
use crate::error::CliError;
use crate::remote::RemoteServer;

/// The directories in use, and the server if it is not found by them.
#[derive(Clone, Debug)]
pub(crate) struct Dirs {
    pub(crate) config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) default_data: PathBuf,
    pub(crate) state: PathBuf,
    /// The server to use in the place of that of this machine.
    pub(crate) remote: Option<RemoteServer>,
}

impl Dirs {
    /// Flags and variables first, then the places that the XDG base directory specification names.
    pub(crate) fn find(args: &DirArgs, server: &ServerArgs) -> Result<Self, CliError> {
        let base = etcetera::base_strategy::Xdg::new().map_err(|error| {
            CliError::user("the home directory is not known")
                .because(error)
                .hint("set HOME, or give --config-dir, --data-dir and --state-dir")
        })?;
        let default_data = base.data_dir().join("openvaala");
        let state = base
            .state_dir()
            .unwrap_or_else(|| base.home_dir().join(".local/state"));
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let or =
            |given: &Option<PathBuf>, default: PathBuf| absolute(given.clone().unwrap_or(default));
        Ok(Self {
            config: or(&args.config_dir, base.config_dir().join("openvaala")),
            data: or(&args.data_dir, default_data.clone()),
            default_data,
            state: or(&args.state_dir, state.join("openvaala")),
            remote: RemoteServer::find(server)?,
        })
    }

    /// Refuses a command that works on files of this machine while a server elsewhere is named.
    pub(crate) fn only_here(&self, command: &str) -> Result<(), CliError> {
        match &self.remote {
            None => Ok(()),
            Some(remote) => {
                let url = remote.url();
                let message = format!("`{command}` works on this machine only, not on {url}");
                Err(CliError::usage(message)
                    .hint("run it there, or leave --url and OPENVAALA_URL out"))
            }
        }
    }
}

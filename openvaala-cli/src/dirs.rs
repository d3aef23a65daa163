//! Where things are on this machine.

use std::path::PathBuf;

use etcetera::BaseStrategy;

use crate::args::DirArgs;
use crate::error::CliError;

/// The directories in use.
#[derive(Clone, Debug)]
pub(crate) struct Dirs {
    pub(crate) config: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) default_data: PathBuf,
    pub(crate) state: PathBuf,
}

impl Dirs {
    /// Flags and variables first, then the places that the XDG base directory specification names.
    pub(crate) fn find(args: &DirArgs) -> Result<Self, CliError> {
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
        })
    }
}

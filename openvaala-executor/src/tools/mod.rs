//! The tools that every environment offers (feature `tools`).

mod bash;
mod read_file;

use std::sync::Arc;

use crate::file::Files;
use crate::process::Processes;
use crate::tool::{Tool, typed};

/// The tools of an environment: `bash` and `read_file`.
#[must_use]
pub fn environment_tools(
    files: Arc<dyn Files>,
    processes: Arc<dyn Processes>,
) -> Vec<Arc<dyn Tool>> {
    vec![
        typed(bash::Bash::new(processes)),
        typed(read_file::ReadFile::new(files)),
    ]
}

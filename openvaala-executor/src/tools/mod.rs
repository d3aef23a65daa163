//! The tools that every environment and every session offers (feature `tools`).

mod apply_patch;
mod bash;
mod bash_input;
mod bash_kill;
mod bash_list;
mod bash_output;
mod read_file;
mod status;

use std::sync::Arc;

use crate::commands::{CommandError, CommandHandle, CommandId, Commands};
use crate::file::Files;
use crate::process::Processes;
use crate::tool::{Tool, ToolContext, ToolError, TypedTool, typed};

/// The tools of an environment: `apply_patch`, `bash` and `read_file`.
#[must_use]
pub fn environment_tools(
    files: Arc<dyn Files>,
    processes: Arc<dyn Processes>,
) -> Vec<Arc<dyn Tool>> {
    vec![
        apply_patch::apply_patch(Arc::clone(&files)),
        typed(bash::Bash::new(processes)),
        typed(read_file::ReadFile::new(files)),
    ]
}

/// The tools for the [commands](crate::commands) of a session, wherever these run: `bash_input`,
/// `bash_kill`, `bash_list` and `bash_output`.
///
/// They act on [`ToolContext::commands`] and fail with a clear error without it, so a session
/// offers them once.
#[must_use]
pub fn command_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        typed(bash_input::BashInput),
        typed(bash_kill::BashKill),
        typed(bash_list::BashList),
        typed(bash_output::BashOutput),
    ]
}

fn invalid<T: TypedTool>(message: String) -> ToolError {
    ToolError::InvalidArguments {
        tool: T::NAME.to_owned(),
        message,
    }
}

fn command_failed(error: CommandError) -> ToolError {
    match error {
        CommandError::Executor { source } => source.into(),
        error => ToolError::failed(error.to_string()),
    }
}

fn session(context: &ToolContext) -> Result<&Commands, ToolError> {
    let why = "nothing runs in the background here: every command ends with its call";
    context
        .commands
        .as_ref()
        .ok_or_else(|| ToolError::failed(why))
}

async fn find(context: &ToolContext, id: u32) -> Result<CommandHandle, ToolError> {
    let found = session(context)?.get(CommandId::new(id)).await;
    found.map_err(command_failed)
}

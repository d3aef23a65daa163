//! The tool that ends a command.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::select;

use super::status::{exit_text, status_text};
use super::{command_failed, find};
use crate::commands::{CommandStatus, StoppedBy};
use crate::process;
use crate::tool::{ToolContext, ToolError, ToolOutput, TypedTool};

/// How long the end is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct BashKill;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub(super) enum Signal {
    #[serde(rename = "KILL")]
    Kill,
    #[default]
    #[serde(rename = "TERM")]
    Term,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    id: u32,
    /// TERM is followed by KILL after 500 ms.
    #[serde(default)]
    signal: Signal,
}

#[async_trait]
impl TypedTool for BashKill {
    type Arguments = Arguments;

    const NAME: &'static str = "bash_kill";

    fn description(&self) -> String {
        "Ends a running command with all that it started, and says how it ended.".to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let handle = find(&context, args.id).await?;
        let before = handle.status();
        if !before.is_running() {
            let text = status_text(&before, None);
            return Ok(ToolOutput::text(format!(
                "[command {} had ended before: {text}]",
                args.id
            )));
        }
        let signal = match args.signal {
            Signal::Kill => process::Signal::Kill,
            Signal::Term => process::Signal::Terminate,
        };
        select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            stopped = handle.stop_within(signal, StoppedBy::Kill, PATIENCE) => {
                stopped.map_err(command_failed)?;
            }
        }
        let status = handle.status();
        if status.is_running() {
            return Err(ToolError::failed(format!(
                "command {} was sent KILL {} s ago and still is there; the system does not let it go",
                args.id,
                PATIENCE.as_secs()
            )));
        }
        let text = ending_text(&status);
        Ok(ToolOutput::text(format!("[command {}: {text}]", args.id)))
    }
}

/// How it ended is what was asked for: the shell's own end, not who caused it.
fn ending_text(status: &CommandStatus) -> String {
    match status {
        CommandStatus::Exited { status, .. } => exit_text(*status),
        other => status_text(other, None),
    }
}

//! The tool that writes to the standard input of a command.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::select;
use tokio::time::sleep;

use super::{command_failed, find};
use crate::tool::{ToolContext, ToolError, ToolOutput, TypedTool};

/// How long a command may take to read what is written to it.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct BashInput;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    id: u32,
    /// Written as it is: a line needs its \n.
    #[serde(default)]
    text: String,
    /// Closes stdin after it.
    #[serde(default)]
    end: bool,
}

#[async_trait]
impl TypedTool for BashInput {
    type Arguments = Arguments;

    const NAME: &'static str = "bash_input";

    fn description(&self) -> String {
        "Writes to stdin of a running command that bash started with input true; bash_output shows \
         the answer."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let handle = find(&context, args.id).await?;
        let length = args.text.len();
        let write = handle.write(args.text.into(), args.end);
        select! {
            biased;
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
            written = write => {
                written.map_err(command_failed)?;
                let end = if args.end { ", and stdin is closed" } else { "" };
                let text = format!("[{length} bytes written to command {}{end}]", args.id);
                Ok(ToolOutput::text(text))
            }
            () = sleep(PATIENCE) => Err(ToolError::failed(format!(
                "command {} has not read all of the {length} bytes within {} s; what is left waits \
                 for it to read on, so write nothing more until bash_output shows progress",
                args.id,
                PATIENCE.as_secs()
            ))),
        }
    }
}

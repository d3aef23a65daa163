//! The tool that lists the commands of the session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::session;
use super::status::{status_text, time_text};
use crate::commands::CommandInfo;
use crate::output::grouped;
use crate::tool::{ToolContext, ToolError, ToolOutput, TypedTool};

/// As much of a command line as is shown, in bytes.
const SHOWN_LINE: usize = 120;

#[derive(Debug)]
pub(super) struct BashList;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {}

#[async_trait]
impl TypedTool for BashList {
    type Arguments = Arguments;

    const NAME: &'static str = "bash_list";

    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Lists the commands that run, and those that ended after their call had returned."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, _: Arguments) -> Result<ToolOutput, ToolError> {
        let all = session(&context)?.list().await;
        let lines: Vec<String> = all
            .iter()
            .filter(|info| info.left || info.status.is_running())
            .map(line)
            .collect();
        if lines.is_empty() {
            return Ok(ToolOutput::text("[no commands]"));
        }
        let goes_on = all.iter().any(|info| info.status.is_running());
        Ok(ToolOutput::text(lines.join("\n")).with_goes_on(goes_on))
    }
}

fn line(info: &CommandInfo) -> String {
    let shown = info.line.lines().next().unwrap_or_default();
    let end = shown.floor_char_boundary(SHOWN_LINE);
    let more = if end < info.line.len() { " …" } else { "" };
    let bytes = usize::try_from(info.bytes).unwrap_or(usize::MAX);
    let ended = info.ended_ago.map(|ago| format!(" {} ago", time_text(ago)));
    format!(
        "{}: {}{}, started {} ago, {} bytes: {}{more}",
        info.id,
        status_text(&info.status, None),
        ended.unwrap_or_default(),
        time_text(info.started_ago),
        grouped(bytes),
        &shown[..end]
    )
}

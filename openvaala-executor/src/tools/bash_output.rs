//! The tool that reads what a command writes.

mod scan;

use std::time::Duration;

use async_trait::async_trait;
use regex_lite::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::select;
use tokio::time::sleep;

use self::scan::{Scan, Wanted};
use super::status::{status_text, with_marks};
use super::{command_failed, find, invalid};
use crate::commands::CommandHandle;
use crate::tool::{ToolContext, ToolError, ToolOutput, ToolStatus, TypedTool};

const LONGEST_WAIT_MS: u64 = 600_000;

/// After the first news, as much time for what comes right behind them.
const GATHER: Duration = Duration::from_millis(100);

/// Lines or matches, unless the call says otherwise.
const DEFAULT_LINES: u64 = 200;

#[derive(Debug)]
pub(super) struct BashOutput;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    id: u32,
    /// Waits up to this for new text or the end.
    wait_ms: Option<u64>,
    /// Reads lines of all output, from this one (1 is the first).
    from_line: Option<u64>,
    /// How many lines or matches; default 200.
    lines: Option<u64>,
    /// Only lines that match this regex.
    pattern: Option<String>,
}

#[async_trait]
impl TypedTool for BashOutput {
    type Arguments = Arguments;

    const NAME: &'static str = "bash_output";

    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Shows what a command has written since the last look, and whether it still runs. With \
         from_line, lines or pattern: numbered lines of all its output, also of one that has ended."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let wait = args.wait_ms.unwrap_or(0);
        if wait > LONGEST_WAIT_MS {
            return Err(invalid::<Self>(format!(
                "wait_ms is {wait}; it must be 0 to {LONGEST_WAIT_MS}"
            )));
        }
        let wanted = wanted(&args)?;
        let handle = find(&context, args.id).await?;
        let cancelled = match wanted {
            Some(wanted) => return read(&context, &handle, wanted).await,
            None => wait_for_news(&context, &handle, Duration::from_millis(wait)).await,
        };
        // First, so that text of a command that is told as ended is all there is.
        let status = handle.status();
        let clipped = handle.take_text().await.map_err(command_failed)?;
        let goes_on = status.is_running();
        let mut marks = Vec::new();
        if clipped.text.is_empty() {
            marks.push("[nothing new]".to_owned());
        }
        marks.push(format!("[{}]", status_text(&status, None)));
        let status = if cancelled {
            ToolStatus::Interrupted
        } else {
            ToolStatus::Ok
        };
        Ok(ToolOutput::text(with_marks(clipped.text, &marks))
            .with_status(status)
            .with_cut(clipped.cut)
            .with_goes_on(goes_on))
    }
}

/// Tells whether the call was cancelled.
async fn wait_for_news(context: &ToolContext, handle: &CommandHandle, wait: Duration) -> bool {
    let news = async {
        handle.news().await;
        select! {
            () = handle.ended() => {}
            () = sleep(GATHER) => {}
        }
    };
    select! {
        biased;
        () = context.cancel.cancelled() => true,
        () = news, if !wait.is_zero() => false,
        () = sleep(wait) => false,
    }
}

fn wanted(args: &Arguments) -> Result<Option<Wanted>, ToolError> {
    if args.from_line.is_none() && args.lines.is_none() && args.pattern.is_none() {
        return Ok(None);
    }
    for (name, value) in [("from_line", args.from_line), ("lines", args.lines)] {
        if value == Some(0) {
            return Err(invalid::<BashOutput>(format!(
                "{name} is 0; it must be at least 1"
            )));
        }
    }
    let pattern = args.pattern.as_deref().map(Regex::new).transpose();
    let pattern = pattern.map_err(|error| {
        invalid::<BashOutput>(format!("pattern is no regular expression: {error}"))
    })?;
    Ok(Some(Wanted {
        first: args.from_line.unwrap_or(1),
        limit: args.lines.unwrap_or(DEFAULT_LINES),
        pattern,
    }))
}

async fn read(
    context: &ToolContext,
    handle: &CommandHandle,
    wanted: Wanted,
) -> Result<ToolOutput, ToolError> {
    let status = handle.status();
    let mut scan = Scan::new(wanted);
    let found = select! {
        biased;
        () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
        found = scan.all(handle.output()) => found,
    };
    if !found {
        return Err(ToolError::failed(format!(
            "the output of command {} is not kept here, only what is new can be read: leave out \
             from_line, lines and pattern",
            handle.id()
        )));
    }
    let (text, cut) = scan.finish();
    let mark = format!("[{}]", status_text(&status, None));
    Ok(ToolOutput::text(with_marks(text, &[mark]))
        .with_cut(cut)
        .with_goes_on(status.is_running()))
}

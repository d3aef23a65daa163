//! The tool that runs a command line.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until};

use crate::output::{Clip, DEFAULT_CAP, Screen};
use crate::process::{Command, ExitStatus, Process, ProcessEvent, Processes, Signal};
use crate::tool::{ToolContext, ToolError, ToolOutput, ToolStatus, TypedTool};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const LONGEST_TIMEOUT_MS: u64 = 600_000;

/// Linux takes no longer argument than this.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_millis(500);

/// How long a killed command is waited for.
const AFTER_KILL: Duration = Duration::from_millis(100);

/// After the shell has exited, this much silence means that nobody writes any more.
const SILENCE: Duration = Duration::from_millis(200);

/// After the shell has exited, output is taken no longer than this.
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// How often a group that should vanish is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Room for the marks behind the output.
const MARKS_ROOM: usize = 300;

#[derive(Debug)]
pub(super) struct Bash {
    processes: Arc<dyn Processes>,
}

impl Bash {
    pub(super) fn new(processes: Arc<dyn Processes>) -> Self {
        Self { processes }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    command: String,
    /// Default 120000, at most 600000.
    timeout_ms: Option<u64>,
    /// Default: the working directory.
    workdir: Option<String>,
}

#[async_trait]
impl TypedTool for Bash {
    type Arguments = Arguments;

    const NAME: &'static str = "bash";

    fn description(&self) -> String {
        "Runs a command line in a new shell without input. Returns stdout and stderr, and the exit \
         code if not 0. Of long output you see head and tail. Background processes are ended when \
         the shell exits."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let timeout = check(&args)?;
        let mut command = Command::new(args.command).with_merged_output();
        command.cwd = args.workdir;
        let process = select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            process = self.processes.spawn(command) => process?,
        };
        Run::new(process, &context).finish(timeout).await
    }
}

fn check(args: &Arguments) -> Result<Duration, ToolError> {
    let invalid = |message: String| ToolError::InvalidArguments {
        tool: Bash::NAME.to_owned(),
        message,
    };
    let timeout_ms = args.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(1..=LONGEST_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(invalid(format!(
            "timeout_ms is {timeout_ms}; it must be 1 to {LONGEST_TIMEOUT_MS}"
        )));
    }
    if args.command.len() > LONGEST_COMMAND {
        return Err(invalid(format!(
            "command has {} bytes, at most {LONGEST_COMMAND} are possible; write large data to a \
             file in several calls",
            args.command.len()
        )));
    }
    if args.command.contains('\0') {
        return Err(invalid(
            "command contains a NUL character, which no shell takes".to_owned(),
        ));
    }
    Ok(Duration::from_millis(timeout_ms))
}

/// One running command.
struct Run<'a> {
    process: Box<dyn Process>,
    context: &'a ToolContext,
    screen: Screen,
    clip: Clip,
    status: Option<ExitStatus>,
    closed: bool,
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Cancelled,
    Exited,
    TimedOut,
}

impl<'a> Run<'a> {
    fn new(process: Box<dyn Process>, context: &'a ToolContext) -> Self {
        let clip = Clip::new(DEFAULT_CAP - MARKS_ROOM);
        Self {
            process,
            context,
            screen: Screen::default(),
            clip,
            status: None,
            closed: false,
        }
    }

    async fn finish(mut self, timeout: Duration) -> Result<ToolOutput, ToolError> {
        let end = self.until_exit(Instant::now() + timeout).await?;
        if end == End::Exited {
            self.drain().await?;
        }
        let left = self.process.is_alive();
        if left || end != End::Exited {
            self.stop().await?;
        }
        Ok(self.output(end, left, timeout))
    }

    async fn until_exit(&mut self, deadline: Instant) -> Result<End, ToolError> {
        let context = self.context;
        while self.status.is_none() {
            select! {
                biased;
                () = context.cancel.cancelled() => return Ok(End::Cancelled),
                () = sleep_until(deadline) => return Ok(End::TimedOut),
                event = self.process.next_event() => self.take(event?),
            }
        }
        Ok(End::Exited)
    }

    /// Takes what is still to come after the shell has exited: a child in the background may hold
    /// the output open for ever.
    async fn drain(&mut self) -> Result<(), ToolError> {
        let context = self.context;
        let last = Instant::now() + LONGEST_DRAIN;
        while !self.closed {
            select! {
                biased;
                () = context.cancel.cancelled() => return Ok(()),
                () = sleep_until(last.min(Instant::now() + SILENCE)) => return Ok(()),
                event = self.process.next_event() => self.take(event?),
            }
        }
        // One that writes elsewhere, such as the end of `>(gzip >file)`, gets as long to finish.
        let last = Instant::now() + SILENCE;
        while self.process.is_alive() && Instant::now() < last && !context.cancel.is_cancelled() {
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Ends the whole group: asks first, then kills.
    async fn stop(&mut self) -> Result<(), ToolError> {
        self.process.signal(Signal::Terminate)?;
        let killed_at = Instant::now() + GRACE;
        self.take_until(killed_at).await?;
        while self.process.is_alive() && Instant::now() < killed_at {
            sleep(LOOK_EVERY).await;
        }
        self.process.signal(Signal::Kill)?;
        self.take_until(Instant::now() + AFTER_KILL).await
    }

    async fn take_until(&mut self, deadline: Instant) -> Result<(), ToolError> {
        while !self.closed {
            select! {
                biased;
                () = sleep_until(deadline) => return Ok(()),
                event = self.process.next_event() => self.take(event?),
            }
        }
        Ok(())
    }

    fn take(&mut self, event: ProcessEvent) {
        match event {
            ProcessEvent::Closed => self.closed = true,
            ProcessEvent::Exited(status) => self.status = Some(status),
            ProcessEvent::Output(output) => {
                let mut text = String::new();
                self.screen.push(&output.bytes, &mut text);
                self.clip.push(text.as_bytes());
                self.context.output.write(output.bytes);
            }
        }
    }

    fn output(mut self, end: End, left: bool, timeout: Duration) -> ToolOutput {
        let mut rest = String::new();
        self.screen.finish(&mut rest);
        self.clip.push(rest.as_bytes());
        let clipped = self.clip.finish();
        let status = self.status.unwrap_or(ExitStatus::exited(0));
        let mut marks = Vec::new();
        if clipped.text.is_empty() {
            marks.push("[no output]".to_owned());
        }
        marks.extend(ending(end, status, timeout));
        if left && end == End::Exited {
            marks.push("[background processes were ended with the call]".to_owned());
        }
        let tool_status = match end {
            End::Cancelled => ToolStatus::Interrupted,
            End::Exited if status.success() => ToolStatus::Ok,
            End::Exited | End::TimedOut => ToolStatus::Failed,
        };
        ToolOutput::text(with_marks(clipped.text, &marks))
            .with_status(tool_status)
            .with_exit_code(status.code.filter(|_| end == End::Exited))
            .with_cut(clipped.cut)
    }
}

/// What the model is told about the end, where there is something to tell.
fn ending(end: End, status: ExitStatus, timeout: Duration) -> Option<String> {
    match (end, status) {
        (End::Cancelled, _) => {
            Some("[interrupted: the command and its children were ended]".to_owned())
        }
        (End::TimedOut, _) => Some(format!(
            "[timed out after {} s: the command and its children were ended]",
            timeout.as_secs_f64()
        )),
        (
            End::Exited,
            ExitStatus {
                signal: Some(signal),
                ..
            },
        ) => Some(format!("[ended by signal {}]", signal_name(signal))),
        (
            End::Exited,
            ExitStatus {
                code: Some(0) | None,
                ..
            },
        ) => None,
        (
            End::Exited,
            ExitStatus {
                code: Some(code), ..
            },
        ) => Some(format!("[exit code {code}]")),
    }
}

fn with_marks(mut text: String, marks: &[String]) -> String {
    if !text.is_empty() && !text.ends_with('\n') && !marks.is_empty() {
        text.push('\n');
    }
    text + &marks.join("\n")
}

/// The number with its name, for those that have the same one on every Unix.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}

#[cfg(test)]
mod tests;

//! The tool that runs a command line.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::select;
use tokio::time::{Instant, sleep_until};

use super::status::{exit_text, status_text, stopped_text, with_marks};
use super::{command_failed, invalid};
use crate::commands::{Attended, CommandStatus, GRACE, StartOptions, StoppedBy, alone};
use crate::output::{Clipped, DEFAULT_CAP};
use crate::process::{Command, ExitStatus, Input, Processes, Signal};
use crate::tool::{ToolContext, ToolError, ToolOutput, ToolStatus, TypedTool};

const DEFAULT_YIELD_MS: u64 = 30_000;
const SHORTEST_YIELD_MS: u64 = 250;

/// What bounds a command that can't go on after its call.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

const LONGEST_MS: u64 = 600_000;

/// Linux takes no longer argument than this.
const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// How long a killed command is waited for.
const AFTER_KILL: Duration = Duration::from_millis(100);

/// Room for the marks behind the output.
const MARKS_ROOM: usize = 400;

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
    /// Default: the working directory.
    workdir: Option<String>,
    /// How long to wait; default 30000, 250 to 600000.
    yield_ms: Option<u64>,
    /// Ends it after this; default never.
    timeout_ms: Option<u64>,
    /// Keeps stdin open for `bash_input`.
    #[serde(default)]
    input: bool,
}

#[async_trait]
impl TypedTool for Bash {
    type Arguments = Arguments;

    const NAME: &'static str = "bash";

    fn description(&self) -> String {
        "Runs a command line in a new shell. Returns stdout and stderr, and the exit code if not \
         0; of long output head and tail. What still runs after yield_ms, or was left in the \
         background with &, goes on as a command with an id for bash_output, bash_input and \
         bash_kill, until the session ends."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        let limits = check(&args, context.commands.is_some())?;
        let mut command = Command::new(args.command).with_merged_output();
        command.cwd = args.workdir;
        // Without a session nobody could write to it.
        if args.input && context.commands.is_some() {
            command.input = Input::Piped;
        }
        let options = StartOptions::new(Arc::clone(&context.output))
            .with_timeout(limits.timeout)
            .with_unseen_cap(DEFAULT_CAP - MARKS_ROOM);
        let Some(commands) = &context.commands else {
            let process = select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
                process = self.processes.spawn(command) => process?,
            };
            let (attended, task) = alone(process, options);
            let (mut call, task) = (pin!(attend(attended, &context, limits)), pin!(task));
            return select! {
                output = &mut call => output,
                () = task => call.await,
            };
        };
        let attended = select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
            started = commands.start(&*self.processes, command, options) => {
                started.map_err(command_failed)?
            }
        };
        attend(attended, &context, limits).await
    }
}

/// How long a call waits, and how long its command may run.
#[derive(Clone, Copy, Debug)]
struct Limits {
    waits: Option<Duration>,
    timeout: Option<Duration>,
}

fn check(args: &Arguments, in_session: bool) -> Result<Limits, ToolError> {
    let bounded = |name, value: u64, least| {
        if (least..=LONGEST_MS).contains(&value) {
            return Ok(Duration::from_millis(value));
        }
        Err(invalid::<Bash>(format!(
            "{name} is {value}; it must be {least} to {LONGEST_MS}"
        )))
    };
    let waits = args.yield_ms.unwrap_or(DEFAULT_YIELD_MS);
    let waits = bounded("yield_ms", waits, SHORTEST_YIELD_MS)?;
    let default = (!in_session).then_some(DEFAULT_TIMEOUT_MS);
    let timeout = args.timeout_ms.or(default);
    let timeout = timeout.map(|timeout| bounded("timeout_ms", timeout, 1));
    if args.command.len() > LONGEST_COMMAND {
        return Err(invalid::<Bash>(format!(
            "command has {} bytes, at most {LONGEST_COMMAND} are possible; write large data to a \
             file in several calls",
            args.command.len()
        )));
    }
    if args.command.contains('\0') {
        let message = "command contains a NUL character, which no shell takes";
        return Err(invalid::<Bash>(message.to_owned()));
    }
    Ok(Limits {
        waits: in_session.then_some(waits),
        timeout: timeout.transpose()?,
    })
}

/// Why a call no longer waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Cancelled,
    Settled,
    TimedOut,
    Yielded,
}

/// Waits for a command and says what there is to say; in a session it may leave it behind.
async fn attend(
    attended: Attended,
    context: &ToolContext,
    limits: Limits,
) -> Result<ToolOutput, ToolError> {
    let handle = attended.handle().clone();
    let end = wait(&attended, context, limits).await;
    let in_session = context.commands.is_some();
    let left = end == End::Settled && !handle.is_ended();
    let patience = GRACE + AFTER_KILL;
    if end == End::Cancelled || (left && !in_session) {
        let stop = handle.stop_within(Signal::Terminate, StoppedBy::Call, patience);
        stop.await.map_err(command_failed)?;
    }
    let clipped = handle.take_text().await.map_err(command_failed)?;
    let status = handle.status();
    let goes_on = in_session && status.is_running() && matches!(end, End::Yielded | End::Settled);
    let mut told = Told {
        end,
        status,
        left: left && !in_session,
        limits,
        command: goes_on.then(|| handle.id().to_string()),
        whole: None,
    };
    if clipped.cut && in_session && handle.output().read(0, 1).await.is_some() {
        told.whole = Some(handle.id().to_string());
    }
    if goes_on {
        attended.leave().await;
    }
    told.output(clipped)
}

async fn wait(attended: &Attended, context: &ToolContext, limits: Limits) -> End {
    let (handle, now) = (attended.handle(), Instant::now());
    // One that can't be killed is not waited for any longer.
    let hopeless = limits.timeout.map(|timeout| timeout + GRACE + AFTER_KILL);
    let (waits, end) = match (limits.waits, hopeless) {
        (Some(waits), Some(hopeless)) if hopeless < waits => (Some(hopeless), End::TimedOut),
        (Some(waits), _) => (Some(waits), End::Yielded),
        (None, hopeless) => (hopeless, End::TimedOut),
    };
    let patience = async {
        match waits {
            Some(waits) => sleep_until(now + waits).await,
            None => std::future::pending().await,
        }
    };
    select! {
        biased;
        () = context.cancel.cancelled() => End::Cancelled,
        () = handle.settled() => End::Settled,
        () = patience => end,
    }
}

/// What is told of a command at the end of its call.
struct Told {
    end: End,
    status: CommandStatus,
    /// Its shell had exited, and what ran on was ended.
    left: bool,
    limits: Limits,
    /// As which command it goes on.
    command: Option<String>,
    /// As which command the whole output can be read.
    whole: Option<String>,
}

impl Told {
    fn output(self, clipped: Clipped) -> Result<ToolOutput, ToolError> {
        if let (CommandStatus::Lost { message }, true) = (&self.status, clipped.text.is_empty()) {
            return Err(ToolError::failed(message.clone()));
        }
        let mut marks = Vec::new();
        if clipped.text.is_empty() {
            marks.push("[no output]".to_owned());
        }
        if let Some(id) = &self.whole {
            marks.push(format!(
                "[all of it is kept: bash_output with id {id} reads lines or finds a pattern]"
            ));
        }
        marks.extend(self.ending());
        let code = self.shell().and_then(|status| status.code);
        Ok(ToolOutput::text(with_marks(clipped.text, &marks))
            .with_status(self.tool_status())
            .with_exit_code(code)
            .with_cut(clipped.cut))
    }

    /// How the shell ended, if it ended by itself and in time.
    fn shell(&self) -> Option<ExitStatus> {
        match (self.end, &self.status) {
            (End::Cancelled | End::TimedOut, _) => None,
            (_, CommandStatus::Exited { status, stopped }) => {
                let by_itself = stopped.is_none() || self.left;
                Some(*status).filter(|_| by_itself)
            }
            (_, CommandStatus::Running { shell }) => *shell,
            (_, CommandStatus::Lost { .. }) => None,
        }
    }

    fn ending(&self) -> Vec<String> {
        let mark = |text: String| format!("[{text}]");
        let timeout = self.limits.timeout;
        match (self.end, &self.command) {
            (End::Cancelled, _) => return vec![mark(stopped_text(StoppedBy::Call, timeout))],
            (End::TimedOut, _) => return vec![mark(stopped_text(StoppedBy::Timeout, timeout))],
            (_, Some(id)) if self.shell().is_none() => {
                let waits = self.limits.waits.unwrap_or_default().as_secs_f64();
                return vec![format!(
                    "[still running after {waits} s as command {id}; read on with bash_output]"
                )];
            }
            _ => {}
        }
        let Some(shell) = self.shell() else {
            return vec![mark(status_text(&self.status, timeout))];
        };
        let mut marks = Vec::new();
        if !shell.success() {
            marks.push(mark(exit_text(shell)));
        }
        match &self.command {
            Some(id) => marks.push(format!(
                "[processes left in the background go on as command {id}]"
            )),
            None if self.left => {
                marks.push("[background processes were ended with the call]".to_owned());
            }
            None => {}
        }
        marks
    }

    fn tool_status(&self) -> ToolStatus {
        match (self.end, self.shell(), &self.command) {
            (End::Cancelled, ..) => ToolStatus::Interrupted,
            (_, Some(shell), _) if !shell.success() => ToolStatus::Failed,
            (_, Some(_), _) | (_, None, Some(_)) => ToolStatus::Ok,
            (_, None, None) => ToolStatus::Failed,
        }
    }
}

#[cfg(test)]
mod tests;

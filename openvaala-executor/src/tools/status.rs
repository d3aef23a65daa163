//! What the model reads about the end of a command.

use std::time::Duration;

use crate::commands::{CommandStatus, StoppedBy};
use crate::process::ExitStatus;

/// What came of a command, in a few words; `timeout` is what it was given.
pub(super) fn status_text(status: &CommandStatus, timeout: Option<Duration>) -> String {
    match status {
        CommandStatus::Running { shell: None } => "still running".to_owned(),
        CommandStatus::Running { shell: Some(shell) } => format!(
            "{}; what it left in the background still runs",
            exit_text(*shell)
        ),
        CommandStatus::Exited {
            status,
            stopped: None,
        } => exit_text(*status),
        CommandStatus::Exited {
            stopped: Some(by), ..
        } => stopped_text(*by, timeout),
        CommandStatus::Lost { message } => format!("lost: {message}"),
    }
}

pub(super) fn stopped_text(by: StoppedBy, timeout: Option<Duration>) -> String {
    let why = match (by, timeout) {
        (StoppedBy::Call, _) => "interrupted".to_owned(),
        (StoppedBy::Kill, _) => "killed".to_owned(),
        (StoppedBy::Session, _) => "the session was closed".to_owned(),
        (StoppedBy::Timeout, Some(time)) => format!("timed out after {} s", time.as_secs_f64()),
        (StoppedBy::Timeout, None) => "timed out".to_owned(),
    };
    format!("{why}: the command and its children were ended")
}

pub(super) fn exit_text(status: ExitStatus) -> String {
    match (status.code, status.signal) {
        (_, Some(signal)) => format!("ended by signal {}", signal_name(signal)),
        (code, None) => format!("exit code {}", code.unwrap_or(0)),
    }
}

/// Puts marks behind a text, each on a line of its own.
pub(super) fn with_marks(mut text: String, marks: &[String]) -> String {
    if !text.is_empty() && !text.ends_with('\n') && !marks.is_empty() {
        text.push('\n');
    }
    text + &marks.join("\n")
}

/// A time as a person would say it.
pub(super) fn time_text(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
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

//! What a test could not run on this machine, said where somebody sees it.
//!
//! A runner hides what a passing test prints, so a line goes into the file that `OPENVAALA_NOT_RUN` names, too; `tests/run`
//! shows and counts these lines at its end.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The variable that names the file.
pub const VARIABLE: &str = "OPENVAALA_NOT_RUN";

/// The variable that turns long campaigns on.
const LONG: &str = "OPENVAALA_LONG";

/// Says that something was not run, and why.
///
/// # Panics
/// If the file that [`VARIABLE`] names cannot be written: a notice must not be lost in silence.
pub fn not_run(what: &str, why: &str) {
    let line = format!("not run: {what}: {why}\n");
    eprint!("{line}");
    let Some(path) = env::var_os(VARIABLE) else {
        return;
    };
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{}: {error}", Path::new(&path).display()));
}

/// Whether the long campaigns are on.
#[must_use]
pub fn is_long() -> bool {
    env::var_os(LONG).is_some()
}

/// Whether a program is there and ends well with those arguments.
#[must_use]
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether this process may do what only root may.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

//! Figures taken in a process of their own, so that no earlier measure has warmed or filled it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;
use crate::generate::Plan;

/// The command that takes figures in a new process; not meant to be typed.
pub(crate) const COMMAND: &str = "probe";

/// What a probe found, by name.
pub(crate) type Figures = BTreeMap<String, f64>;

/// Starts this program anew for one probe of a generated directory, and gives its figures.
pub(crate) fn probe(name: &str, data: &Path, plan: &Plan) -> Result<Figures, Failure> {
    let plan = serde_json::to_string(plan)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([COMMAND, name]).arg(data).arg(plan);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the probe {name} failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

//! What this process holds.

use std::fs;

use crate::Failure;

/// How far memory grows from now on.
#[derive(Debug)]
pub(crate) struct Growth {
    before: f64,
}

impl Growth {
    /// Forgets the highest figure so far and begins at what is resident now.
    pub(crate) fn begin() -> Result<Self, Failure> {
        fs::write("/proc/self/clear_refs", "5")?;
        Ok(Self {
            before: of_status("VmRSS:")?,
        })
    }

    /// The highest figure since the beginning less what was resident then, in MiB.
    pub(crate) fn highest(&self) -> Result<f64, Failure> {
        Ok((of_status("VmHWM:")? - self.before).max(0.0))
    }
}

fn of_status(field: &str) -> Result<f64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib: f64 = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .ok_or_else(|| format!("/proc/self/status has no {field}"))?
        .parse()?;
    Ok(kib / 1024.0)
}

//! How much memory the process uses.

use std::fs;

/// Resident memory in bytes; `None` where the system does not tell it in `/proc`.
pub(crate) fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::resident;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_at_least_a_few_pages() {
        assert!(resident().unwrap() > 64 << 10);
    }
}

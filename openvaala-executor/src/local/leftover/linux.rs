//! Marked processes on Linux, by `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open, pidfd_send_signal,
};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::{Leftover, Wanted};

/// How long a process that was asked to end may take.
const GRACE: Duration = Duration::from_millis(500);

/// How often those that were asked are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process may start another one between the look and the kill, so there are several rounds.
const ROUNDS: usize = 5;

/// How much of a command line is told, in bytes.
const SHOWN_COMMAND: usize = 200;

/// Finds all processes of this user with a wanted value of the variable, but for this one and its
/// ancestors.
pub(super) fn scan(variable: &'static str, wanted: &Wanted) -> Vec<Leftover> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |name: std::ffi::OsString| name.to_str()?.parse::<u32>().ok();
    let mut pids: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| pid(entry.file_name()))
        .collect();
    pids.sort_unstable();
    let own = ancestors();
    pids.retain(|pid| !own.contains(pid));
    pids.into_iter()
        .filter_map(|pid| look(pid, variable, wanted))
        .collect()
}

/// Ends all of them; gives back those that were found at first.
pub(in crate::local) async fn end_marked(variable: &'static str, wanted: Wanted) -> Vec<Leftover> {
    let find = async || {
        let wanted = wanted.clone();
        let found = spawn_blocking(move || scan(variable, &wanted)).await;
        found.unwrap_or_default()
    };
    let first = find().await;
    let deadline = Instant::now() + GRACE;
    first
        .iter()
        .for_each(|leftover| signal(leftover, Signal::TERM));
    while first.iter().any(is_alive) && Instant::now() < deadline {
        sleep(LOOK_EVERY).await;
    }
    if first.is_empty() {
        return first;
    }
    for _ in 0..ROUNDS {
        let left = find().await;
        if left.is_empty() {
            break;
        }
        left.iter()
            .for_each(|leftover| signal(leftover, Signal::KILL));
        sleep(LOOK_EVERY).await;
    }
    first
}

/// This process and those that it comes from.
fn ancestors() -> BTreeSet<u32> {
    let mut own = BTreeSet::new();
    let mut next = Some(std::process::id());
    while let Some(pid) = next.filter(|pid| *pid != 0 && own.insert(*pid)) {
        next = stat(pid).map(|stat| stat.parent);
    }
    own
}

fn look(pid: u32, variable: &'static str, wanted: &Wanted) -> Option<Leftover> {
    let folder = Path::new("/proc").join(pid.to_string());
    if fs::metadata(&folder).ok()?.uid() != geteuid().as_raw() {
        return None;
    }
    // Before the environment: if the number changes hands between the two, the start time is that
    // of the older process, and the newer one is never signalled.
    let started = stat(pid).filter(|stat| stat.runs)?.started;
    let environment = fs::read(folder.join("environ")).ok()?;
    let value = environment.split(|&byte| byte == 0).find_map(|entry| {
        entry
            .strip_prefix(variable.as_bytes())?
            .strip_prefix(b"=")
            .filter(|value| wanted.matches(value))
    })?;
    let mut command = fs::read(folder.join("cmdline")).unwrap_or_default();
    command.truncate(SHOWN_COMMAND);
    let shown = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Leftover {
        pid,
        marker: String::from_utf8_lossy(value).into_owned(),
        command: shown.trim_end().to_owned(),
        started,
    })
}

fn is_alive(leftover: &Leftover) -> bool {
    stat(leftover.pid).is_some_and(|stat| stat.runs && stat.started == leftover.started)
}

/// The descriptor holds on to the process, so that what is compared is what gets the signal.
fn signal(leftover: &Leftover, signal: Signal) {
    let Some(pid) = i32::try_from(leftover.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let sent = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) if is_alive(leftover) => pidfd_send_signal(process, signal),
        Ok(_) => return,
        // An old kernel: the moment between look and signal has to be risked.
        Err(Errno::NOSYS) if is_alive(leftover) => kill_process(pid, signal),
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        let pid = leftover.pid;
        tracing::debug!(pid, %error, "could not signal a process that was left over");
    }
}

/// What `/proc/<pid>/stat` tells of a process.
#[derive(Debug, Eq, PartialEq)]
struct Stat {
    runs: bool,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// `pid (name) state parent …`, the start time being the 22nd field; the name may hold anything.
fn parse(stat: &str) -> Option<Stat> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        runs: !matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_parent_and_start() {
        let rest = "S 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 31337 9 9";
        let expected = Stat {
            runs: true,
            parent: 7,
            started: 31_337,
        };
        assert_eq!(parse(&format!("43 (a) Z 1 (b) {rest}")), Some(expected));
        assert_eq!(parse("no stat at all"), None);
    }

    #[test]
    fn this_process_and_its_parent_are_spared() {
        let own = ancestors();
        assert!(
            own.contains(&std::process::id()) && own.contains(&std::os::unix::process::parent_id())
        );
    }

    #[test]
    fn a_number_that_changed_hands_gets_no_signal() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let started = stat(child.id()).unwrap().started;
        let other = Leftover {
            pid: child.id(),
            marker: String::new(),
            command: String::new(),
            started: started - 1,
        };
        signal(&other, Signal::KILL);
        assert_eq!(child.try_wait().unwrap(), None);
        signal(&Leftover { started, ..other }, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}

//! A process group of this machine.

#[cfg(target_os = "linux")]
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, kill_process_group, test_kill_process_group};
use tokio::time::{Instant, sleep};

use crate::process::Signal;

/// How long a group that was asked to end may take.
const GRACE: Duration = Duration::from_millis(500);

/// How often a group that was asked to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process group that one of our children leads.
///
/// The system keeps its number reserved while its leader is not waited for or a member is left.
/// Afterwards the number may name a stranger's group, so once it was seen empty it is never
/// signalled again.
#[derive(Debug)]
pub(super) struct Group {
    id: Pid,
    gone: AtomicBool,
}

impl Group {
    pub(super) const fn new(id: Pid) -> Self {
        Self {
            id,
            gone: AtomicBool::new(false),
        }
    }

    pub(super) const fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal to all members; none left is no error.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.gone.load(Ordering::Relaxed) {
            return Ok(());
        }
        let signal = match signal {
            Signal::Kill => rustix::process::Signal::KILL,
            Signal::Terminate => rustix::process::Signal::TERM,
        };
        match kill_process_group(self.id, signal) {
            Err(Errno::SRCH) => {
                self.gone.store(true, Ordering::Relaxed);
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Tells whether a member is left that still runs.
    pub(super) fn is_alive(&self) -> bool {
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        if test_kill_process_group(self.id) == Err(Errno::SRCH) {
            self.gone.store(true, Ordering::Relaxed);
            return false;
        }
        has_running_member(self.id)
    }

    /// Asks it to end, and kills it when it has not by the end of its grace.
    pub(super) async fn end(&self) -> io::Result<()> {
        self.signal(Signal::Terminate)?;
        let deadline = Instant::now() + GRACE;
        while self.is_alive() && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
        }
        self.signal(Signal::Kill)
    }
}

/// Looks for members that are no zombies. Orphans stay zombies until the first process of the
/// system waits for them, which in a container may be never.
#[cfg(target_os = "linux")]
fn has_running_member(group: Pid) -> bool {
    // Without a readable /proc, believe what the kernel said about the group.
    let Ok(entries) = fs::read_dir("/proc") else {
        return true;
    };
    let group = group.to_string();
    entries.flatten().any(|entry| {
        let is_process = entry
            .file_name()
            .as_encoded_bytes()
            .first()
            .is_some_and(u8::is_ascii_digit);
        is_process
            && fs::read(entry.path().join("stat"))
                .is_ok_and(|stat| runs_in(&stat, group.as_bytes()))
    })
}

#[cfg(not(target_os = "linux"))]
const fn has_running_member(_group: Pid) -> bool {
    true
}

/// Reads one `/proc/<pid>/stat`: `pid (name) state parent group …`; the name may hold anything.
#[cfg(target_os = "linux")]
fn runs_in(stat: &[u8], group: &[u8]) -> bool {
    let Some(end) = stat.iter().rposition(|&byte| byte == b')') else {
        return false;
    };
    let mut fields = stat[end + 1..].split(|&byte| byte == b' ').skip(1);
    let (state, _parent, its_group) = (fields.next(), fields.next(), fields.next());
    its_group == Some(group) && !matches!(state, Some(b"Z" | b"X") | None)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_state_and_group() {
        let runs = |stat: &str| runs_in(stat.as_bytes(), b"42");
        assert!(runs("43 (sleep) S 1 42 42 0"));
        assert!(runs("43 (a) Z 1 7) b) R 1 42 42 0"));
        assert!(!runs("43 (sleep) Z 1 42 42 0"));
        assert!(!runs("42 (sleep) S 1 421 42 0"));
        assert!(!runs("no stat at all"));
    }
}

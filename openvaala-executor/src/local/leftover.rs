//! Processes that outlived who started them, found by a variable in their environment.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(target_os = "linux")]
pub(super) use self::linux::end_marked;
#[cfg(target_os = "linux")]
use self::linux::scan;

/// The variable that holds [`LocalOptions::marker`](super::LocalOptions::marker).
pub(super) const RUNTIME_VARIABLE: &str = "OPENVAALA_RUNTIME";

/// The variable that tells the processes of one command of a workspace from all others: a [`Mark`].
pub(super) const WORKSPACE_VARIABLE: &str = "OPENVAALA_WORKSPACE";

/// A process that was started by a runtime which is no more.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Leftover {
    /// Its number.
    pub pid: u32,
    /// The value of its `OPENVAALA_RUNTIME`.
    pub marker: String,
    /// Its command line, arguments separated by spaces; empty if it has none.
    pub command: String,
    /// When it started, in clock ticks since the machine did: with the number it names one process
    /// for ever.
    started: u64,
}

/// Which values of a variable are looked for.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// One value.
    Is(String),
    /// Any value with this beginning, but for one.
    StartsWith { prefix: String, except: String },
}

impl Wanted {
    #[cfg(target_os = "linux")]
    fn matches(&self, value: &[u8]) -> bool {
        match self {
            Self::Is(wanted) => value == wanted.as_bytes(),
            Self::StartsWith { prefix, except } => {
                value.starts_with(prefix.as_bytes()) && value != except.as_bytes()
            }
        }
    }
}

/// Finds the processes of this user whose marker starts with `prefix` and is not `except`, which is
/// that of the caller, by process number.
///
/// They are found also when they left their group. Neither this process nor an ancestor of it is
/// ever among them. Reads `/proc`, so it takes some milliseconds; elsewhere than on Linux there is
/// no way to know, and nothing is found.
#[must_use]
pub fn leftovers(prefix: &str, except: &str) -> Vec<Leftover> {
    let (prefix, except) = (prefix.to_owned(), except.to_owned());
    scan(RUNTIME_VARIABLE, &Wanted::StartsWith { prefix, except })
}

/// Ends what [`leftovers`] finds: asks first and kills what is left after 500 ms.
///
/// Gives back those that were found. A number that the system gave to another process meanwhile
/// is left alone. Dropping the future stops the search; what was asked to end may still end.
pub async fn end_leftovers(prefix: &str, except: &str) -> Vec<Leftover> {
    let (prefix, except) = (prefix.to_owned(), except.to_owned());
    end_marked(RUNTIME_VARIABLE, Wanted::StartsWith { prefix, except }).await
}

/// What the processes of one workspace have in common, of this process or another.
#[derive(Debug)]
pub(super) struct Mark {
    workspace: String,
    last: AtomicU64,
}

impl Mark {
    /// One that no other workspace has.
    pub(super) fn unique() -> Self {
        // The seeds of hash maps are the randomness that needs no further crate.
        let random = || RandomState::new().build_hasher().finish();
        Self {
            workspace: format!("{:016x}{:016x}", random(), random()),
            last: AtomicU64::new(0),
        }
    }

    /// The mark of the next command.
    pub(super) fn next(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        format!("{}.{number}", self.workspace)
    }

    /// Those of all commands.
    pub(super) fn of_all(&self) -> Wanted {
        Wanted::StartsWith {
            prefix: format!("{}.", self.workspace),
            except: String::new(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn scan(_variable: &'static str, _wanted: &Wanted) -> Vec<Leftover> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(super) async fn end_marked(_variable: &'static str, _wanted: Wanted) -> Vec<Leftover> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux;

//! Waiting for a condition, with a deadline and a word on what was seen instead.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything in these tests may take before it counts as hung.
///
/// Generous, since other tests may keep all cores busy.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks at a condition until it holds and returns what it gave.
///
/// # Panics
/// After [`DEADLINE`], with what the condition said last.
#[track_caller]
pub fn until<T, E: Display>(what: &str, look: impl FnMut() -> Result<T, E>) -> T {
    within(DEADLINE, what, look)
}

/// As [`until`], with a deadline of its own.
///
/// # Panics
/// After that time, with what the condition said last.
#[track_caller]
pub fn within<T, E: Display>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let begin = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(seen) if begin.elapsed() > limit => {
                panic!("waited {limit:?} for {what}; seen last: {seen}")
            }
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Waits for a future until the deadline.
///
/// # Panics
/// After [`DEADLINE`].
pub async fn finished<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} for {what}"),
    }
}

/// As [`until`], for a look that has to ask somebody first.
///
/// # Panics
/// After [`DEADLINE`], with what the condition said last, if it ever answered.
pub async fn eventually<T, E: Display>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = tokio::time::Instant::now() + DEADLINE;
    let mut seen = "no answer".to_owned();
    loop {
        match tokio::time::timeout_at(end, look()).await {
            Ok(Ok(value)) => return value,
            Ok(Err(error)) => seen = error.to_string(),
            Err(_) => panic!("waited {DEADLINE:?} for {what}; seen last: {seen}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

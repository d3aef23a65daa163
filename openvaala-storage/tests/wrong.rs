//! The suites are proven: storages that are wrong in one way each break the rules that say so.

mod logs;
mod records;
mod volatile;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openvaala_storage::conformance::Rule;
use tokio::time::timeout;

/// A storage that is wrong may never come to an end; right ones take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs every rule on a storage of its own and returns the names of those that are broken.
async fn broken<S: ?Sized + Send + Sync + 'static>(
    rules: Vec<Rule<S>>,
    make: impl Fn() -> Arc<S>,
) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for (name, rule) in rules {
        let storage = make();
        let run = tokio::spawn(async move { timeout(PATIENCE, rule(&storage)).await });
        if !matches!(run.await, Ok(Ok(()))) {
            names.insert(name);
        }
    }
    names
}

//! Checking a data directory that somebody else may own.

use std::path::Path;
use std::sync::Arc;

use openvaala_protocol::rpc::params::check::CheckResult;
use openvaala_storage::LogStorage;
use openvaala_storage::file::{FileOptions, FileStorage};

use super::{CheckOptions, found};
use crate::dao::check::Check;
use crate::dao::files::Files;
use crate::error::RuntimeError;

/// Checks a data directory beside its owner, if it has one: without a lock, and without writing anything.
///
/// The index is not looked at, and [`CheckOptions::repair`] does not count. Blocks shortly when it opens the directory.
///
/// # Errors
/// As [`Runtime::check`](crate::runtime::Runtime::check).
pub async fn check_data_dir(
    path: impl AsRef<Path>,
    options: CheckOptions,
) -> Result<CheckResult, RuntimeError> {
    let storage = Arc::new(FileStorage::open_read_only(FileOptions::new(
        path.as_ref(),
    ))?);
    let log: Arc<dyn LogStorage> = Arc::<FileStorage>::clone(&storage);
    let files = Files::new(storage);
    let check = Check {
        log: &log,
        files: &files,
        index: None,
        only: options.conversation,
        repair: false,
        progress: options.progress,
    };
    found(check.run().await?, options.conversation)
}

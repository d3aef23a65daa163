//! The machine that this process runs on (feature `local`).

mod files;
mod group;
mod leftover;
mod process;
mod streams;
mod warden;

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use async_trait::async_trait;
use openvaala_protocol::id::ExecutorId;
use rustix::fs::{Access, access};
use tokio::task::spawn_blocking;

use self::files::LocalFiles;
pub use self::leftover::{Leftover, end_leftovers, leftovers};
use self::process::LocalProcesses;
use crate::error::ExecutorError;
use crate::executor::Executor;
use crate::file::Files;
use crate::process::Processes;
use crate::tool::Tool;
use crate::workspace::{EnvironmentInfo, Workspace};

/// Where programs are looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How to make a [`LocalExecutor`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalOptions {
    /// The name of the executor; default `local`.
    pub id: ExecutorId,
    /// The whole environment of every process, as name and value; a later one wins. Nothing is
    /// taken from this process; default empty.
    pub environment: Vec<(String, String)>,
    /// The shell, as a path or as a name in the `PATH` of the environment; default `bash`. Where
    /// there is none of this name, `sh` takes its place.
    pub shell: String,
    /// The value of the variable `OPENVAALA_RUNTIME` of every process, by which
    /// [`end_leftovers`] finds them after this process has died; default `None`, no variable.
    pub marker: Option<String>,
}

impl LocalOptions {
    /// The defaults with an environment, such as `std::env::vars()` where all of it may be seen.
    #[must_use]
    pub fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            environment: environment.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Changes the name of the executor.
    #[must_use]
    pub fn with_id(mut self, id: ExecutorId) -> Self {
        self.id = id;
        self
    }

    /// Changes the shell.
    #[must_use]
    pub fn with_shell(mut self, shell: impl Into<String>) -> Self {
        self.shell = shell.into();
        self
    }

    /// Marks every process, so that [`end_leftovers`] finds it.
    #[must_use]
    pub fn with_marker(mut self, marker: impl Into<String>) -> Self {
        self.marker = Some(marker.into());
        self
    }
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            id: ExecutorId::local(),
            environment: Vec::new(),
            shell: "bash".to_owned(),
            marker: None,
        }
    }
}

/// The machine that this process runs on.
///
/// Its futures need a tokio runtime with its I/O and time drivers enabled.
#[derive(Clone, Debug)]
pub struct LocalExecutor {
    options: Arc<LocalOptions>,
}

impl LocalExecutor {
    /// An executor for this machine; nothing is touched before a workspace is opened.
    #[must_use]
    pub fn new(options: LocalOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }
}

#[async_trait]
impl Executor for LocalExecutor {
    fn id(&self) -> &ExecutorId {
        &self.options.id
    }

    fn kind(&self) -> &'static str {
        "local"
    }

    async fn open(&self, root: &str) -> Result<Arc<dyn Workspace>, ExecutorError> {
        let (options, root) = (Arc::clone(&self.options), root.to_owned());
        let workspace = blocking("open", root.clone(), move || {
            LocalWorkspace::open(options, &root)
        });
        Ok(Arc::new(workspace.await?))
    }
}

#[derive(Debug)]
struct LocalWorkspace {
    options: Arc<LocalOptions>,
    root: String,
    environment: EnvironmentInfo,
    files: Arc<LocalFiles>,
    processes: Arc<LocalProcesses>,
}

impl LocalWorkspace {
    fn open(options: Arc<LocalOptions>, root: &str) -> Result<Self, ExecutorError> {
        if !Path::new(root).is_absolute() {
            return Err(ExecutorError::InvalidPath {
                path: root.to_owned(),
                reason: "a working directory must be an absolute path".to_owned(),
            });
        }
        let root = crate::path::resolve("/", root)?;
        require_directory(&root)?;
        let shell = find_shell(&options)?;
        let environment = EnvironmentInfo::new(
            std::env::consts::OS.to_owned(),
            std::env::consts::ARCH.to_owned(),
            shell.clone(),
        );
        let files = Arc::new(LocalFiles::new(root.clone()));
        let processes = Arc::new(LocalProcesses::new(
            Arc::clone(&options),
            root.clone(),
            shell,
        ));
        Ok(Self {
            options,
            root,
            environment,
            files,
            processes,
        })
    }
}

#[async_trait]
impl Workspace for LocalWorkspace {
    fn executor(&self) -> &ExecutorId {
        &self.options.id
    }

    fn root(&self) -> &str {
        &self.root
    }

    fn environment(&self) -> &EnvironmentInfo {
        &self.environment
    }

    fn files(&self) -> &dyn Files {
        &*self.files
    }

    fn processes(&self) -> &dyn Processes {
        &*self.processes
    }

    #[cfg(feature = "tools")]
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let (files, processes) = (Arc::clone(&self.files), Arc::clone(&self.processes));
        crate::tools::environment_tools(files, processes)
    }

    #[cfg(not(feature = "tools"))]
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    async fn close(&self) {
        self.processes.close().await;
    }
}

/// Runs file work on a thread that may wait for a disk.
async fn blocking<T: Send + 'static>(
    operation: &'static str,
    path: String,
    work: impl FnOnce() -> Result<T, ExecutorError> + Send + 'static,
) -> Result<T, ExecutorError> {
    spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ExecutorError::from_io(operation, &path, error.into())))
}

fn require_directory(path: &str) -> Result<(), ExecutorError> {
    let metadata =
        fs::metadata(path).map_err(|error| ExecutorError::from_io("open", path, error))?;
    if metadata.is_dir() {
        return Ok(());
    }
    Err(ExecutorError::NotADirectory {
        path: path.to_owned(),
    })
}

/// The shell as an absolute path: with a bare name, std would give up posix_spawn for a slow fork.
fn find_shell(options: &LocalOptions) -> Result<String, ExecutorError> {
    let is_path = |(name, _): &&(String, String)| name == "PATH";
    let path = options.environment.iter().rev().find(is_path);
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value);
    let candidates = [options.shell.as_str(), "sh"].into_iter().flat_map(|name| {
        let folders = if name.contains('/') { "/" } else { path };
        folders
            .split(':')
            .map(|folder| Path::new(folder).join(name))
            .collect::<Vec<_>>()
    });
    for candidate in candidates {
        let usable = candidate.is_absolute() && access(&candidate, Access::EXEC_OK).is_ok();
        if usable && candidate.is_file() {
            return Ok(candidate.to_string_lossy().into_owned());
        }
    }
    Err(ExecutorError::Environment {
        executor: options.id.clone(),
        operation: format!("find the shell {} or sh in {path}", options.shell),
        source: Box::new(io::Error::from(io::ErrorKind::NotFound)),
    })
}

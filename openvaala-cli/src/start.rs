//! Finds the server of a data directory, or starts one.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use openvaala_protocol::client::{Client, ClientError, ConnectOptions, Notices};
use openvaala_protocol::rpc::params::server::Peer;
use openvaala_server::discovery::{self, Found};

use crate::dirs::Dirs;
use crate::error::{CliError, TAKEN};

/// How long a server that was started here has until it answers.
const READY: Duration = Duration::from_secs(15);
/// How long after a lost race the winner is looked for before another server is started.
const AGAIN: Duration = Duration::from_millis(200);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A longer log is put aside before another server is started.
const MAX_LOG: u64 = 4 << 20;
/// How many lines of the log are shown if a server does not start.
const TAIL: usize = 20;

/// Who this program says it is.
pub(crate) fn peer() -> Peer {
    Peer {
        name: "openvaala-cli".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// What a running server says of itself; `None` if there is no trace of one.
pub(crate) fn found(dirs: &Dirs) -> Result<Option<Found>, CliError> {
    discovery::find(&dirs.state, &dirs.data)
        .map_err(|error| CliError::user("the running server cannot be asked").because(error))
}

pub(crate) fn options(found: &Found) -> ConnectOptions {
    ConnectOptions::new(found.address, found.token.clone(), peer())
}

/// Connects to the running server; `None` if none runs.
pub(crate) async fn connect_running(dirs: &Dirs) -> Result<Option<(Client, Notices)>, CliError> {
    if let Some(remote) = &dirs.remote {
        return remote.connect().await.map(Some);
    }
    let Some(found) = found(dirs)? else {
        return Ok(None);
    };
    match Client::connect(options(&found)).await {
        Ok(connected) => Ok(Some(connected)),
        // A file left behind by a server that is gone, or whose port somebody else has by now.
        Err(ClientError::Refused { .. } | ClientError::WrongServer { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the server, which is started if none runs; of several started at once, one stays.
pub(crate) async fn connect(dirs: &Dirs) -> Result<(Client, Notices), CliError> {
    if let Some(connected) = connect_running(dirs).await? {
        return Ok(connected);
    }
    let log = Log::of(dirs);
    let mut child = spawn(dirs, &log)?;
    let deadline = Instant::now() + READY;
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(connected) = connect_running(dirs).await? {
            return Ok(connected);
        }
        if Instant::now() > deadline {
            return Err(log.not_started("it does not answer"));
        }
        let Some(status) = child.try_wait().ok().flatten() else {
            continue;
        };
        if status.code() != Some(i32::from(TAKEN)) {
            return Err(log.not_started("it ended at once"));
        }
        // Somebody else has the data directory: a server that is about to answer, or one that is about to end.
        tokio::time::sleep(AGAIN).await;
        if let Some(connected) = connect_running(dirs).await? {
            return Ok(connected);
        }
        child = spawn(dirs, &log)?;
    }
}

fn spawn(dirs: &Dirs, log: &Log) -> Result<std::process::Child, CliError> {
    let failed =
        |error: std::io::Error| CliError::user("the server cannot be started").because(error);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dirs.state)
        .map_err(failed)?;
    let file = log.open().map_err(failed)?;
    let errors = file.try_clone().map_err(failed)?;
    Command::new(std::env::current_exe().map_err(failed)?)
        .arg("serve")
        .arg("--client-started")
        .arg("--config-dir")
        .arg(&dirs.config)
        .arg("--data-dir")
        .arg(&dirs.data)
        .arg("--state-dir")
        .arg(&dirs.state)
        // A server that is started by a command of an agent is none of that agent's commands.
        .env_remove("OPENVAALA_RUNTIME")
        .env_remove("OPENVAALA_WORKSPACE")
        .env_remove("OPENVAALA_SESSION")
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(failed)
}

/// Where servers that were started here write what they have to say.
struct Log {
    path: PathBuf,
    /// How long it was before: what follows is of the servers of this start.
    begin: usize,
}

impl Log {
    fn of(dirs: &Dirs) -> Self {
        let path = dirs.state.join("server.log");
        let length = fs::metadata(&path).map_or(0, |file| file.len());
        if length <= MAX_LOG {
            return Self {
                path,
                begin: usize::try_from(length).unwrap_or_default(),
            };
        }
        // If it cannot be put aside it goes on growing, which is no reason not to start.
        let _ = fs::rename(&path, path.with_extension("log.old"));
        Self { path, begin: 0 }
    }

    /// Several servers may write to it at once, so each only adds.
    fn open(&self) -> std::io::Result<fs::File> {
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)
    }

    fn not_started(&self, how: &str) -> CliError {
        let mut message = format!("the server was started, but {how}");
        let tail = self.tail();
        if !tail.is_empty() {
            message = format!("{message}; it said:\n  {}", tail.join("\n  "));
        }
        CliError::server(message).hint(format!("its log is {}", self.path.display()))
    }

    /// The last lines that were said since the start.
    fn tail(&self) -> Vec<String> {
        let said = fs::read(&self.path).unwrap_or_default();
        let said = String::from_utf8_lossy(said.get(self.begin..).unwrap_or(&said)).into_owned();
        let lines: Vec<String> = said.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(TAIL)..].to_vec()
    }
}

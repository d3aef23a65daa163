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
    let log = dirs.state.join("server.log");
    let mut child = spawn(dirs, &log)?;
    let deadline = Instant::now() + READY;
    loop {
        tokio::time::sleep(LOOK).await;
        if let Some(connected) = connect_running(dirs).await? {
            return Ok(connected);
        }
        if Instant::now() > deadline {
            return Err(not_started(&log, "it does not answer"));
        }
        let Some(status) = child.try_wait().ok().flatten() else {
            continue;
        };
        if status.code() != Some(i32::from(TAKEN)) {
            return Err(not_started(&log, "it ended at once"));
        }
        // Somebody else has the data directory: a server that is about to answer, or one that is about to end.
        tokio::time::sleep(AGAIN).await;
        if let Some(connected) = connect_running(dirs).await? {
            return Ok(connected);
        }
        child = spawn(dirs, &log)?;
    }
}

fn spawn(dirs: &Dirs, log: &PathBuf) -> Result<std::process::Child, CliError> {
    let failed =
        |error: std::io::Error| CliError::user("the server cannot be started").because(error);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dirs.state)
        .map_err(failed)?;
    let mut options = fs::OpenOptions::new();
    let file = options
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
        .map_err(failed)?;
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
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(failed)
}

fn not_started(log: &PathBuf, how: &str) -> CliError {
    let said = fs::read_to_string(log).unwrap_or_default();
    let tail: Vec<&str> = said.lines().rev().take(20).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    let mut message = format!("the server was started, but {how}");
    if !tail.is_empty() {
        message = format!("{message}; it said:\n  {}", tail.join("\n  "));
    }
    CliError::user(message).hint(format!("its log is {}", log.display()))
}

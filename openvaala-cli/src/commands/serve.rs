//! `openvaala serve`, `serve stop` and `serve status`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use openvaala_protocol::client::{ClientError, shut_down};
use openvaala_protocol::rpc::method::{ServerLogs, ServerStatus};
use openvaala_protocol::rpc::params::server::{LogsParams, StatusParams, StatusResult};
use openvaala_server::config::{RemoteConfig, TlsFiles};
use openvaala_server::{Logs, Server, ServerError, ServerOptions};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use super::environment;
use crate::args::ServeArgs;
use crate::dirs::Dirs;
use crate::error::CliError;
use crate::output::{note, out};
use crate::start::{connect_running, found, options};

/// How long a stopping server has until its process is gone.
const GONE: Duration = Duration::from_secs(15);
/// How long the turns of a server that is replaced may go on.
const REPLACE_WAIT: Duration = Duration::from_secs(30);
/// How long a line is waited for at once, in milliseconds.
const FOLLOW_WAIT: u32 = 30_000;
/// How often another server is found in the place of one that was stopped.
const REPLACEMENTS: usize = 3;

pub(super) async fn run(dirs: Dirs, args: &ServeArgs) -> Result<ExitCode, CliError> {
    let filter =
        EnvFilter::try_from_env("OPENVAALA_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = Logs::keep();
    let kept = logs.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr.and(move || kept.writer()))
        .with_ansi(false)
        // It would say on a full disk that it cannot say anything, and panic since it cannot say that.
        .log_internal_errors(false)
        .init();
    let mut options =
        ServerOptions::new(&dirs.config, &dirs.data, &dirs.state).with_environment(environment());
    options.is_default_data_dir = dirs.data == dirs.default_data;
    options.working_dir = std::env::current_dir()?;
    (options.listen, options.remote) = listen(args)?;
    options.logs = Some(logs);
    options.started_by_client = args.client_started;
    options.handle_signals = true;
    let server = if args.replace {
        start_instead(&dirs, options).await?
    } else {
        Server::start(options).await?
    };
    let remote = server.remote_address();
    let remote = remote.map_or_else(String::new, |address| {
        format!(", for other machines at {address}")
    });
    note(&format!(
        "openvaala {} serves at {}{remote}",
        env!("CARGO_PKG_VERSION"),
        server.address()
    ));
    server.run_until_stopped().await;
    Ok(ExitCode::SUCCESS)
}

/// Where to listen for clients of this machine, and where for others.
fn listen(args: &ServeArgs) -> Result<(Option<SocketAddr>, Option<RemoteConfig>), CliError> {
    let Some(address) = args.listen else {
        return Ok((None, None));
    };
    let tls = args.tls_certificate.clone().zip(args.tls_key.clone());
    if address.ip().is_loopback() {
        if tls.is_some() || args.insecure_listen {
            let message =
                format!("{address} is for clients of this machine: they need no certificate");
            return Err(CliError::usage(message)
                .hint("leave it out, or listen at an address that other machines reach"));
        }
        return Ok((Some(address), None));
    }
    let remote = match tls {
        Some((certificate, key)) => {
            RemoteConfig::with_tls(address, TlsFiles::new(certificate, key))
        }
        None if args.insecure_listen => RemoteConfig::insecure(address),
        None => return Err(ServerError::NotEncrypted { address }.into()),
    };
    Ok((None, Some(remote)))
}

/// Stops the running server and starts in its place.
async fn start_instead(dirs: &Dirs, options: ServerOptions) -> Result<Server, CliError> {
    for _ in 0..REPLACEMENTS {
        stop_running(dirs, REPLACE_WAIT).await?;
        match Server::start(options.clone()).await {
            // A client that came back sooner has started one.
            Err(ServerError::DataDirInUse { .. }) => {}
            started => return Ok(started?),
        }
    }
    Ok(Server::start(options).await?)
}

pub(super) async fn stop(dirs: &Dirs, timeout: u32) -> Result<ExitCode, CliError> {
    let wait = Duration::from_secs(timeout.into());
    match stop_running(dirs, wait).await? {
        Some(pid) => note(&format!("stopped process {pid}")),
        None => note("no server runs"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops the running server and waits until it is gone; gives its process, `None` if none runs.
async fn stop_running(dirs: &Dirs, wait: Duration) -> Result<Option<u32>, CliError> {
    let Some(found) = found(dirs)? else {
        return Ok(None);
    };
    match shut_down(options(&found), wait).await {
        Ok(_) => {}
        Err(ClientError::Refused { .. } | ClientError::WrongServer { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + wait + GONE;
    while is_running(found.pid) {
        if Instant::now() > deadline {
            let message = format!("the server (process {}) is still there", found.pid);
            return Err(
                CliError::user(message).hint(format!("end it with `kill -9 {}`", found.pid))
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Some(found.pid))
}

/// Whether a process still runs; one that nobody has waited for yet does not, though its number is still taken.
fn is_running(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name in parentheses may have anything in it; the state follows the last of them.
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

pub(super) async fn logs(dirs: &Dirs, lines: u32, follow: bool) -> Result<ExitCode, CliError> {
    let Some((client, _notices)) = connect_running(dirs).await? else {
        note("no server runs");
        return Ok(ExitCode::from(crate::error::FAILED));
    };
    let mut params = LogsParams {
        after: None,
        limit: Some(lines),
        wait_ms: None,
    };
    loop {
        let said = match client.call::<ServerLogs>(params.clone()).await {
            Ok(said) => said,
            // It was followed to its end.
            Err(ClientError::Disconnected { .. }) if params.after.is_some() => break,
            Err(error) => return Err(error.into()),
        };
        for line in said.lines {
            out(&format!("{}\n", line.text))?;
        }
        if !follow {
            client.close().await;
            break;
        }
        params = LogsParams {
            after: Some(said.next),
            limit: None,
            wait_ms: Some(FOLLOW_WAIT),
        };
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn status(dirs: &Dirs, json: bool) -> Result<ExitCode, CliError> {
    let Some((client, _notices)) = connect_running(dirs).await? else {
        note("no server runs");
        return Ok(ExitCode::from(crate::error::FAILED));
    };
    let status = client.call::<ServerStatus>(StatusParams::default()).await?;
    if json {
        out(&format!("{}\n", serde_json::to_string(&status)?))?;
    } else {
        out(&table(&status))?;
    }
    client.close().await;
    Ok(ExitCode::SUCCESS)
}

fn table(status: &StatusResult) -> String {
    let memory = status.memory_bytes.map_or_else(
        || "unknown".to_owned(),
        |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    );
    let mut table = format!(
        "version        {}\nprocess        {}\naddress        {}\ndata directory {}\n\
         running since  {}\nconversations  {} open, {} turns and {} commands running\nclients        {}\n\
         memory         {memory}\nmodel          {}/{}\n",
        status.version,
        status.pid,
        status.address,
        status.data_dir,
        status.started_at,
        status.open_conversations,
        status.running_turns,
        status.running_commands,
        status.clients,
        status.default_model.provider,
        status.default_model.model,
    );
    if let Some(remote) = &status.remote {
        let how = if remote.encrypted {
            "TLS"
        } else {
            "not encrypted"
        };
        table.push_str(&format!("other machines {} ({how})\n", remote.address));
    }
    for part in &status.degraded {
        table.push_str(&format!("degraded       {part}\n"));
    }
    table
}

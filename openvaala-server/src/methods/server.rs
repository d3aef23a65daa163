//! `server/…`.

use std::time::Duration;

use openvaala_core::{CheckOptions, Progress};
use openvaala_protocol::rpc::params::check::{CheckParams, CheckResult};
use openvaala_protocol::rpc::params::server::{
    LogLine, LogsParams, LogsResult, ProgressParams, ReindexResult, ReloadResult, ShutdownParams,
    ShutdownResult, StatusResult,
};
use openvaala_protocol::rpc::{ErrorCode, Method, Notice, RpcError, method};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::error::rpc_error;
use crate::VERSION;
use crate::connection::Outbox;
use crate::context::{Command, ConfigChange, Context, Reload};
use crate::logs::{Line, LogQuery};
use crate::process::memory::resident;

/// The shortest time between two notifications about progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// How many lines of the log are given if nobody says otherwise, and at most.
const LOG_LINES: u32 = 100;
const MAX_LOG_LINES: u32 = 1_000;
/// The longest time that a line is waited for.
const LONGEST_LOG_WAIT: Duration = Duration::from_secs(30);

/// The longest time that an end waits for running turns.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

pub(crate) async fn status(context: &Context) -> Result<StatusResult, RpcError> {
    let status = context
        .runtime
        .status()
        .await
        .map_err(|error| rpc_error(&error))?;
    let (reply, clients) = oneshot::channel();
    context
        .commands
        .send(Command::Clients(reply))
        .await
        .map_err(|_| stopped())?;
    let clients = clients.await.map_err(|_| stopped())?;
    let (facts, assembled) = (&context.facts, context.assembled());
    let mut degraded = status.degraded;
    degraded.extend(facts.degraded.iter().cloned());
    degraded.extend(assembled.config.warnings.iter().cloned());
    Ok(StatusResult {
        version: VERSION.to_owned(),
        pid: facts.pid,
        address: facts.address.to_string(),
        remote: facts.remote.clone(),
        data_dir: facts.data_dir.display().to_string(),
        started_at: facts.started_at,
        open_conversations: count(status.open_conversations),
        running_turns: count(status.running_turns),
        running_commands: count(status.running_commands),
        clients: count(clients),
        memory_bytes: resident(),
        default_model: assembled.default_model.clone(),
        degraded,
    })
}

/// Begins to stop, or to wait for it; the answer still goes out.
pub(crate) async fn shutdown(context: &Context, params: ShutdownParams) -> ShutdownResult {
    let reason = "a client asked for it".to_owned();
    let wait = Duration::from_secs(params.wait_seconds.into()).min(LONGEST_WAIT);
    // If the loop is gone it stops already.
    let _ = context.commands.send(Command::Stop { reason, wait }).await;
    ShutdownResult {
        pid: context.facts.pid,
    }
}

pub(crate) async fn reload(context: &Context) -> Result<ReloadResult, RpcError> {
    change(context, None).await
}

/// Changes the configuration, if anything is to change, and puts it in force.
pub(super) async fn change(
    context: &Context,
    change: Option<ConfigChange>,
) -> Result<ReloadResult, RpcError> {
    let (reply, result) = oneshot::channel();
    let sent = context.reloads.send(Reload { change, reply }).await;
    sent.map_err(|_| stopped())?;
    result.await.map_err(|_| stopped())?
}

/// Gives some of the log; waits for a line if that is asked for.
pub(crate) async fn logs(context: &Context, params: LogsParams) -> Result<LogsResult, RpcError> {
    let Some(logs) = &context.logs else {
        let message = "this server keeps no log: look where its program writes it";
        return Err(RpcError::new(ErrorCode::Runtime, message));
    };
    let limit = params.limit.unwrap_or(LOG_LINES).clamp(1, MAX_LOG_LINES);
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0).into()).min(LONGEST_LOG_WAIT);
    let query = LogQuery {
        after: params.after,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        wait: !wait.is_zero(),
    };
    let lines = if query.wait {
        timeout(wait, logs.read(query)).await.unwrap_or_default()
    } else {
        logs.read(query).await
    };
    let next = lines.last().map(|line| line.number);
    Ok(LogsResult {
        next: next.or(params.after).unwrap_or(0),
        lines: lines
            .into_iter()
            .map(|Line { number, text }| LogLine { number, text })
            .collect(),
    })
}

pub(crate) async fn reindex(context: &Context, outbox: &Outbox) -> Result<ReindexResult, RpcError> {
    let (progress, told) = mpsc::channel(64);
    let (report, ()) = tokio::join!(
        context.runtime.reindex(progress),
        tell(told, outbox, method::ServerReindex::NAME)
    );
    let report = report.map_err(|error| rpc_error(&error))?;
    Ok(ReindexResult {
        conversations: report.conversations,
        damaged: report.damaged,
    })
}

pub(crate) async fn check(
    context: &Context,
    outbox: &Outbox,
    params: CheckParams,
) -> Result<CheckResult, RpcError> {
    let (progress, told) = mpsc::channel(64);
    let options = CheckOptions::default()
        .conversation(params.conversation_id)
        .repair(params.repair)
        .progress(progress);
    let tell = tell(told, outbox, method::ServerCheck::NAME);
    let (result, ()) = tokio::join!(context.runtime.check(options), tell);
    result.map_err(|error| rpc_error(&error))
}

/// Tells the client how far it is: now and then, and always when it is done.
async fn tell(mut told: mpsc::Receiver<Progress>, outbox: &Outbox, method: &str) {
    let mut last: Option<Instant> = None;
    while let Some(progress) = told.recv().await {
        let is_due = last.is_none_or(|last| last.elapsed() >= PROGRESS_PAUSE);
        if !is_due && progress.done < progress.total {
            continue;
        }
        last = Some(Instant::now());
        let notice = Notice::ServerProgress(ProgressParams {
            method: method.to_owned(),
            done: progress.done,
            total: progress.total,
        });
        // The index is made anew whether the client stays or not.
        let _ = outbox.notify(&notice).await;
    }
}

fn stopped() -> RpcError {
    RpcError::new(ErrorCode::Runtime, "the server is stopping")
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

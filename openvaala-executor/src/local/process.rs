//! The processes of this machine.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin};
use tokio::select;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::group::Group;
use super::leftover::{Mark, RUNTIME_VARIABLE, WORKSPACE_VARIABLE, end_marked};
use super::streams::{Reader, Streams};
use super::warden::{Call, watch_over};
use super::{LocalOptions, blocking, require_directory};
use crate::error::ExecutorError;
use crate::path::resolve;
use crate::process::{
    Command, ExitStatus, Input, Output, Process, ProcessEvent, ProcessInput, Processes, Signal,
};

/// As much of a command line as an error shows, in characters.
const SHOWN_COMMAND: usize = 200;

#[derive(Debug)]
pub(super) struct LocalProcesses {
    options: Arc<LocalOptions>,
    root: String,
    shell: String,
    mark: Mark,
    closed: CancellationToken,
    /// One task a process, which ends its group when the workspace is closed.
    wardens: TaskTracker,
}

impl LocalProcesses {
    pub(super) fn new(options: Arc<LocalOptions>, root: String, shell: String) -> Self {
        let (closed, wardens) = (CancellationToken::new(), TaskTracker::new());
        Self {
            options,
            root,
            shell,
            mark: Mark::unique(),
            closed,
            wardens,
        }
    }

    /// Ends all groups and lets no other begin.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.wardens.close();
        self.wardens.wait().await;
        // What left its group with setsid or a double fork still has the mark.
        end_marked(WORKSPACE_VARIABLE, self.mark.of_all()).await;
    }

    /// Sets up a command that runs in the resolved directory `cwd`.
    fn prepare(&self, command: &Command, cwd: &str, mark: &str) -> tokio::process::Command {
        let (wanted, mut command) = (command, tokio::process::Command::new(&self.shell));
        command.arg("-c").arg(&wanted.line).current_dir(cwd);
        command.env_clear();
        for (name, value) in self.options.environment.iter().chain(&wanted.env) {
            command.env(name, value);
        }
        // The marks come last, so that no variable of the same name hides a process.
        command.env(WORKSPACE_VARIABLE, mark);
        if let Some(marker) = &self.options.marker {
            command.env(RUNTIME_VARIABLE, marker);
        }
        let input = match wanted.input {
            Input::Closed => Stdio::null(),
            Input::Piped => Stdio::piped(),
        };
        // Never `pre_exec`: std would fork instead of posix_spawn, which copies the page tables
        // of a large process.
        command.process_group(0).stdin(input).kill_on_drop(true);
        command
    }
}

#[async_trait]
impl Processes for LocalProcesses {
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, ExecutorError> {
        let cwd = resolve(&self.root, command.cwd.as_deref().unwrap_or("."))?;
        if self.closed.is_cancelled() {
            return Err(ExecutorError::Closed {
                executor: self.options.id.clone(),
                root: self.root.clone(),
            });
        }
        let shown: String = command.line.chars().take(SHOWN_COMMAND).collect();
        let mark = self.mark.next();
        let process = self.prepare(&command, &cwd, &mark);
        let started = start(process, command.merge_output);
        let (mut child, group, streams) = match started {
            Ok(started) => started,
            Err(source) => {
                // The system does not tell a directory that is not there from a shell that is not there.
                blocking("open", cwd.clone(), move || require_directory(&cwd)).await?;
                return Err(ExecutorError::Process {
                    operation: "start",
                    command: shown,
                    source,
                });
            }
        };
        let (group, stopped, released) = (
            Arc::new(group),
            CancellationToken::new(),
            CancellationToken::new(),
        );
        self.wardens.spawn(watch_over(Call {
            group: Arc::clone(&group),
            mark,
            closed: self.closed.clone(),
            stopped: stopped.clone(),
            released: released.clone(),
        }));
        let input = child.stdin.take().map(|pipe| LocalInput {
            pipe,
            command: shown.clone(),
        });
        Ok(Box::new(LocalProcess {
            child,
            input,
            group,
            streams,
            status: None,
            exit_told: false,
            command: shown,
            stopped,
            _released: released.drop_guard(),
        }))
    }
}

fn start(mut command: tokio::process::Command, merge: bool) -> io::Result<(Child, Group, Streams)> {
    let merged = if merge {
        Some(merge_output(&mut command)?)
    } else {
        None
    };
    if merged.is_none() {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let mut child = command.spawn()?;
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let group = Group::new(id.ok_or_else(|| io::Error::other("it has no process id"))?);
    let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Reader);
    let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Reader);
    Ok((child, group, Streams::new(merged.or(stdout), stderr)))
}

/// Gives both outputs one pipe, so that their order is kept.
fn merge_output(command: &mut tokio::process::Command) -> io::Result<Reader> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    Ok(Box::new(pipe::Receiver::from_owned_fd(OwnedFd::from(
        reader,
    ))?))
}

#[derive(Debug)]
struct LocalProcess {
    child: Child,
    input: Option<LocalInput>,
    group: Arc<Group>,
    streams: Streams,
    status: Option<ExitStatus>,
    exit_told: bool,
    command: String,
    /// Fires when it is ended from outside.
    stopped: CancellationToken,
    _released: DropGuard,
}

#[derive(Debug)]
struct LocalInput {
    pipe: ChildStdin,
    command: String,
}

#[async_trait]
impl ProcessInput for LocalInput {
    async fn write(&mut self, bytes: Bytes) -> Result<(), ExecutorError> {
        let written = self.pipe.write_all(&bytes).await;
        written.map_err(|source| ExecutorError::Process {
            operation: "write to",
            command: self.command.clone(),
            source,
        })
    }
}

impl LocalProcess {
    fn failed(&self, operation: &'static str, source: io::Error) -> ExecutorError {
        ExecutorError::Process {
            operation,
            command: self.command.clone(),
            source,
        }
    }

    fn exited(
        &mut self,
        status: io::Result<std::process::ExitStatus>,
    ) -> Result<ExitStatus, ExecutorError> {
        let status = status.map_err(|source| self.failed("wait for", source))?;
        let status = ExitStatus {
            code: status.code(),
            signal: status.signal(),
        };
        self.status = Some(status);
        // From now on the number of the group may be free: see at once whether it is.
        self.group.is_alive();
        Ok(status)
    }
}

#[async_trait]
impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        Some(self.group.id())
    }

    fn take_input(&mut self) -> Option<Box<dyn ProcessInput>> {
        Some(Box::new(self.input.take()?))
    }

    async fn next_event(&mut self) -> Result<ProcessEvent, ExecutorError> {
        loop {
            if let (Some(status), false) = (self.status, self.exit_told) {
                self.exit_told = true;
                return Ok(ProcessEvent::Exited(status));
            }
            select! {
                output = self.streams.next(), if !self.streams.is_closed() => {
                    if let Some(output) = output {
                        return Ok(ProcessEvent::Output(output));
                    }
                }
                status = self.child.wait(), if self.status.is_none() => {
                    self.exited(status)?;
                }
                else => return Ok(ProcessEvent::Closed),
            }
        }
    }

    async fn next_output(&mut self) -> Option<Output> {
        self.streams.next().await
    }

    async fn wait(&mut self) -> Result<ExitStatus, ExecutorError> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            select! {
                // Read on, lest the command waits for room in its pipe.
                _ = self.streams.next(), if !self.streams.is_closed() => {}
                status = self.child.wait() => { self.exited(status)?; }
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), ExecutorError> {
        self.stopped.cancel();
        self.group
            .signal(signal)
            .map_err(|source| self.failed("signal", source))
    }

    fn is_alive(&self) -> bool {
        self.group.is_alive()
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.stopped.cancel();
        }
        if let Err(error) = self.group.signal(Signal::Kill) {
            tracing::warn!(group = self.group.id(), %error, "could not kill a process group");
        }
    }
}

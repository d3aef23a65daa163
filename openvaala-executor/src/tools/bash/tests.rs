use std::future::pending;

use pretty_assertions::assert_eq;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;
use crate::error::ExecutorError;
use crate::process::{Output, OutputStream, Process, ProcessEvent, ProcessInput};
use crate::tool::{Cancel, NoOutput};

/// A command that nothing ends: it tells which signals it gets, and when.
#[derive(Debug)]
struct Stubborn {
    started: Instant,
    signals: mpsc::UnboundedSender<(Signal, Duration)>,
    written: bool,
}

#[async_trait]
impl Process for Stubborn {
    fn id(&self) -> Option<u32> {
        None
    }

    fn take_input(&mut self) -> Option<Box<dyn ProcessInput>> {
        None
    }

    async fn next_event(&mut self) -> Result<ProcessEvent, ExecutorError> {
        if std::mem::replace(&mut self.written, true) {
            return pending().await;
        }
        Ok(ProcessEvent::Output(Output::new(
            OutputStream::Stdout,
            "partial".into(),
        )))
    }

    async fn next_output(&mut self) -> Option<Output> {
        pending().await
    }

    async fn wait(&mut self) -> Result<ExitStatus, ExecutorError> {
        pending().await
    }

    fn signal(&self, signal: Signal) -> Result<(), ExecutorError> {
        self.signals.send((signal, self.started.elapsed())).unwrap();
        Ok(())
    }

    fn is_alive(&self) -> bool {
        true
    }
}

/// Starts the same stubborn command each time, or never gets one started.
#[derive(Debug)]
struct Shell(Option<mpsc::UnboundedSender<(Signal, Duration)>>);

#[async_trait]
impl Processes for Shell {
    async fn spawn(&self, _: Command) -> Result<Box<dyn Process>, ExecutorError> {
        let Some(signals) = self.0.clone() else {
            return pending().await;
        };
        Ok(Box::new(Stubborn {
            started: Instant::now(),
            signals,
            written: false,
        }))
    }
}

const MS: Duration = Duration::from_millis(1);

async fn call(shell: Shell, timeout_ms: u64, cancel: Cancel) -> Result<ToolOutput, ToolError> {
    let context = ToolContext::new("call".to_owned(), cancel, Arc::new(NoOutput));
    let args = Arguments {
        command: String::new(),
        timeout_ms: Some(timeout_ms),
        workdir: None,
        yield_ms: None,
        input: false,
    };
    Bash::new(Arc::new(shell)).run(context, args).await
}

/// Fires after 50 ms.
fn soon() -> Cancel {
    let (handle, cancel) = Cancel::new();
    tokio::spawn(async move {
        sleep(50 * MS).await;
        handle.cancel();
    });
    cancel
}

#[tokio::test(start_paused = true)]
async fn s_99_a_cancelled_command_is_asked_at_once_and_killed_after_500_ms() {
    let (sender, mut signals) = mpsc::unbounded_channel();
    let started = Instant::now();
    let output = call(Shell(Some(sender)), 1_000, soon()).await.unwrap();
    assert_eq!(
        started.elapsed(),
        650 * MS,
        "50 ms before the cancel, 600 ms after it"
    );
    assert_eq!(signals.recv().await, Some((Signal::Terminate, 50 * MS)));
    assert_eq!(signals.recv().await, Some((Signal::Kill, 550 * MS)));
    assert_eq!(signals.recv().await, None);
    let text = "partial\n[interrupted: the command and its children were ended]";
    assert_eq!(
        output,
        ToolOutput::text(text).with_status(ToolStatus::Interrupted)
    );
}

#[tokio::test(start_paused = true)]
async fn s_99_a_command_out_of_time_is_asked_at_once_and_killed_after_500_ms() {
    let (sender, mut signals) = mpsc::unbounded_channel();
    let output = call(Shell(Some(sender)), 2_000, Cancel::never())
        .await
        .unwrap();
    assert_eq!(signals.recv().await, Some((Signal::Terminate, 2_000 * MS)));
    assert_eq!(signals.recv().await, Some((Signal::Kill, 2_500 * MS)));
    let text = "partial\n[timed out after 2 s: the command and its children were ended]";
    assert_eq!(output, ToolOutput::failed(text));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_cancelled_at_once() {
    let started = Instant::now();
    let result = call(Shell(None), 1_000, soon()).await;
    assert!(matches!(result, Err(ToolError::Cancelled)), "{result:?}");
    assert_eq!(started.elapsed(), 50 * MS);
}

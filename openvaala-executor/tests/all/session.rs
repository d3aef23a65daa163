//! A session with commands of its own, and the processes that carry its mark.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openvaala_executor::Workspace;
use openvaala_executor::commands::{Commands, CommandsOptions, commands};
use openvaala_executor::output::MemoryOutput;
use openvaala_executor::tool::{Cancel, OutputSink, Tool, ToolContext, ToolError, ToolOutput};
use openvaala_executor::tools::command_tools;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::support::Place;

pub(crate) struct Session {
    pub(crate) place: Place,
    pub(crate) commands: Commands,
    pub(crate) task: JoinHandle<()>,
    pub(crate) mark: String,
}

/// The variable that marks what a test starts.
const VARIABLE: &str = "TEST_SESSION";

impl Session {
    pub(crate) async fn open() -> Self {
        Self::with(CommandsOptions::default()).await
    }

    pub(crate) async fn with(options: CommandsOptions) -> Self {
        let place = Place::open().await;
        let mark = place.path().to_str().unwrap().to_owned();
        let (commands, task) = commands(options.with_env(VARIABLE, &mark));
        Self {
            place,
            commands,
            task: tokio::spawn(task),
            mark,
        }
    }

    pub(crate) fn workspace(&self) -> &dyn Workspace {
        &*self.place.workspace
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let mut tools = self.place.workspace.tools();
        tools.extend(command_tools());
        let mut tools = tools.into_iter();
        tools.find(|tool| tool.spec().name == name).unwrap()
    }

    pub(crate) async fn call(&self, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let sink = Arc::new(MemoryOutput::new(1 << 20));
        self.call_with(name, args, Cancel::never(), sink).await
    }

    pub(crate) async fn call_with(
        &self,
        name: &str,
        args: Value,
        cancel: Cancel,
        sink: Arc<dyn OutputSink>,
    ) -> Result<ToolOutput, ToolError> {
        let context = ToolContext::new("call".to_owned(), cancel, sink);
        let context = context.with_commands(self.commands.clone());
        self.tool(name).call(context, &args.to_string()).await
    }

    /// The processes that carry the mark, by number.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        marked(VARIABLE, &self.mark)
    }

    /// Waits until nothing with the mark runs; a killed process is not gone at once.
    pub(crate) async fn assert_empty(&self) {
        let deadline = Instant::now() + Duration::from_secs(2);
        while !self.processes().is_empty() {
            assert!(
                Instant::now() < deadline,
                "{:?} still run",
                self.processes()
            );
            tokio::task::yield_now().await;
        }
    }
}

/// The processes of this user with a value of a variable, zombies not counted.
pub(crate) fn marked(variable: &str, value: &str) -> BTreeSet<u32> {
    let own = fs::metadata("/proc/self").unwrap().uid();
    let wanted = format!("{variable}={value}");
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        if !entry.metadata().is_ok_and(|metadata| metadata.uid() == own) {
            continue;
        }
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
        {
            found.insert(pid);
        }
    }
    found
}

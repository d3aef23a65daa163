//! What the tests share.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use async_trait::async_trait;
use bytes::Bytes;
use openvaala_executor::local::{LocalExecutor, LocalOptions};
use openvaala_executor::tool::{
    Cancel, CancelHandle, Kept, OutputSink, Tool, ToolContext, ToolError, ToolOutput,
};
use openvaala_executor::{Executor, Workspace};
use openvaala_protocol::content::joined_text;
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) fn executor() -> Arc<dyn Executor> {
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    Arc::new(LocalExecutor::new(LocalOptions::new(vec![path])))
}

/// A temporary directory with its path as text.
pub(crate) fn temp_dir() -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap().to_owned();
    (folder, root)
}

/// A workspace in a temporary directory.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) workspace: Arc<dyn Workspace>,
}

impl Place {
    pub(crate) async fn open() -> Self {
        let (folder, root) = temp_dir();
        let workspace = executor().open(&root).await.unwrap();
        Self { folder, workspace }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.workspace
            .tools()
            .into_iter()
            .find(|tool| tool.spec().name == name)
            .unwrap()
    }

    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: serde_json::Value,
    ) -> Result<ToolOutput, ToolError> {
        let context = ToolContext::unattended("call");
        self.tool(name).call(context, &arguments.to_string()).await
    }
}

/// A context whose output can be watched, with the handle that cancels it.
pub(crate) fn watched() -> (ToolContext, CancelHandle, mpsc::UnboundedReceiver<Bytes>) {
    let (handle, cancel) = Cancel::new();
    let (sender, receiver) = mpsc::unbounded_channel();
    let context = ToolContext::new("call".to_owned(), cancel, Arc::new(Channel(sender)));
    (context, handle, receiver)
}

pub(crate) fn text(output: &ToolOutput) -> String {
    joined_text(&output.content)
}

/// The members of a process group that run, zombies not counted.
pub(crate) fn members(group: i32) -> Vec<i32> {
    let mut members = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some((start, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = rest.split(' ').collect();
        if fields[2] == group.to_string() && fields[0] != "Z" {
            members.push(start.split(' ').next().unwrap().parse().unwrap());
        }
    }
    members
}

/// Waits until nobody of a group runs; a killed process is not gone at once.
#[track_caller]
pub(crate) fn assert_gone(group: i32) {
    let deadline = Instant::now() + Duration::from_secs(2);
    while !members(group).is_empty() {
        assert!(
            Instant::now() < deadline,
            "{:?} of group {group} still run",
            members(group)
        );
        thread::yield_now();
    }
}

#[derive(Debug)]
struct Channel(mpsc::UnboundedSender<Bytes>);

#[async_trait]
impl OutputSink for Channel {
    async fn write(&self, bytes: Bytes) {
        let _ = self.0.send(bytes);
    }

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

//! The tools that a workspace offers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::{Target, ok, within};
use crate::tool::{Cancel, Kept, Offer, OutputSink, ToolContext, ToolOutput, ToolStatus, Toolbox};
use crate::workspace::Workspace;

/// The names that every environment offers.
const NAMES: &[&str] = if cfg!(feature = "tools") {
    &["apply_patch", "bash", "read_file"]
} else {
    &[]
};

/// Every built-in tool is there, with schemas that providers take.
pub async fn the_environment_tools_are_offered(target: Target) {
    let toolbox = toolbox(&*target.open().await);
    let names: Vec<String> = toolbox.specs().into_iter().map(|spec| spec.name).collect();
    for name in NAMES {
        assert!(
            names.iter().any(|offered| offered == name),
            "{name} is missing in {names:?}"
        );
    }
}

/// What one tool writes another one reads.
pub async fn the_tools_work_together(target: Target) {
    if NAMES.is_empty() {
        return;
    }
    let toolbox = toolbox(&*target.open().await);
    let context = ToolContext::unattended("call");
    let command = r#"{"command":"mkdir folder; echo text >folder/file"}"#;
    let output = call(&toolbox, "bash", command, context.clone()).await;
    assert_eq!(
        output,
        ToolOutput::text("[no output]").with_exit_code(Some(0))
    );
    let output = call(&toolbox, "read_file", r#"{"path":"folder/file"}"#, context).await;
    assert_eq!(output, ToolOutput::text("text\n"));
}

/// After the cancel fires, a command is over within a second, on a busy machine too, and says so.
pub async fn a_cancelled_command_ends_in_time(target: Target) {
    if NAMES.is_empty() {
        return;
    }
    let toolbox = toolbox(&*target.open().await);
    let (handle, cancel) = Cancel::new();
    let (sender, mut output) = mpsc::unbounded_channel();
    let context = ToolContext::new("call".to_owned(), cancel, Arc::new(Channel(sender)));
    let command = r#"{"command":"trap '' TERM; echo ready; sleep 1000 & sleep 1000"}"#;
    let cancelling = async {
        assert_eq!(within(output.recv()).await, Some(Bytes::from("ready\n")));
        handle.cancel();
        Instant::now()
    };
    let (ended, cancelled_at) =
        futures::join!(call(&toolbox, "bash", command, context), cancelling);
    let took = cancelled_at.elapsed();
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    assert_eq!(ended.status, ToolStatus::Interrupted);
}

fn toolbox(workspace: &dyn Workspace) -> Toolbox {
    let offer = |tool| Offer::on(workspace.executor().clone(), tool);
    ok(Toolbox::new(
        workspace.tools().into_iter().map(offer).collect(),
    ))
}

async fn call(toolbox: &Toolbox, name: &str, arguments: &str, context: ToolContext) -> ToolOutput {
    let routed = ok(toolbox.route(name, arguments));
    ok(within(routed.tool.call(context, &routed.arguments)).await)
}

#[derive(Debug)]
struct Channel(mpsc::UnboundedSender<Bytes>);

#[async_trait]
impl OutputSink for Channel {
    async fn write(&self, bytes: Bytes) {
        // Nobody listens any more once the first output has been seen.
        let _ = self.0.send(bytes);
    }

    async fn read(&self, _offset: u64, _limit: usize) -> Option<Kept> {
        None
    }
}

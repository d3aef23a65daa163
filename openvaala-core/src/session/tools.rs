//! Runs one tool call and makes of it what the model and the log get.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use openvaala_executor::output::{DEFAULT_CAP, clip_text};
use openvaala_executor::tool::{Cancel, Routed, ToolContext, ToolError, ToolOutput, ToolStatus};
use openvaala_protocol::content::{Content, ImageData};
use openvaala_protocol::id::BlobId;
use openvaala_protocol::item::ToolResultStatus;
use openvaala_storage::Error;

use super::run::SessionDeps;
use super::spool::{Settle, SpoolSink, spool};
use crate::agent::{RunningCall, ToolOutcome};
use crate::dao::blob::HEAD;

/// Images above this size go to the blob stream.
const INLINE_IMAGE: usize = 64 << 10;

/// Runs a call to its end, however that comes; never fails and never panics.
pub(crate) async fn run_tool(
    deps: Arc<SessionDeps>,
    call: RunningCall,
    routed: Routed,
    cancel: Cancel,
) -> ToolOutcome {
    if cancel.is_cancelled() {
        let why = "interrupted before it started";
        return ToolOutcome::said(ToolResultStatus::Interrupted, why);
    }
    let (sink, spool) = spool(
        deps.around.feed.clone(),
        deps.around.session,
        call.result,
        deps.blob_writer(),
    );
    // It lives as long as what the call starts, which may be longer than the call.
    deps.background.spawn(spool.run());
    let context = ToolContext::new(call.call_id, cancel.clone(), sink.clone())
        .with_commands(deps.commands.clone());
    let run = AssertUnwindSafe(routed.tool.call(context, &routed.arguments)).catch_unwind();
    let output = match run.await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return failed(&call.tool, error, &cancel, &sink).await,
        Err(_) => {
            let why = format!(
                "{} failed: a fault in the tool itself (it panicked)",
                call.tool
            );
            return ToolOutcome::said(ToolResultStatus::Failed, why);
        }
    };
    match outcome(&deps, output, &sink, &cancel).await {
        Ok(outcome) => outcome,
        Err(error) => {
            let why = format!(
                "{} ran, but its output could not be kept: {error}",
                call.tool
            );
            ToolOutcome::said(ToolResultStatus::Failed, why)
        }
    }
}

async fn failed(
    tool: &str,
    error: ToolError,
    cancel: &Cancel,
    sink: &Arc<SpoolSink>,
) -> ToolOutcome {
    let interrupted = cancel.is_cancelled();
    let status = if interrupted {
        ToolResultStatus::Interrupted
    } else {
        ToolResultStatus::Failed
    };
    let mut outcome = ToolOutcome::said(status, error.to_string());
    match sink.settle(Settle::KeepLong).await {
        Ok(settled) => outcome.output = settled.blob,
        Err(error) => tracing::warn!(%error, tool, "the output of a failed tool could not be kept"),
    }
    outcome
}

/// Cuts what the model sees to the cap, and keeps the whole where the model does not see all of it.
async fn outcome(
    deps: &Arc<SessionDeps>,
    output: ToolOutput,
    sink: &Arc<SpoolSink>,
    cancel: &Cancel,
) -> Result<ToolOutcome, Error> {
    let mut cut = output.cut;
    let mut content = Vec::with_capacity(output.content.len());
    let mut whole = None;
    let mut room = DEFAULT_CAP;
    for piece in output.content {
        match piece {
            // A tool that has cut its text itself has also said so in it.
            Content::Text { text } if output.cut || text.len() <= room => {
                room = room.saturating_sub(text.len());
                content.push(Content::Text { text });
            }
            Content::Text { text } => {
                cut = true;
                content.push(Content::Text {
                    text: clip_text(&text, room.max(1_000)).text,
                });
                whole.get_or_insert_with(String::new).push_str(&text);
                room = 0;
            }
            image => content.push(store_image(deps, image).await?),
        }
    }
    let settled = sink.settle(how(sink, cut, whole)).await?;
    if settled.lost > 0 && !sink.goes_on() {
        let (lost, bytes, head) = (settled.lost >> 20, settled.bytes >> 20, HEAD >> 20);
        content.push(Content::text(format!(
            "[of {bytes} MiB of output the first {head} MiB and the end are kept; {lost} MiB between them are not]"
        )));
    }
    let status = match output.status {
        _ if cancel.is_cancelled() => ToolResultStatus::Interrupted,
        ToolStatus::Ok => ToolResultStatus::Ok,
        _ => ToolResultStatus::Failed,
    };
    Ok(ToolOutcome {
        status,
        content,
        exit_code: output.exit_code,
        output: settled.blob,
        messages: output.messages,
        goes_on: output.goes_on,
    })
}

/// What is to become of the raw output; `whole` is text that was cut here and that the sink does not have.
fn how(sink: &Arc<SpoolSink>, cut: bool, whole: Option<String>) -> Settle {
    if sink.goes_on() {
        Settle::Open
    } else if cut {
        Settle::Keep(whole.filter(|_| !sink.was_written()))
    } else {
        Settle::KeepLong
    }
}

/// Moves a large image into the blob stream; everything else stays as it is.
pub(crate) async fn store_image(deps: &SessionDeps, content: Content) -> Result<Content, Error> {
    let Content::Image {
        media_type,
        data: ImageData::Base64(base64),
    } = content
    else {
        return Ok(content);
    };
    if base64.len() <= INLINE_IMAGE {
        return Ok(Content::Image {
            media_type,
            data: ImageData::Base64(base64),
        });
    }
    let mut writer = deps.blob_writer();
    writer.push(&crate::dao::blob::decode(&base64)).await?;
    let data = match writer.finish().await? {
        Some(blob) => {
            deps.remember_image(blob.id, base64);
            ImageData::Blob(blob)
        }
        None => ImageData::Base64(base64),
    };
    Ok(Content::Image { media_type, data })
}

impl SessionDeps {
    /// A writer for a new blob of this session.
    pub(crate) fn blob_writer(&self) -> crate::dao::blob::BlobWriter {
        crate::dao::blob::BlobWriter::new(
            self.around.writer.conversation,
            self.around.session,
            Arc::clone(&self.around.writer.log),
            Arc::clone(&self.around.writer.clock),
            BlobId::from_uuid(self.around.ids.next()),
        )
    }
}

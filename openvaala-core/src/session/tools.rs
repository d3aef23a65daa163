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
use super::spool::{MAX_OUTPUT, Spooled, spool};
use crate::agent::{RunningCall, ToolOutcome};

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
        deps.feed.clone(),
        deps.session,
        call.result,
        deps.blob_writer(),
    );
    let context = ToolContext::new(call.call_id, cancel.clone(), sink.clone());
    let tool = async {
        let run = AssertUnwindSafe(routed.tool.call(context, &routed.arguments)).catch_unwind();
        let result = run.await;
        sink.end();
        result
    };
    let (result, spooled) = tokio::join!(tool, spool.run());
    let output = match result {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return failed(&call.tool, error, &cancel, spooled).await,
        Err(_) => {
            let why = format!(
                "{} failed: a fault in the tool itself (it panicked)",
                call.tool
            );
            return ToolOutcome::said(ToolResultStatus::Failed, why);
        }
    };
    match outcome(&deps, output, spooled, sink.written(), &cancel).await {
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

async fn failed(tool: &str, error: ToolError, cancel: &Cancel, spooled: Spooled) -> ToolOutcome {
    let interrupted = cancel.is_cancelled();
    let status = if interrupted {
        ToolResultStatus::Interrupted
    } else {
        ToolResultStatus::Failed
    };
    let mut outcome = ToolOutcome::said(status, error.to_string());
    match spooled.finish().await {
        Ok(blob) => outcome.output = blob,
        Err(error) => tracing::warn!(%error, tool, "the output of a failed tool could not be kept"),
    }
    outcome
}

/// Cuts what the model sees to the cap, and keeps the whole where the model does not see all of it.
async fn outcome(
    deps: &Arc<SessionDeps>,
    output: ToolOutput,
    mut spooled: Spooled,
    written: u64,
    cancel: &Cancel,
) -> Result<ToolOutcome, Error> {
    let mut cut = output.cut;
    let mut content = Vec::with_capacity(output.content.len());
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
                if written == 0 {
                    spooled.add(&text);
                }
                content.push(Content::Text {
                    text: clip_text(&text, room.max(1_000)).text,
                });
                room = 0;
            }
            image => content.push(store_image(deps, image).await?),
        }
    }
    let blob = if cut {
        spooled.store().await?
    } else {
        spooled.finish().await?
    };
    if written > MAX_OUTPUT {
        let kept = MAX_OUTPUT >> 20;
        content.push(Content::text(format!(
            "[only the first {kept} MiB of the output are kept]"
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
        output: blob,
    })
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
            self.writer.conversation,
            self.session,
            Arc::clone(&self.writer.log),
            Arc::clone(&self.writer.clock),
            BlobId::from_uuid(self.ids.next()),
        )
    }
}

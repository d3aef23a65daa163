//! The tool that reads the result of an earlier call again: summaries name results by their places in the log.

use std::sync::Arc;

use async_trait::async_trait;
use openvaala_executor::tool::{Tool, ToolContext, ToolError, ToolOutput, TypedTool, typed};
use openvaala_protocol::content::joined_text;
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::item::ToolResult;
use openvaala_storage::LogStorage;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::SessionDeps;
use crate::dao::{blob, tail};

/// How many bytes one call gives.
const PAGE: usize = 16 << 10;

/// The tool that reads the results of a session's calls again.
pub(super) fn read_result(deps: &SessionDeps) -> Arc<dyn Tool> {
    typed(ReadResult {
        log: Arc::clone(&deps.around.writer.log),
        conversation: deps.around.writer.conversation,
        session: deps.around.session,
    })
}

#[derive(Debug)]
struct ReadResult {
    log: Arc<dyn LogStorage>,
    conversation: ConversationId,
    session: SessionId,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// 57 for #57.
    result: u64,
    /// In bytes.
    #[serde(default)]
    offset: u64,
}

#[async_trait]
impl TypedTool for ReadResult {
    type Arguments = Arguments;

    const NAME: &'static str = "read_result";
    const READ_ONLY: bool = true;

    fn description(&self) -> String {
        "Reads the result of a call again that a summary names by its number, 16 KiB at a time."
            .to_owned()
    }

    async fn run(&self, context: ToolContext, args: Arguments) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            biased;
            page = self.page(args) => page.map(ToolOutput::text),
            () = context.cancel.cancelled() => Err(ToolError::Cancelled),
        }
    }
}

impl ReadResult {
    async fn page(&self, args: Arguments) -> Result<String, ToolError> {
        let Arguments { result, offset } = args;
        let failed = |error: openvaala_storage::Error| {
            ToolError::failed(format!("result #{result} cannot be read: {error}"))
        };
        let item = tail::item_at(&self.log, self.conversation, self.session, result).await;
        let body = item
            .map_err(failed)?
            .and_then(|item| item.body::<ToolResult>()?.ok());
        let Some(body) = body else {
            let why = format!("there is no result #{result}: the numbers are those in the summary");
            return Err(ToolError::failed(why));
        };
        let (at, bytes, whole) = match body.output {
            // The whole of what the model had seen a part of.
            Some(output) => {
                let (log, conversation) = (&self.log, self.conversation);
                let read = blob::read(log, conversation, self.session, output, offset, PAGE).await;
                let (at, bytes) = read.map_err(failed)?;
                (at, bytes, output.bytes)
            }
            None => {
                let text = joined_text(&body.content).into_bytes();
                let from = usize::try_from(offset).map_or(text.len(), |from| from.min(text.len()));
                let to = text.len().min(from + PAGE);
                (from as u64, text[from..to].to_vec(), text.len() as u64)
            }
        };
        let end = at + bytes.len() as u64;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if end < whole {
            let more = format!("\n[bytes {at} to {end} of {whole}: go on with offset {end}]");
            text.push_str(&more);
        } else if text.is_empty() {
            text = format!("[nothing behind byte {offset}: it has {whole}]");
        }
        Ok(text)
    }
}

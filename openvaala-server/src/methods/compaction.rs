//! `session/compact` and `session/uncompact`.

use openvaala_core::CompactOptions;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::compaction::{
    CompactParams, CompactResult, UncompactParams, UncompactResult,
};

use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

pub(crate) async fn compact(
    context: &Context,
    params: CompactParams,
) -> Result<CompactResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let options = CompactOptions::default()
        .of_session(params.session_id)
        .with_guidance(params.guidance)
        .with_preview(params.preview);
    let compacted = conversation.compact(options).await;
    let compacted = compacted.map_err(|error| rpc_error(&error))?;
    Ok(CompactResult {
        item_id: compacted.item_id,
        summary: compacted.summary,
    })
}

pub(crate) async fn uncompact(
    context: &Context,
    params: UncompactParams,
) -> Result<UncompactResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let undone = conversation.uncompact(params.session_id).await;
    let summary = undone.map_err(|error| rpc_error(&error))?;
    Ok(UncompactResult { summary })
}

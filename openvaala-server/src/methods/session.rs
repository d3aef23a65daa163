//! `session/…`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_core::model::OutputSchema;
use openvaala_core::{BlobQuery, ConversationHandle, Input, ItemsQuery};
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::params::session::{
    BlobParams, BlobResult, InterruptParams, InterruptResult, ItemsParams, ItemsResult, SendParams,
    SendResult, TreeParams, TreeResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};

use super::conversation::page_limit;
use super::error::rpc_error;
use crate::context::Context;

/// How many items a page has if nobody says otherwise.
const PAGE: u32 = 100;

pub(crate) async fn send(context: &Context, params: SendParams) -> Result<SendResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let schema = params.output_schema.map(|schema| {
        OutputSchema::new(schema).ok_or_else(|| {
            let message = "output_schema is no JSON object: give a JSON Schema";
            RpcError::new(ErrorCode::InvalidParams, message)
        })
    });
    let schema = schema.transpose()?;
    let input = Input::new(params.item_id, params.content)
        .to_session(params.session_id)
        .with_mode(params.mode)
        .with_output_schema(schema)
        .with_approval_mode(params.approval_mode);
    let sent = conversation
        .send(input)
        .await
        .map_err(|error| rpc_error(&error))?;
    Ok(SendResult {
        session_id: sent.session_id,
        duplicate: sent.duplicate,
    })
}

pub(crate) async fn interrupt(
    context: &Context,
    params: InterruptParams,
) -> Result<InterruptResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let interrupted = conversation.interrupt_within(params.session_id, params.scope);
    Ok(InterruptResult {
        turn_id: interrupted.await.map_err(|error| rpc_error(&error))?,
    })
}

pub(crate) async fn tree(context: &Context, params: TreeParams) -> Result<TreeResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let sessions = conversation.tree().await;
    Ok(TreeResult {
        sessions: sessions.map_err(|error| rpc_error(&error))?,
    })
}

pub(crate) async fn items(context: &Context, params: ItemsParams) -> Result<ItemsResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let query = ItemsQuery {
        session_id: params.session_id,
        order: params.order,
        cursor: params.cursor,
        limit: page_limit(params.limit, PAGE, context),
    };
    let page = conversation
        .items(query)
        .await
        .map_err(|error| rpc_error(&error))?;
    Ok(ItemsResult {
        items: page.items,
        next: page.next,
    })
}

pub(crate) async fn blob(context: &Context, params: BlobParams) -> Result<BlobResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let query = BlobQuery {
        session_id: params.session_id,
        blob: params.blob,
        offset: params.offset,
    };
    let piece = conversation
        .blob(query)
        .await
        .map_err(|error| rpc_error(&error))?;
    let data = STANDARD.encode(&piece.bytes);
    Ok(BlobResult {
        offset: piece.offset,
        data,
        next: piece.next,
    })
}

pub(super) async fn open(
    context: &Context,
    id: ConversationId,
) -> Result<ConversationHandle, RpcError> {
    context
        .runtime
        .open(id)
        .await
        .map_err(|error| rpc_error(&error))
}

//! `session/pending/…` and `session/resume`.

use openvaala_core::{PendingUpdate, RuntimeError};
use openvaala_protocol::conversation::PendingInput;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::pending::{
    ChangeResult, ListParams, ListResult, ReorderParams, ResumeParams, ResumeResult, UpdateParams,
    WithdrawParams,
};

use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

pub(crate) async fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let pending = conversation.pending(params.session_id).await;
    let pending = pending.map_err(|error| rpc_error(&error))?;
    Ok(ListResult {
        inputs: pending.inputs,
        held: pending.held,
    })
}

pub(crate) async fn update(
    context: &Context,
    params: UpdateParams,
) -> Result<ChangeResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let update = PendingUpdate::default()
        .with_content(params.content)
        .with_steer(params.steer);
    let pending = conversation.update_pending(params.session_id, params.item_id, update);
    changed(pending.await)
}

pub(crate) async fn withdraw(
    context: &Context,
    params: WithdrawParams,
) -> Result<ChangeResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let pending = conversation.withdraw_pending(params.session_id, params.item_ids);
    changed(pending.await)
}

pub(crate) async fn reorder(
    context: &Context,
    params: ReorderParams,
) -> Result<ChangeResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let pending = conversation.reorder_pending(params.session_id, params.item_ids);
    changed(pending.await)
}

fn changed(pending: Result<Vec<PendingInput>, RuntimeError>) -> Result<ChangeResult, RpcError> {
    let pending = pending.map_err(|error| rpc_error(&error))?;
    Ok(ChangeResult { pending })
}

pub(crate) async fn resume(
    context: &Context,
    params: ResumeParams,
) -> Result<ResumeResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let resumed = conversation.resume(params.session_id).await;
    Ok(ResumeResult {
        resumed: resumed.map_err(|error| rpc_error(&error))?,
    })
}

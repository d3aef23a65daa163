//! `conversation/delete`, `conversation/restore` and `trash/…`.

use std::time::Duration;

use openvaala_core::EmptyTrash;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::conversation::{
    DeleteParams, DeleteResult, RestoreParams, RestoreResult,
};
use openvaala_protocol::rpc::params::trash::{
    EmptyParams, EmptyResult, ListResult, TrashedConversation,
};

use super::error::rpc_error;
use crate::context::Context;

pub(crate) async fn delete(
    context: &Context,
    params: DeleteParams,
) -> Result<DeleteResult, RpcError> {
    let deleted = context.runtime.delete_conversation(params.conversation_id);
    let deleted = deleted.await.map_err(|error| rpc_error(&error))?;
    Ok(DeleteResult {
        in_trash: deleted.in_trash,
    })
}

pub(crate) async fn restore(
    context: &Context,
    params: RestoreParams,
) -> Result<RestoreResult, RpcError> {
    let restored = context.runtime.restore_conversation(params.conversation_id);
    restored.await.map_err(|error| rpc_error(&error))?;
    Ok(RestoreResult {})
}

pub(crate) async fn list(context: &Context) -> Result<ListResult, RpcError> {
    let listed = context.runtime.trash().await;
    let listed = listed.map_err(|error| rpc_error(&error))?;
    Ok(ListResult {
        conversations: listed.into_iter().map(on_wire).collect(),
    })
}

pub(crate) async fn empty(context: &Context, params: EmptyParams) -> Result<EmptyResult, RpcError> {
    let age = params.older_than_seconds.map(Duration::from_secs);
    let options = EmptyTrash::of(params.conversation_ids).older_than(age);
    let removed = context.runtime.empty_trash(options).await;
    let removed = removed.map_err(|error| rpc_error(&error))?;
    Ok(EmptyResult {
        removed: removed.into_iter().map(on_wire).collect(),
    })
}

fn on_wire(trashed: openvaala_core::TrashedConversation) -> TrashedConversation {
    TrashedConversation {
        id: trashed.id,
        title: trashed.title,
        deleted_at: trashed.deleted_at,
    }
}

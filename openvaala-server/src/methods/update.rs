//! `conversation/update`, `conversation/fork` and `session/update`.

use openvaala_core::{ConversationChange, ForkConversation, SessionChange};
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::update::{
    ConversationUpdateParams, ConversationUpdateResult, ForkParams, ForkResult,
    SessionUpdateParams, SessionUpdateResult,
};

use super::conversation::begun;
use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

pub(crate) async fn conversation(
    context: &Context,
    params: ConversationUpdateParams,
) -> Result<ConversationUpdateResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let mut change = ConversationChange::default();
    change.title = params.title;
    change.archived = params.archived;
    change.executors = params.executors;
    let changed = conversation.change(change).await;
    Ok(ConversationUpdateResult {
        conversation: changed.map_err(|error| rpc_error(&error))?,
    })
}

pub(crate) async fn session(
    context: &Context,
    params: SessionUpdateParams,
) -> Result<SessionUpdateResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let change = SessionChange::default()
        .with_model(params.model)
        .with_effort(params.effort)
        .with_agent(params.agent);
    let changed = conversation.change_session(params.session_id, change).await;
    Ok(SessionUpdateResult {
        session: changed.map_err(|error| rpc_error(&error))?,
    })
}

pub(crate) async fn fork(context: &Context, params: ForkParams) -> Result<ForkResult, RpcError> {
    let fork = ForkConversation::of(params.conversation_id)
        .session(params.session_id)
        .at(params.item_id)
        .to(params.new_id);
    let forked = context.runtime.fork(fork).await;
    let forked = forked.map_err(|error| rpc_error(&error))?;
    let (conversation, session) = begun(&forked).await?;
    Ok(ForkResult {
        conversation,
        session,
    })
}

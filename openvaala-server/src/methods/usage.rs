//! `usage/…`.

use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::usage::{GetParams, GetResult, SessionUsage};
use openvaala_protocol::usage::Usage;

use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

pub(crate) async fn get(context: &Context, params: GetParams) -> Result<GetResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let details = conversation.details().await;
    let details = details.map_err(|error| rpc_error(&error))?;
    let sessions: Vec<SessionUsage> = details
        .sessions
        .into_iter()
        .map(|session| SessionUsage {
            session_id: session.id,
            usage: session.usage,
        })
        .collect();
    let total = sessions
        .iter()
        .fold(Usage::default(), |sum, session| sum.plus(session.usage));
    Ok(GetResult { total, sessions })
}

//! `approval/…`.

use openvaala_core::AnswerApproval;
use openvaala_protocol::approval::{ApprovalAnswer, ApprovalRule, ApprovalScope};
use openvaala_protocol::rpc::params::approval::{
    AnswerParams, AnswerResult, ListParams, ListResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use tokio::sync::oneshot;

use super::error::rpc_error;
use super::session::open;
use crate::context::{ConfigChange, Context, Reload};

pub(crate) async fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let approvals = match params.conversation_id {
        None => context.runtime.approvals().await,
        Some(id) => open(context, id).await?.approvals().await,
    };
    Ok(ListResult {
        approvals: approvals.map_err(|error| rpc_error(&error))?,
    })
}

pub(crate) async fn answer(
    context: &Context,
    params: AnswerParams,
) -> Result<AnswerResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let mut answer =
        AnswerApproval::new(params.approval_id, params.answer).with_scope(params.scope);
    answer.session_id = params.session_id;
    answer.hash = params.hash;
    answer.message = params.message;
    answer.answered_by = context.client.as_deref().map(str::to_owned);
    let answered = conversation.answer_approval(answer).await;
    let approval = answered.map_err(|error| rpc_error(&error))?;
    let always = params.scope == ApprovalScope::Always && params.answer == ApprovalAnswer::Approve;
    if let Some(rule) = approval.rule.clone().filter(|_| always) {
        keep(context, rule).await?;
    }
    Ok(AnswerResult { approval })
}

/// Writes a rule to the configuration and puts that in force.
async fn keep(context: &Context, rule: ApprovalRule) -> Result<(), RpcError> {
    let failed = |why: &str| {
        let message = format!(
            "the call runs, and its rule counts in this session, but it could not be kept for others: {why}"
        );
        RpcError::new(ErrorCode::Runtime, message)
    };
    let (reply, result) = oneshot::channel();
    let change = Some(ConfigChange::Rule(rule));
    let stopped = "the server is stopping";
    let sent = context.reloads.send(Reload { change, reply }).await;
    sent.map_err(|_| failed(stopped))?;
    let reloaded = result.await.map_err(|_| failed(stopped))?;
    reloaded.map(drop).map_err(|error| failed(&error.message))
}

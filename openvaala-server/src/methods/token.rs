//! `token/…`.

use openvaala_protocol::rpc::params::token::{
    BindParams, BindResult, CreateParams, CreateResult, ListResult, RevokeParams, RevokeResult,
    RotateResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};
use tokio::sync::oneshot;

use crate::auth::TokenRequest;
use crate::context::Context;

pub(crate) async fn create(
    context: &Context,
    params: CreateParams,
) -> Result<CreateResult, RpcError> {
    ask(context, |reply| TokenRequest::Create { params, reply }).await
}

pub(crate) fn list(context: &Context) -> ListResult {
    ListResult {
        tokens: context.keys.borrow().list(),
    }
}

pub(crate) async fn revoke(
    context: &Context,
    params: RevokeParams,
) -> Result<RevokeResult, RpcError> {
    let name = params.name;
    ask(context, |reply| TokenRequest::Revoke { name, reply }).await?;
    Ok(RevokeResult {})
}

pub(crate) async fn rotate(context: &Context) -> Result<RotateResult, RpcError> {
    ask(context, |reply| TokenRequest::Rotate { reply }).await?;
    Ok(RotateResult {})
}

pub(crate) async fn bind(context: &Context, params: BindParams) -> Result<BindResult, RpcError> {
    ask(context, |reply| TokenRequest::Bind { params, reply }).await
}

async fn ask<T>(
    context: &Context,
    request: impl FnOnce(oneshot::Sender<Result<T, RpcError>>) -> TokenRequest,
) -> Result<T, RpcError> {
    let stopped = || RpcError::new(ErrorCode::Runtime, "the server is stopping");
    let (reply, answer) = oneshot::channel();
    context
        .tokens
        .send(request(reply))
        .await
        .map_err(|_| stopped())?;
    answer.await.map_err(|_| stopped())?
}

//! `turn/…`.

use openvaala_core::TurnsQuery;
use openvaala_protocol::rpc::RpcError;
use openvaala_protocol::rpc::params::turn::{GetParams, GetResult, ListParams, ListResult};

use super::conversation::page_limit;
use super::error::rpc_error;
use super::session::open;
use crate::context::Context;

/// How many turns a page has if nobody says otherwise.
const PAGE: u32 = 100;

pub(crate) async fn get(context: &Context, params: GetParams) -> Result<GetResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let turn = conversation.turn(params.turn_id).await;
    let turn = turn.map_err(|error| rpc_error(&error))?;
    Ok(GetResult { turn })
}

pub(crate) async fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let conversation = open(context, params.conversation_id).await?;
    let mut query = TurnsQuery::default();
    query.session_id = params.session_id;
    query.order = params.order;
    query.cursor = params.cursor;
    query.limit = page_limit(params.limit, PAGE, context);
    let page = conversation.turns(query).await;
    let page = page.map_err(|error| rpc_error(&error))?;
    Ok(ListResult {
        turns: page.turns,
        next: page.next,
    })
}

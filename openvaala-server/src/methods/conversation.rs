//! `conversation/…`, except for subscriptions, which belong to a connection.

use std::time::Duration;

use openvaala_core::{
    CloseConversation, ConversationFilter, ConversationHandle, ListConversations, NewConversation,
};
use openvaala_protocol::conversation::{Conversation, Session, WorkLocation};
use openvaala_protocol::id::ExecutorId;
use openvaala_protocol::rpc::params::conversation::{
    CloseParams, CloseResult, CreateParams, CreateResult, GetParams, GetResult, ListParams,
    ListResult, OpenParams, OpenResult,
};
use openvaala_protocol::rpc::{ErrorCode, RpcError};

use super::error::rpc_error;
use crate::context::Context;

/// How many conversations a page has if nobody says otherwise.
const PAGE: u32 = 50;
/// How many damages of a conversation are told.
const MAX_DAMAGED: usize = 100;
/// How long a conversation that shall be closed is waited for if nobody says otherwise, in milliseconds.
const CLOSE_WAIT: u32 = 1_000;
/// The longest that it may be waited for.
const MAX_CLOSE_WAIT: u32 = 60_000;

pub(crate) async fn create(
    context: &Context,
    params: CreateParams,
) -> Result<CreateResult, RpcError> {
    let CreateParams {
        mut executors,
        model,
        agent,
        approval_mode,
        conversation_id,
    } = params;
    if executors.is_empty() {
        let root = context.facts.working_dir.to_string_lossy().into_owned();
        executors.push(WorkLocation {
            executor: ExecutorId::local(),
            root,
        });
    }
    let mut new = NewConversation::new(executors, model)
        .with_approval_mode(approval_mode)
        .with_id(conversation_id);
    new.agent = agent;
    let conversation = context
        .runtime
        .create(new)
        .await
        .map_err(|error| rpc_error(&error))?;
    let (conversation, session) = begun(&conversation).await?;
    Ok(CreateResult {
        conversation,
        session,
    })
}

/// A new conversation and its root session.
pub(super) async fn begun(
    conversation: &ConversationHandle,
) -> Result<(Conversation, Session), RpcError> {
    let details = conversation
        .details()
        .await
        .map_err(|error| rpc_error(&error))?;
    let session =
        details.sessions.into_iter().next().ok_or_else(|| {
            RpcError::new(ErrorCode::Runtime, "the new conversation has no session")
        })?;
    Ok((details.conversation, session))
}

pub(crate) async fn list(context: &Context, params: ListParams) -> Result<ListResult, RpcError> {
    let limit = page_limit(params.limit, PAGE, context);
    let options = ListConversations {
        cursor: params.cursor,
        limit,
        filter: ConversationFilter {
            status: params.status,
            root: params.root,
            search: params.search,
            updated_since: params.updated_since,
            archived: params.archived,
        },
    };
    let page = context
        .runtime
        .list(options)
        .await
        .map_err(|error| rpc_error(&error))?;
    Ok(ListResult {
        conversations: page.conversations,
        next: page.next,
        stale: page.stale,
    })
}

pub(crate) async fn get(context: &Context, params: GetParams) -> Result<GetResult, RpcError> {
    let opened = context.runtime.open(params.conversation_id).await;
    let conversation = opened.map_err(|error| rpc_error(&error))?;
    let details = conversation
        .details()
        .await
        .map_err(|error| rpc_error(&error))?;
    Ok(GetResult {
        conversation: details.conversation,
        sessions: details.sessions,
        turns: details.turns,
    })
}

pub(crate) async fn open(context: &Context, params: OpenParams) -> Result<OpenResult, RpcError> {
    let opened = context.runtime.open(params.conversation_id).await;
    let conversation = opened.map_err(|error| rpc_error(&error))?;
    let details = conversation.details().await;
    let mut details = details.map_err(|error| rpc_error(&error))?;
    details.damaged.truncate(MAX_DAMAGED);
    Ok(OpenResult {
        conversation: details.conversation,
        sessions: details.sessions,
        damaged: details.damaged,
    })
}

pub(crate) async fn close(context: &Context, params: CloseParams) -> Result<CloseResult, RpcError> {
    let wait = params.wait_ms.unwrap_or(CLOSE_WAIT).min(MAX_CLOSE_WAIT);
    let options = CloseConversation::default()
        .with_interrupt(params.interrupt)
        .with_wait(Duration::from_millis(wait.into()));
    let closed = context
        .runtime
        .close_conversation(params.conversation_id, options);
    let was_open = closed.await.map_err(|error| rpc_error(&error))?;
    Ok(CloseResult { was_open })
}

/// How many a page shall have: at least one, at most as many as the configuration says.
pub(super) fn page_limit(asked: Option<u32>, default: u32, context: &Context) -> usize {
    let most = context.assembled().config.limits.page_items.max(1);
    usize::try_from(asked.unwrap_or(default).clamp(1, most)).unwrap_or(usize::MAX)
}

//! The subscriptions of one client: one task that takes requests in order, and one for each subscription.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use openvaala_core::{FeedEvent, Subscription};
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::rpc::params::conversation::{
    DeletedParams, EntryParams, GapParams, LiveParams, SubscribeParams, SubscribeResult,
    UnsubscribeParams, UnsubscribeResult,
};
use openvaala_protocol::rpc::{Notice, RequestId, RpcError};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_util::task::AbortOnDropHandle;

use super::outbox::{Gone, Outbox, text};
use super::respond;
use crate::context::{Context, Phase};
use crate::methods::error::rpc_error;

/// How long subscriptions have to tell the end of their conversations when the server closes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A request about a subscription, with its place among the requests in flight.
#[derive(Debug)]
pub(super) struct SubscriptionRequest {
    pub(super) id: RequestId,
    pub(super) what: What,
    pub(super) _in_flight: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(super) enum What {
    Subscribe(SubscribeParams),
    Unsubscribe(UnsubscribeParams),
}

/// Runs until no more requests can come, then lets the subscriptions say their last words.
pub(super) async fn run(
    context: Context,
    outbox: Outbox,
    mut requests: mpsc::UnboundedReceiver<SubscriptionRequest>,
) {
    let mut subscriptions = Subscriptions {
        context,
        outbox,
        open: HashMap::new(),
    };
    while let Some(request) = requests.recv().await {
        if subscriptions.take(request).await.is_err() {
            return;
        }
    }
    let open = join_all(subscriptions.open.into_values());
    // Those that go on are ended with their handles.
    let _ = timeout(LAST_WORDS, open).await;
}

struct Subscriptions {
    context: Context,
    outbox: Outbox,
    open: HashMap<ConversationId, AbortOnDropHandle<()>>,
}

impl Subscriptions {
    async fn take(&mut self, request: SubscriptionRequest) -> Result<(), Gone> {
        match request.what {
            What::Subscribe(params) => self.subscribe(request.id, params).await,
            What::Unsubscribe(params) => {
                let was_subscribed = self.end(params.conversation_id).await;
                let result = Ok(UnsubscribeResult { was_subscribed });
                respond(&self.outbox, request.id, result).await
            }
        }
    }

    /// The answer goes out before the first notification, and after the last one of the subscription before.
    async fn subscribe(&mut self, id: RequestId, params: SubscribeParams) -> Result<(), Gone> {
        let conversation = params.conversation_id;
        self.end(conversation).await;
        let (result, subscription) = match self.open(params).await {
            Ok((result, subscription)) => (Ok(result), Some(subscription)),
            Err(error) => (Err(error), None),
        };
        respond(&self.outbox, id, result).await?;
        if let Some(subscription) = subscription {
            let (outbox, phase) = (self.outbox.clone(), self.context.phase.clone());
            let task = tokio::spawn(async move {
                // A client that is gone needs to be told nothing.
                let _ = forward(conversation, subscription, &outbox, &phase).await;
            });
            self.open.insert(conversation, AbortOnDropHandle::new(task));
        }
        Ok(())
    }

    async fn open(
        &self,
        params: SubscribeParams,
    ) -> Result<(SubscribeResult, Subscription), RpcError> {
        let opened = self.context.runtime.open(params.conversation_id).await;
        let conversation = opened.map_err(|error| rpc_error(&error))?;
        let subscribed = conversation.subscribe(params.cursor).await;
        let mut subscription = subscribed.map_err(|error| rpc_error(&error))?;
        let result = SubscribeResult {
            snapshot: subscription.snapshot.take(),
            entries: std::mem::take(&mut subscription.entries),
            partials: std::mem::take(&mut subscription.partials),
            cursor: subscription.cursor.clone(),
        };
        Ok((result, subscription))
    }

    /// Ends a subscription; when this returns nothing more comes of it.
    async fn end(&mut self, conversation: ConversationId) -> bool {
        let Some(task) = self.open.remove(&conversation) else {
            return false;
        };
        let was_open = !task.is_finished();
        task.abort();
        // It was aborted, or had ended.
        let _ = task.await;
        was_open
    }
}

/// Tells a client what happens in a conversation, until that is closed or the client has missed something.
async fn forward(
    conversation_id: ConversationId,
    mut subscription: Subscription,
    outbox: &Outbox,
    phase: &watch::Receiver<Phase>,
) -> Result<(), Gone> {
    let mut told_gap = false;
    let mut reason = "the conversation was closed";
    while let Some(told) = subscription.next_told().await {
        match told.event() {
            FeedEvent::Gap { .. } => told_gap = true,
            FeedEvent::Deleted => reason = "the conversation was deleted",
            _ => {}
        }
        // Written once for all clients that watch this conversation.
        let frame = told.made(|event| frame(conversation_id, event));
        // What waits for room is only what will be sent.
        drop(told);
        if let Some(frame) = frame {
            outbox.send(frame).await?;
        }
    }
    // A client of a server that stops knows that all ends, and has missed nothing.
    if told_gap || *phase.borrow() != Phase::Serving {
        return Ok(());
    }
    let reason = reason.to_owned();
    outbox
        .notify(&Notice::ConversationGap(GapParams {
            conversation_id,
            reason,
        }))
        .await
}

/// What clients are sent of an event; `None` if that is nothing.
fn frame(conversation_id: ConversationId, event: &FeedEvent) -> Option<Utf8Bytes> {
    let notice = match event {
        FeedEvent::Entry { entry, cursor } => Notice::ConversationEntry(EntryParams {
            conversation_id,
            entry: (**entry).clone(),
            cursor: cursor.clone(),
        }),
        FeedEvent::Live(live) => Notice::ConversationLive(LiveParams {
            conversation_id,
            live: (**live).clone(),
        }),
        FeedEvent::Gap { reason } => Notice::ConversationGap(GapParams {
            conversation_id,
            reason: reason.clone(),
        }),
        FeedEvent::Deleted => Notice::ConversationDeleted(DeletedParams { conversation_id }),
        _ => return None,
    };
    text(&notice)
}

//! Takes the requests of one client: `initialize` first, then any, many at the same time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use openvaala_protocol::PROTOCOL_VERSION;
use openvaala_protocol::rpc::params::server::{InitializeParams, InitializeResult, Peer};
use openvaala_protocol::rpc::{Call, ErrorCode, Method, Request, RequestId, RpcError, method};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::lane::{self, Work};
use super::outbox::{Gone, Outbox};
use super::rate::Rate;
use super::subscriptions::{self, SubscriptionRequest, What};
use super::{refuse, respond};
use crate::VERSION;
use crate::auth::Access;
use crate::config::Limits;
use crate::context::Context;
use crate::methods::{
    agent, approval, compaction, config, conversation, executor, model, pending, provider, server,
    session, terminal, token, trash, turn, update, usage,
};

/// How many answers of one client that may be large are made at once, and wait for room until they are sent.
const LARGE: usize = 4;
/// How long requests in flight have to be answered when the server closes.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// The requests of one client.
pub(super) struct Requests {
    context: Context,
    access: Access,
    /// How many calls the token did not allow.
    forbidden: u32,
    outbox: Outbox,
    limits: Limits,
    rate: Rate,
    state: State,
    in_flight: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// `None` once closed.
    lane: Option<mpsc::UnboundedSender<Work>>,
    lane_task: AbortOnDropHandle<()>,
    /// What makes large answers, each in a task of its own.
    running: JoinSet<()>,
    /// `None` once closed.
    subscriptions: Option<mpsc::UnboundedSender<SubscriptionRequest>>,
    subscriptions_task: AbortOnDropHandle<()>,
}

/// What a client may ask for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Only `initialize`.
    New,
    /// Anything.
    Ready,
    /// Only `server/shutdown`: it speaks another version.
    Mismatched,
}

impl Requests {
    pub(super) fn new(context: Context, outbox: Outbox, limits: Limits, access: Access) -> Self {
        // Bounded by the requests in flight.
        let (subscriptions, requests) = mpsc::unbounded_channel();
        let task = tokio::spawn(subscriptions::run(
            context.clone(),
            outbox.clone(),
            requests,
        ));
        // Bounded by them too.
        let (lane, work) = mpsc::unbounded_channel();
        let lane_task = tokio::spawn(lane::run(work));
        Self {
            context,
            access,
            forbidden: 0,
            outbox,
            limits,
            rate: Rate::new(limits.requests_per_second, Instant::now()),
            state: State::New,
            in_flight: Arc::new(Semaphore::new(limits.requests_in_flight)),
            large: Arc::new(Semaphore::new(LARGE)),
            lane: Some(lane),
            lane_task: AbortOnDropHandle::new(lane_task),
            running: JoinSet::new(),
            subscriptions: Some(subscriptions),
            subscriptions_task: AbortOnDropHandle::new(task),
        }
    }

    /// How deep the parameters of a request may be nested.
    pub(super) const fn depth(&self) -> usize {
        self.limits.message_depth
    }

    /// Waits until a request is done with; for ever while there is none. Cancel safe.
    pub(super) async fn finished(&mut self) {
        if self.running.is_empty() {
            return std::future::pending().await;
        }
        self.running.join_next().await;
    }

    /// Waits for the last answers and the last words of the subscriptions; requests that take longer are dropped.
    pub(super) async fn close(&mut self) {
        self.subscriptions = None;
        self.lane = None;
        let answered = async {
            // An error says that it has failed, and answers nothing more.
            let _ = (&mut self.lane_task).await;
            while self.running.join_next().await.is_some() {}
        };
        // With the runtime stopped they all end soon.
        let _ = timeout(LAST_ANSWERS, answered).await;
        self.lane_task.abort();
        self.running.shutdown().await;
        // It has ended, or has failed and has no last words.
        let _ = (&mut self.subscriptions_task).await;
    }

    /// Takes a request: answers it, or begins to work on it.
    pub(super) async fn take(&mut self, request: Request) -> Result<(), Gone> {
        let Request { id, method, params } = request;
        if let Err(wait) = self.rate.take(Instant::now()) {
            let error = too_fast(self.limits.requests_per_second, wait);
            return refuse(&self.outbox, Some(id), error).await;
        }
        if let Err(error) = self.check(&method) {
            return refuse(&self.outbox, Some(id), error).await;
        }
        if let Err(error) = self.access.check_method(&method) {
            return self.forbid(id, &method, error).await;
        }
        let call = match Call::parse(&method, params.as_deref()) {
            Ok(Call::Initialize(params)) => {
                let result = self.initialize(params);
                return respond(&self.outbox, id, result).await;
            }
            Ok(call) => call,
            Err(error) => return refuse(&self.outbox, Some(id), error).await,
        };
        if let Err(error) = self.access.check_call(&method, &call) {
            return self.forbid(id, &method, error).await;
        }
        match Arc::clone(&self.in_flight).try_acquire_owned() {
            Ok(permit) => self.begin(id, call, permit),
            Err(_) => {
                let most = self.limits.requests_in_flight;
                let message =
                    format!("{most} requests of this client are worked on: wait for some of them");
                let error = RpcError::new(ErrorCode::Overloaded, message);
                return refuse(&self.outbox, Some(id), error).await;
            }
        }
        Ok(())
    }

    /// Whether the client may call that now.
    fn check(&self, method: &str) -> Result<(), RpcError> {
        let is_initialize = method == method::Initialize::NAME;
        let is_shutdown = method == method::ServerShutdown::NAME;
        let message = match self.state {
            State::New if !is_initialize => "send `initialize` first",
            State::Ready if is_initialize => "this connection is initialized already",
            State::Mismatched if !is_shutdown => {
                "after a version mismatch only `server/shutdown` works: run `openvaala serve stop` and retry"
            }
            State::New | State::Ready | State::Mismatched => return Ok(()),
        };
        Err(RpcError::new(ErrorCode::InvalidRequest, message))
    }

    /// Refuses what the token does not allow; worth a line in the log, but not one each time.
    async fn forbid(&mut self, id: RequestId, method: &str, error: RpcError) -> Result<(), Gone> {
        self.forbidden = self.forbidden.saturating_add(1);
        if self.forbidden.is_power_of_two() {
            let method: String = method.chars().take(80).collect();
            let (token, count) = (self.access.name(), self.forbidden);
            tracing::warn!(
                token,
                method,
                count,
                "a call was refused that the token does not allow"
            );
        }
        refuse(&self.outbox, Some(id), error).await
    }

    fn initialize(&mut self, params: InitializeParams) -> Result<InitializeResult, RpcError> {
        let (name, version) = (&params.client.name, &params.client.version);
        tracing::debug!(?name, ?version, "a client says who it is");
        if params.protocol_version != PROTOCOL_VERSION {
            self.state = State::Mismatched;
            return Err(RpcError::version_mismatch(&params.protocol_version));
        }
        self.state = State::Ready;
        self.context.client = Some(name.chars().take(80).collect::<String>().into());
        let assembled = self.context.assembled();
        Ok(InitializeResult {
            protocol_version: PROTOCOL_VERSION.to_owned(),
            server: Peer {
                name: "openvaala-server".to_owned(),
                version: VERSION.to_owned(),
            },
            default_model: assembled.default_model.clone(),
            notice: assembled.notice.clone(),
        })
    }

    fn begin(&mut self, id: RequestId, call: Call, permit: OwnedSemaphorePermit) {
        let what = match call {
            Call::ConversationSubscribe(params) => What::Subscribe(params),
            Call::ConversationUnsubscribe(params) => What::Unsubscribe(params),
            call => {
                let large = may_be_large(&call).then(|| Arc::clone(&self.large));
                let work = work(self.context.clone(), self.outbox.clone(), id, call);
                match (large, &self.lane) {
                    (Some(large), _) => {
                        self.running.spawn(async move {
                            // Nothing closes it: there is always one to wait for.
                            let _turn = large.acquire_owned().await;
                            // A client that is gone needs no answer.
                            let _ = work.await;
                            drop(permit);
                        });
                    }
                    (None, Some(lane)) => {
                        let work = async move {
                            let _ = work.await;
                            drop(permit);
                        };
                        // Its task ends with this.
                        let _ = lane.send(Box::pin(work));
                    }
                    (None, None) => {}
                }
                return;
            }
        };
        if let Some(subscriptions) = &self.subscriptions {
            // Its task ends early only when the client is gone.
            let _ = subscriptions.send(SubscriptionRequest {
                id,
                what,
                _in_flight: permit,
            });
        }
    }
}

/// Whether the answer may have many MiB: of these only few are held for a client that does not read.
const fn may_be_large(call: &Call) -> bool {
    matches!(
        call,
        Call::ConversationList(_)
            | Call::ConversationGet(_)
            | Call::SessionTree(_)
            | Call::SessionItems(_)
            | Call::SessionBlob(_)
            | Call::SessionPendingList(_)
    )
}

/// Refuses a request of a client that sent as many as it may.
fn too_fast(most: u32, wait: Duration) -> RpcError {
    let message = format!(
        "this client sends more than {most} requests a second: send it again {} ms later",
        wait.as_millis() + 1
    );
    RpcError::overloaded(message, wait)
}

/// Works on a request and answers it, whatever happens.
async fn work(context: Context, outbox: Outbox, id: RequestId, call: Call) -> Result<(), Gone> {
    let work = AssertUnwindSafe(perform(&context, &outbox, call));
    let result = work.catch_unwind().await.unwrap_or_else(|_| {
        let message = "the server met a fault while it worked on this; its log has more";
        Err(RpcError::new(ErrorCode::Runtime, message))
    });
    respond(&outbox, id, result).await?;
    Ok(())
}

/// The table of methods, as far as they are no matter of the connection itself.
async fn perform(
    context: &Context,
    outbox: &Outbox,
    call: Call,
) -> Result<Box<RawValue>, RpcError> {
    match call {
        Call::ServerStatus(_) => raw(server::status(context).await?),
        Call::ServerShutdown(params) => raw(server::shutdown(context, params).await),
        Call::ServerReload(_) => raw(server::reload(context).await?),
        Call::ServerLogs(params) => raw(server::logs(context, params).await?),
        Call::ServerReindex(_) => raw(server::reindex(context, outbox).await?),
        Call::ServerCheck(params) => raw(server::check(context, outbox, params).await?),
        Call::ConversationDelete(params) => raw(trash::delete(context, params).await?),
        Call::ConversationRestore(params) => raw(trash::restore(context, params).await?),
        Call::TokenCreate(params) => raw(token::create(context, params).await?),
        Call::TokenList(_) => raw(token::list(context)),
        Call::TokenRevoke(params) => raw(token::revoke(context, params).await?),
        Call::TokenRotate(_) => raw(token::rotate(context).await?),
        Call::TokenBind(params) => raw(token::bind(context, params).await?),
        Call::TrashList(_) => raw(trash::list(context).await?),
        Call::TrashEmpty(params) => raw(trash::empty(context, params).await?),
        Call::ConversationCreate(params) => raw(conversation::create(context, params).await?),
        Call::ConversationList(params) => raw(conversation::list(context, params).await?),
        Call::ConversationGet(params) => raw(conversation::get(context, params).await?),
        Call::SessionSend(params) => raw(session::send(context, params).await?),
        Call::SessionInterrupt(params) => raw(session::interrupt(context, params).await?),
        Call::SessionTree(params) => raw(session::tree(context, params).await?),
        Call::SessionCompact(params) => raw(compaction::compact(context, params).await?),
        Call::SessionUncompact(params) => raw(compaction::uncompact(context, params).await?),
        Call::SessionItems(params) => raw(session::items(context, params).await?),
        Call::SessionBlob(params) => raw(session::blob(context, params).await?),
        Call::ConversationOpen(params) => raw(conversation::open(context, params).await?),
        Call::ConversationClose(params) => raw(conversation::close(context, params).await?),
        Call::TurnGet(params) => raw(turn::get(context, params).await?),
        Call::TurnList(params) => raw(turn::list(context, params).await?),
        Call::TerminalList(params) => raw(terminal::list(context, params).await?),
        Call::TerminalRead(params) => raw(terminal::read(context, params).await?),
        Call::TerminalWrite(params) => raw(terminal::write(context, params).await?),
        Call::TerminalKill(params) => raw(terminal::kill(context, params).await?),
        Call::AgentList(_) => raw(agent::list(context)),
        Call::ModelList(params) => raw(model::list(context, params)?),
        Call::ExecutorList(_) => raw(executor::list(context)),
        Call::ExecutorTest(params) => raw(executor::test(context, params).await?),
        Call::ExecutorBrowse(params) => raw(executor::browse(context, params).await?),
        Call::ExecutorComplete(params) => raw(executor::complete(context, params).await?),
        Call::UsageGet(params) => raw(usage::get(context, params).await?),
        Call::ProviderList(_) => raw(provider::list(context)),
        Call::ProviderAdd(params) => raw(provider::add(context, params).await?),
        Call::ProviderEdit(params) => raw(provider::edit(context, params).await?),
        Call::ModelDefaultSet(params) => raw(model::set_default(context, params).await?),
        Call::ConfigGet(_) => raw(config::get(context).await?),
        Call::ConfigValidate(params) => raw(config::validate(context, params).await?),
        Call::ConfigSet(params) => raw(config::set(context, params).await?),
        Call::ProviderRemove(params) => raw(provider::remove(context, params).await?),
        Call::ProviderTest(params) => raw(provider::test(context, params).await?),
        Call::SessionPendingList(params) => raw(pending::list(context, params).await?),
        Call::SessionPendingUpdate(params) => raw(pending::update(context, params).await?),
        Call::SessionPendingWithdraw(params) => raw(pending::withdraw(context, params).await?),
        Call::SessionPendingReorder(params) => raw(pending::reorder(context, params).await?),
        Call::SessionResume(params) => raw(pending::resume(context, params).await?),
        Call::SessionUpdate(params) => raw(update::session(context, params).await?),
        Call::ConversationUpdate(params) => raw(update::conversation(context, params).await?),
        Call::ConversationFork(params) => raw(update::fork(context, params).await?),
        Call::ApprovalList(params) => raw(approval::list(context, params).await?),
        Call::ApprovalAnswer(params) => raw(approval::answer(context, params).await?),
        // The connection itself takes the other three before it comes here.
        _ => Err(RpcError::new(
            ErrorCode::MethodNotFound,
            "this server does not have that method",
        )),
    }
}

fn raw(result: impl Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(&result).map_err(|error| RpcError::new(ErrorCode::Runtime, error.to_string()))
}

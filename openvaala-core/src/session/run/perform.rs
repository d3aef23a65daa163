//! What the session machine wants done.

use std::sync::Arc;

use openvaala_executor::tool::Cancel;
use openvaala_protocol::event::Live;
use openvaala_protocol::id::TurnId;
use openvaala_protocol::item::{Item, ItemKind, ToolResultStatus};

use super::{Done, Findings, REAP, SessionDeps, SessionLoop};
use crate::agent::{RunningCall, ToolOutcome};
use crate::conversation::{Sent, Upward};
use crate::dao::record::{Report, State};
use crate::dao::tail;
use crate::error::RuntimeError;
use crate::journal::Commit;
use crate::runtime::Definitions;
use crate::session::context::load_context;
use crate::session::event::{Effect, Refusal, ReplyId};
use crate::session::prepare::{Nature, prepare};
use crate::session::tools::run_tool;

impl SessionLoop {
    pub(super) async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(commit) => self.commit(commit),
            Effect::Sent { reply, duplicate } => {
                let session_id = self.deps.around.session;
                if let Some(reply) = self.sends.remove(&reply) {
                    let _ = reply.send(Ok(Sent {
                        session_id,
                        duplicate,
                    }));
                }
            }
            Effect::Interrupted { reply, turn } => {
                if let Some(reply) = self.interrupts.remove(&reply) {
                    let _ = reply.send(Ok(turn));
                }
            }
            Effect::Refuse { reply, refusal } => {
                let error = match refusal {
                    Refusal::Busy => RuntimeError::SessionBusy {
                        session: self.deps.around.session,
                    },
                    Refusal::NotCompacted(message) => RuntimeError::NotCompacted { message },
                    Refusal::QueueFull => RuntimeError::Overloaded,
                    Refusal::NotWritten(message) => RuntimeError::NotWritten { message },
                    Refusal::NoApproval(approval) => RuntimeError::ApprovalNotFound {
                        session: self.deps.around.session,
                        approval,
                    },
                    Refusal::ApprovalAnswered(approval) => {
                        RuntimeError::ApprovalAnswered { approval }
                    }
                    Refusal::WrongAnswer(message) => RuntimeError::InvalidInput { message },
                    Refusal::NotRead(message) => RuntimeError::Unreadable {
                        what: format!("the metadata of session {}", self.deps.around.session),
                        message,
                    },
                    Refusal::InputNotFound(input) => RuntimeError::InputNotFound { input },
                    Refusal::InputTaken(input) => RuntimeError::InputTaken { input },
                    Refusal::QueueChanged(message) => RuntimeError::QueueChanged { message },
                    Refusal::InvalidInput(message) => RuntimeError::InvalidInput { message },
                };
                self.refuse(reply, error);
            }
            Effect::Answer { reply, answer } => {
                if let Some(reply) = self.requests.remove(&reply) {
                    let _ = reply.send(Ok(answer));
                }
            }
            Effect::ApprovalAnswered { reply, approval } => {
                if let Some(reply) = self.approvals.remove(&reply) {
                    let _ = reply.send(Ok(*approval));
                }
            }
            Effect::Live(live) => self.deps.around.feed.live(live).await,
            Effect::Prepare { turn, load } => self.prepare(turn, load),
            Effect::FindInputs => self.find_inputs(),
            Effect::AskModel { request, .. } => self.ask_model(request),
            Effect::DropModel => self.model = None,
            Effect::StartTool(call) => self.start_tool(call),
            Effect::StopTools => {
                if let Some((handle, _)) = &self.cancel {
                    handle.cancel();
                }
            }
            Effect::AbandonTools => self.abandon_tools(),
            Effect::Alarm { after, turn, alarm } => {
                self.work.spawn(async move {
                    tokio::time::sleep(after).await;
                    Done::Alarm { turn, alarm }
                });
            }
            Effect::Reload { message } => {
                let session_id = self.deps.around.session;
                self.broken = Some(message.clone());
                self.deps
                    .around
                    .feed
                    .live(Live::Degraded {
                        session_id,
                        message,
                    })
                    .await;
            }
            Effect::Survey { request, load } => self.survey(request, load),
            Effect::AskSummary { request, wait } => self.ask_summary(request, wait),
            Effect::Forgotten => self.forget_images(),
            Effect::Compacted {
                reply,
                item,
                summary,
            } => self.orders.compacted(reply, item, *summary),
            Effect::Uncompacted { reply, summary } => self.orders.uncompacted(reply, summary),
            Effect::Heard { messages } => {
                // The conversation ends after its sessions.
                let _ = self.deps.around.up.send(Upward::Heard(messages));
            }
        }
    }

    pub(super) fn refuse(&mut self, reply: ReplyId, error: RuntimeError) {
        if let Some(reply) = self.sends.remove(&reply) {
            let _ = reply.send(Err(error));
        } else if let Some(reply) = self.interrupts.remove(&reply) {
            let _ = reply.send(Err(error));
        } else if let Some(reply) = self.requests.remove(&reply) {
            let _ = reply.send(Err(error));
        } else if let Some(reply) = self.approvals.remove(&reply) {
            let _ = reply.send(Err(error));
        } else {
            self.orders.refuse(reply, error);
        }
    }

    fn commit(&mut self, commit: Commit) {
        self.writing = true;
        let deps = Arc::clone(&self.deps);
        // What a person said must not stay in memory only.
        let is_message = |item: &Item| {
            matches!(
                item.head().kind,
                ItemKind::UserMessage | ItemKind::AgentMessage
            )
        };
        let queued = !self.machine.is_queue_empty();
        let promote = queued || commit.batch.items.iter().any(is_message);
        let reports = reports_in(&commit);
        self.work.spawn(async move {
            let result = deps
                .around
                .writer
                .write(deps.around.session, commit.batch, promote)
                .await;
            Done::Written {
                n: commit.n,
                result,
                reports,
            }
        });
    }

    fn find_inputs(&mut self) {
        let (deps, life) = (Arc::clone(&self.deps), self.life);
        self.work.spawn(async move {
            let (log, id) = (&deps.around.writer.log, deps.around.writer.conversation);
            let result = tail::accepted_inputs(log, id, deps.around.session).await;
            Done::InputsFound { life, result }
        });
    }

    fn prepare(&mut self, turn: TurnId, load: bool) {
        let (handle, cancel) = Cancel::new();
        self.cancel = Some((handle, cancel));
        let deps = Arc::clone(&self.deps);
        let nature = self.machine.nature();
        let definitions = Arc::clone(&self.deps.around.definitions.borrow());
        self.machine.set_limits(definitions.limits());
        self.set_compaction(&definitions);
        self.work.spawn(async move {
            let result = find(&deps, definitions, nature, load).await;
            let result = result.map(Box::new);
            Done::Prepared { turn, result }
        });
    }

    fn start_tool(&mut self, call: RunningCall) {
        let (Some(prepared), Some((_, cancel))) = (&self.prepared, &self.cancel) else {
            return;
        };
        let (deps, cancel, result) = (Arc::clone(&self.deps), cancel.clone(), call.result);
        match prepared.toolbox.route(&call.tool, &call.arguments) {
            Ok(routed) => {
                self.tools
                    .spawn(async move { (result, run_tool(deps, call, routed, cancel).await) });
            }
            // The machine has routed it before, so this cannot be; but if it is, the model is told.
            Err(error) => {
                let why = error.to_string();
                let status = ToolResultStatus::Failed;
                self.tools
                    .spawn(async move { (result, ToolOutcome::said(status, why)) });
            }
        }
    }

    /// Goes on without the tools that did not stop; they are dropped, and with them what they started.
    fn abandon_tools(&mut self) {
        let mut tools = std::mem::take(&mut self.tools);
        if tools.is_empty() {
            return;
        }
        self.work.spawn(async move {
            let all = async { while tools.join_next().await.is_some() {} };
            if tokio::time::timeout(REAP, all).await.is_err() {
                tools.shutdown().await;
            }
            Done::Reaped
        });
    }
}

/// What a session has to report once that is written.
fn reports_in(commit: &Commit) -> Vec<Report> {
    let states = commit.batch.states.iter();
    let mut reports = states.filter_map(|state| match state {
        State::Session(session) => Some(session.child.as_ref()?.reports.clone()),
        _ => None,
    });
    reports.next().unwrap_or_default()
}

/// Opens what a turn works with; with `load` it reads what requests are made from as well.
pub(super) async fn find(
    deps: &SessionDeps,
    definitions: Arc<Definitions>,
    nature: Nature,
    load: bool,
) -> Result<Findings, RuntimeError> {
    let (prepared, instructions) = prepare(deps, definitions, nature).await?;
    let context = if load {
        Some(load_context(&deps.around).await?)
    } else {
        None
    };
    Ok(Findings {
        prepared,
        instructions,
        context,
    })
}

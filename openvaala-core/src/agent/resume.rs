//! An agent whose turn goes on after a restart: it waits for the answers to questions that were asked before.

use std::sync::Arc;

use openvaala_executor::tool::Toolbox;
use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{Approval, ApprovalState, ToolCall, ToolResultStatus};
use openvaala_protocol::usage::Usage;

use super::event::{Ending, Limits, RunningCall, ToolOutcome};
use super::gate::Question;
use super::machine::{Agent, Call, Phase, plan_of};
use super::scribe::{Place, Scribe, Tick};

/// Why a call cannot run although it was asked before the restart.
const CHANGED: &str = "not run: since it was asked the runtime was started anew, and now the call would do something else, \
                       or nothing. Ask again if it is still needed.";

/// A call that waits for an answer, as the log has it.
#[derive(Debug)]
pub(crate) struct LeftQuestion {
    pub(crate) item: ItemId,
    pub(crate) call: ToolCall,
    /// Where its result will stand.
    pub(crate) result: Place,
    pub(crate) place: Place,
    pub(crate) approval: Approval,
}

impl Agent {
    /// Goes on in the middle of a turn, with nothing left of its last answer but these calls.
    ///
    /// It has no tools yet: none of the calls may run before it was prepared.
    pub(crate) fn resume(
        turn: TurnId,
        model: ModelRef,
        limits: Limits,
        (steps, usage): (u32, Usage),
        questions: Vec<LeftQuestion>,
    ) -> Self {
        let mut agent = Self::new(turn, model, limits);
        (agent.steps, agent.usage) = (steps, usage);
        agent.phase = Phase::Tools(questions.into_iter().map(waiting).collect());
        agent
    }

    /// Whether it goes on after a restart and has no tools yet.
    pub(crate) const fn is_resuming(&self) -> bool {
        matches!(self.phase, Phase::Tools(_)) && self.toolbox.is_none()
    }

    /// Whether nothing is left to be done but to wait for answers, and the runtime is about to end: they may come after it.
    pub(crate) fn is_parked(&self) -> bool {
        let Phase::Tools(calls) = &self.phase else {
            return false;
        };
        let is_waiting = |call: &Call| call.question.is_some();
        self.keeps_questions()
            && calls.iter().any(is_waiting)
            && calls.iter().all(|call| call.done || is_waiting(call))
    }

    /// Takes the tools, and takes those questions back whose calls are no longer what was asked.
    pub(super) fn prepared_again(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        toolbox: Arc<Toolbox>,
        account: Option<String>,
    ) -> Option<Ending> {
        (self.toolbox, self.account) = (Some(toolbox), account);
        let is_same = |question: &Question| {
            let Question { approval, call, .. } = question;
            self.toolbox.as_ref().is_some_and(|toolbox| {
                let routed = toolbox.route(&call.tool, &call.arguments);
                routed.is_ok_and(|routed| self.gate.is_what_was_asked(approval, &routed))
            })
        };
        let Phase::Tools(calls) = &self.phase else {
            return None;
        };
        let questions = calls.iter().filter_map(|call| call.question.as_ref());
        let changed: Vec<ItemId> = questions
            .filter(|question| !is_same(question))
            .map(|question| question.place.id)
            .collect();
        self.close_questions(scribe, tick, CHANGED, |question| {
            changed.contains(&question.place.id)
        });
        self.wait_for_answers(scribe, tick);
        self.after_tools()
    }

    /// Takes those questions back, and answers their calls with why.
    pub(super) fn close_questions(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        why: &str,
        which: impl Fn(&Question) -> bool,
    ) {
        let Phase::Tools(calls) = &mut self.phase else {
            return;
        };
        let closed: Vec<Question> = calls
            .iter_mut()
            .filter_map(|call| call.question.take_if(|question| which(question)))
            .collect();
        for question in closed {
            let (place, call) = (question.place, question.call);
            let mut approval = question.approval;
            approval.state = ApprovalState::Cancelled;
            approval.message = Some(why.to_owned());
            scribe.write(place, Some(self.turn), &approval, tick.now);
            let outcome = ToolOutcome::said(ToolResultStatus::Failed, why);
            self.tool_ended(scribe, tick, call.result, outcome);
        }
    }
}

fn waiting(left: LeftQuestion) -> Call {
    let LeftQuestion {
        item,
        call,
        result,
        place,
        approval,
    } = left;
    let plan = plan_of(&call);
    let running = RunningCall {
        result: result.id,
        call_id: call.call_id.clone(),
        tool: call.tool,
        arguments: call.arguments,
    };
    Call {
        item,
        call_id: call.call_id,
        result,
        done: false,
        question: Some(Question {
            place,
            approval,
            call: running,
        }),
        plan,
    }
}

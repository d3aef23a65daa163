//! Questions whether a tool call may run: who answers, and what becomes of those that nobody answers.

use std::collections::BTreeSet;

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalMode, ApprovalScope};
use openvaala_protocol::id::{ConversationId, ItemId, TurnId};
use openvaala_protocol::item::{Approval, ApprovalState};
use openvaala_protocol::rpc::params::approval::OpenApproval;

use super::event::{Effect, Refusal, ReplyId};
use super::machine::SessionMachine;
use crate::agent::Tick;
use crate::approval::ApprovalPolicy;
use crate::conversation::AnswerApproval;

/// What the model is told of a call that waited when the runtime ended.
pub(super) const NOT_ANSWERED: &str =
    "not run: the runtime ended before somebody said whether it may";

impl SessionMachine {
    /// What runs without a question in the turn that begins: never more than where it was started from.
    pub(super) fn policy(
        &self,
        mut policy: ApprovalPolicy,
        ceiling: Option<ApprovalMode>,
    ) -> ApprovalPolicy {
        let mode = self.state.approval_mode.unwrap_or(policy.mode);
        policy.mode = ceiling.map_or(mode, |ceiling| ceiling.min(mode));
        policy
            .rules
            .extend(self.state.approval_rules.iter().cloned());
        policy
    }

    /// The questions that wait for an answer.
    pub(crate) fn open_approvals(&self, conversation_id: ConversationId) -> Vec<OpenApproval> {
        let Some(active) = &self.turn else {
            return Vec::new();
        };
        let open = active
            .agent
            .questions()
            .map(|(place, approval)| OpenApproval {
                conversation_id,
                session_id: self.state.id,
                approval_id: place.id,
                asked_at: place.started_at,
                approval: approval.clone(),
            });
        open.collect()
    }

    /// Takes the first answer to a question; whoever comes later is told what it was.
    pub(super) fn answer(&mut self, tick: &mut Tick<'_>, reply: ReplyId, answer: AnswerApproval) {
        if self.stopped {
            self.refuse(reply, Refusal::Busy);
            return;
        }
        if self.is_resuming() {
            self.early_answers.push((reply, answer));
            return;
        }
        let id = answer.approval_id;
        let open = self.turn.as_ref().and_then(|active| {
            let mut questions = active.agent.questions();
            let (_, approval) = questions.find(|(place, _)| place.id == id)?;
            Some(approval.clone())
        });
        let answered = match open {
            Some(approval) => answered(approval, answer).map_err(Refusal::WrongAnswer),
            None => Err(self.refusal(id)),
        };
        let approval = match answered {
            Ok(approval) => approval,
            Err(refusal) => {
                // What it is refused for may still be on its way to the log.
                self.scribe.journal.then(Effect::Refuse { reply, refusal });
                return;
            }
        };
        let Some(active) = &mut self.turn else { return };
        let rule = approval.rule.clone();
        let counts = approval
            .scope
            .is_some_and(|scope| scope != ApprovalScope::Once);
        if let Some(rule) = rule.filter(|_| counts) {
            active.agent.allow(rule.clone());
            if !self.state.approval_rules.contains(&rule) {
                self.state.approval_rules.push(rule);
            }
        }
        let ending = active
            .agent
            .answer(&mut self.scribe, tick, id, approval.clone());
        if counts {
            self.save(tick);
        }
        self.end_turn(tick, ending);
        let approval = Box::new(approval);
        self.scribe
            .journal
            .then(Effect::ApprovalAnswered { reply, approval });
    }

    /// Why a question that is not open cannot be answered.
    fn refusal(&self, id: ItemId) -> Refusal {
        let mut items = self.history().iter().rev();
        let item = items.find(|item| item.head().id == id);
        match item.and_then(|item| item.body::<Approval>()?.ok()) {
            Some(approval) => Refusal::ApprovalAnswered(Box::new(approval)),
            None => Refusal::NoApproval(id),
        }
    }

    /// Writes down that nobody needs to answer the questions of a turn any more; gives their calls, which never ran.
    pub(super) fn take_questions_back(
        &mut self,
        tick: &Tick<'_>,
        turn: TurnId,
    ) -> BTreeSet<ItemId> {
        let open = self.pending_questions(turn);
        let calls = open.iter().map(|(_, approval)| approval.call).collect();
        for (place, mut approval) in open {
            approval.state = ApprovalState::Cancelled;
            approval.message = Some("the runtime ended".to_owned());
            self.scribe.write(place, Some(turn), &approval, tick.now);
        }
        calls
    }
}

/// The question with its answer; an error says what is wrong with that.
fn answered(mut approval: Approval, answer: AnswerApproval) -> Result<Approval, String> {
    if answer.hash.is_some() && answer.hash != approval.hash {
        return Err("the hash is not that of this call: look at the call again".to_owned());
    }
    approval.message = answer.message;
    approval.answered_by = answer.answered_by;
    match answer.answer {
        ApprovalAnswer::Deny => approval.state = ApprovalState::Denied,
        ApprovalAnswer::Approve => {
            if answer.scope != ApprovalScope::Once && approval.rule.is_none() {
                let why = "no rule can stand for this call: approve it with the scope `once`";
                return Err(why.to_owned());
            }
            approval.state = ApprovalState::Approved;
            approval.scope = Some(answer.scope);
        }
    }
    Ok(approval)
}

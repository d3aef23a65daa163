//! What stands between a tool call and its start: the policy, and questions that wait for an answer.

use std::time::Duration;

use openvaala_executor::tool::Routed;
use openvaala_protocol::approval::ApprovalRule;
use openvaala_protocol::conversation::WorkLocation;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{Approval, ApprovalState, ToolCall, ToolResultStatus};

use super::event::{Ending, RunningCall, ToolOutcome};
use super::machine::{Agent, Phase};
use super::scribe::{Place, Scribe, Tick};
use crate::approval::{ApprovalPolicy, Asked, Verdict};

/// Decides which calls of a turn run.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    policy: ApprovalPolicy,
    locations: Vec<WorkLocation>,
}

/// A call that waits for an answer.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) place: Place,
    pub(super) approval: Approval,
    pub(super) call: RunningCall,
}

/// What is done with a call.
pub(super) enum Passage {
    Open,
    Ask(Box<Approval>),
    Closed(String),
}

impl Gate {
    pub(crate) const fn new(policy: ApprovalPolicy, locations: Vec<WorkLocation>) -> Self {
        Self { policy, locations }
    }

    /// Judges a call that has found its tool.
    pub(super) fn judge(&self, item: ItemId, call: &ToolCall, routed: &Routed) -> Passage {
        let asked = self.asked(&call.tool, routed);
        match self.policy.judge(&asked) {
            Verdict::Allow => Passage::Open,
            Verdict::Deny { reason } => Passage::Closed(format!(
                "not run: {reason}. Do not try to do the same in another way; do without, or say what you need it for."
            )),
            Verdict::Ask { reason, rule } => {
                let mut approval = Approval::new(item, &call.tool, &routed.arguments, reason);
                approval.executor = asked.executor.cloned();
                approval.folder = asked.folder.map(str::to_owned);
                approval.hash = hash(&asked);
                approval.rule = rule;
                Passage::Ask(Box::new(approval))
            }
        }
    }
}

impl Gate {
    /// How long a question waits for an answer; `None` is for ever.
    pub(super) const fn answer_within(&self) -> Option<Duration> {
        self.policy.answer_within
    }

    /// Whether a call that has found its tool would do what was asked about.
    pub(super) fn is_what_was_asked(&self, approval: &Approval, routed: &Routed) -> bool {
        let asked = self.asked(&approval.tool, routed);
        approval.arguments == asked.arguments
            && approval.executor.as_ref() == asked.executor
            && approval.folder.as_deref() == asked.folder
            && approval.hash == hash(&asked)
    }

    /// What is known of a call.
    fn asked<'a>(&'a self, tool: &'a str, routed: &'a Routed) -> Asked<'a> {
        let executor = routed.executor.as_ref();
        let mut locations = self.locations.iter();
        let location = locations.find(|location| Some(&location.executor) == executor);
        Asked {
            tool,
            read_only: routed.tool.spec().read_only,
            executor,
            folder: location.map(|location| location.root.as_str()),
            arguments: &routed.arguments,
        }
    }
}

impl Agent {
    /// Sets what decides which calls run.
    pub(crate) fn guard(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Lets calls that fit a rule run from now on.
    pub(crate) fn allow(&mut self, rule: ApprovalRule) {
        self.gate.policy.rules.push(rule);
    }

    /// The questions that wait for an answer.
    pub(crate) fn questions(&self) -> impl Iterator<Item = (Place, &Approval)> {
        let calls = match &self.phase {
            Phase::Tools(calls) => calls.as_slice(),
            _ => &[],
        };
        let questions = calls.iter().filter_map(|call| call.question.as_ref());
        questions.map(|question| (question.place, &question.approval))
    }

    /// Writes the answer to an open question down, and lets its call run or not.
    pub(crate) fn answer(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        id: ItemId,
        approval: Approval,
    ) -> Option<Ending> {
        let Phase::Tools(calls) = &mut self.phase else {
            return None;
        };
        let mut questions = calls
            .iter_mut()
            .filter_map(|call| call.question.take_if(|question| question.place.id == id));
        let Question { place, call, .. } = questions.next()?;
        scribe.write(place, Some(self.turn), &approval, tick.now);
        if approval.state == ApprovalState::Approved {
            self.start(scribe, tick, call);
            return None;
        }
        let mut why = "not run: the user was asked and said no.".to_owned();
        if let Some(message) = approval.message.filter(|text| !text.trim().is_empty()) {
            why.push_str(&format!(" They say: {message}"));
        }
        let outcome = ToolOutcome::said(ToolResultStatus::Failed, why);
        self.tool_ended(scribe, tick, call.result, outcome);
        self.after_tools()
    }

    /// Takes all open questions back, because the turn is interrupted.
    pub(super) fn take_questions_back(&mut self, scribe: &mut Scribe, tick: &mut Tick<'_>) {
        let Phase::Tools(calls) = &mut self.phase else {
            return;
        };
        let questions: Vec<Question> = calls
            .iter_mut()
            .filter_map(|call| call.question.take())
            .collect();
        for Question {
            place,
            mut approval,
            call,
        } in questions
        {
            approval.state = ApprovalState::Cancelled;
            approval.message = Some("the turn was interrupted".to_owned());
            scribe.write(place, Some(self.turn), &approval, tick.now);
            let why = "not run: interrupted before somebody said whether it may";
            let outcome = ToolOutcome::said(ToolResultStatus::Interrupted, why);
            self.tool_ended(scribe, tick, call.result, outcome);
        }
    }
}

/// What binds an answer to a call.
#[cfg(feature = "tools")]
fn hash(call: &Asked<'_>) -> Option<String> {
    use sha2::{Digest, Sha256};

    let executor = call.executor.map(ToString::to_string);
    let bound = serde_json::json!([call.tool, call.arguments, executor, call.folder]);
    let digest = Sha256::digest(bound.to_string().as_bytes());
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(not(feature = "tools"))]
const fn hash(_: &Asked<'_>) -> Option<String> {
    None
}

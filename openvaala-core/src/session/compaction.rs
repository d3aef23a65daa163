//! When a session's context is summarised, and what becomes of it.
//!
//! A summary stands at the beginning of later requests in the place of what was said before; the old items stay in the
//! log. It is made between two requests of a turn, or while no turn runs. Until it is written nothing has changed: an
//! interrupt or a crash leaves the session as it was.

mod making;

use openvaala_protocol::conversation::TurnFailureKind;
use openvaala_protocol::item::{CompactionTrigger, ModelError, SummaryUndone};
use openvaala_protocol::usage::Usage;

use self::making::Text;
use super::event::{Effect, Refusal, ReplyId};
use super::machine::SessionMachine;
use crate::agent::{AgentEvent, Ending, Failure, Tick};
use crate::context::{Replaced, Survey, last_summary};
use crate::model::{ModelErrorKind, ModelEvent};
use crate::runtime::CompactionPolicy;

/// How many summaries are asked for until one of them has to help.
const TRIES: u32 = 2;
/// What is shorter than this, in bytes, is not summarised by itself: it is not what fills a window.
const WORTH_IT: usize = 4 << 10;
/// What there is to know about summaries besides the items.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    running: Option<Compaction>,
    /// How many questions were asked for summaries so far: their numbers.
    requests: u64,
    /// How many of them have not helped so far.
    tries: u32,
    /// Why the last request was too long, until a summary has made it shorter.
    overflow: Option<Failure>,
    policy: CompactionPolicy,
    window: Option<u64>,
}

/// A summary that is being made.
#[derive(Debug)]
struct Compaction {
    /// Its number, and from the second on that of its question.
    request: u64,
    trigger: CompactionTrigger,
    order: Option<Order>,
    survey: Survey,
    answer: Option<Text>,
    /// How many times the question was sent and failed in a way that may pass.
    failures: u32,
}

/// What somebody has asked for.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) reply: ReplyId,
    pub(crate) wanted: Wanted,
    pub(crate) guidance: Option<String>,
}

/// What shall come of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// A summary in the place of what was said.
    Summary,
    /// A summary to look at.
    Preview,
    /// The last summary shall count no longer.
    Undo,
}

impl Compaction {
    fn wants(&self, wanted: Wanted) -> bool {
        let order = self.order.as_ref();
        order.is_some_and(|order| order.wanted == wanted)
    }
}

impl SessionMachine {
    /// Sets when summaries are made and how much the model can read; counts at once.
    pub(crate) const fn set_compaction(&mut self, policy: CompactionPolicy, window: Option<u64>) {
        self.compaction.policy = policy;
        self.compaction.window = window;
    }

    /// Whether a summary is being made.
    pub(crate) const fn is_compacting(&self) -> bool {
        self.compaction.running.is_some()
    }

    /// Whether that question for a summary is the one that is to be asked or was asked.
    pub(super) fn is_summarising(&self, request: u64) -> bool {
        let running = self.compaction.running.as_ref();
        running.is_some_and(|running| running.request == request)
    }

    /// What the model is asked for a summary.
    pub(crate) fn summary_question(&self) -> Option<String> {
        let running = self.compaction.running.as_ref()?;
        let replaced = Replaced::find(self.history(), self.running_turn())?;
        let order = running.order.as_ref();
        let guidance = order.and_then(|order| order.guidance.as_deref());
        Some(replaced.transcript(guidance, self.room(running, &replaced)))
    }

    /// A new turn has its tries again.
    pub(super) fn compaction_of_new_turn(&mut self) {
        (self.compaction.tries, self.compaction.overflow) = (0, None);
    }

    /// Looks at what an agent is told; takes what is about the length of its context.
    pub(super) fn watch(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        let active = self.turn.as_mut()?;
        match event {
            AgentEvent::Model {
                request,
                event: ModelEvent::Finished { usage, .. },
            } if active.agent.is_asking(request) => {
                self.measured(usage);
                Some(event)
            }
            AgentEvent::ModelFailed {
                request,
                mut failure,
            } if failure.kind == ModelErrorKind::ContextTooLong
                && active.agent.is_asking(request) =>
            {
                if self.compaction.policy.automatic {
                    active.agent.withdraw(&mut self.scribe);
                    self.compaction.overflow = Some(failure);
                    return None;
                }
                failure.message.push_str(
                    "; conversations are not summarised by themselves: run `openvaala compact`, or choose a model \
                     with a larger window",
                );
                Some(AgentEvent::ModelFailed { request, failure })
            }
            other => Some(other),
        }
    }

    /// Takes note of how much the last request and its answer were.
    fn measured(&mut self, usage: Usage) {
        let input = usage.input_tokens;
        self.state.context_tokens = input.map(|input| input + usage.output_tokens.unwrap_or(0));
        if !self.is_past_share() {
            self.compaction.tries = 0;
        }
    }

    fn is_past_share(&self) -> bool {
        let (Some(tokens), Some(window)) = (self.state.context_tokens, self.compaction.window)
        else {
            return false;
        };
        let share = u128::from(self.compaction.policy.share_percent);
        u128::from(tokens) * 100 >= u128::from(window) * share
    }

    /// Whether the next request has to wait for a summary, which is begun if there is none.
    pub(super) fn compact_first(&mut self, tick: &mut Tick<'_>) -> bool {
        if self.is_compacting() {
            return true;
        }
        let trigger = if self.compaction.overflow.is_some() {
            CompactionTrigger::Overflow
        } else if self.compaction.policy.automatic && self.is_past_share() {
            CompactionTrigger::Share
        } else if self.has_to_summarise() {
            CompactionTrigger::Inherited
        } else {
            return false;
        };
        let replaced = Replaced::find(self.history(), self.running_turn());
        let is_worth_it = replaced.is_some_and(|replaced| {
            trigger == CompactionTrigger::Overflow || replaced.size() >= WORTH_IT
        });
        if is_worth_it {
            self.begin_summary(tick, trigger, None);
        } else if trigger == CompactionTrigger::Overflow {
            let why = "there is nothing left to summarise: send less at once";
            self.not_summarised(tick, None, why);
        } else {
            self.has_summarised();
            return false;
        }
        true
    }

    /// Whether what the session was given to begin with waits to be summarised.
    fn has_to_summarise(&self) -> bool {
        let child = self.state.child.as_ref();
        child.is_some_and(|child| child.summarise)
    }

    pub(super) fn has_summarised(&mut self) {
        if let Some(child) = &mut self.state.child {
            child.summarise = false;
        }
    }

    /// Does what somebody has asked for, if nothing runs.
    pub(super) fn compact(&mut self, tick: &mut Tick<'_>, order: Order) {
        match self.not_now() {
            Some(refusal) => {
                let reply = order.reply;
                self.scribe.journal.now(Effect::Refuse { reply, refusal });
            }
            None => {
                self.compaction.tries = 0;
                let is_known = order.wanted == Wanted::Undo && self.scribe.has_context();
                self.begin_summary(tick, CompactionTrigger::Manual, Some(order));
                if is_known {
                    self.undo_summary(tick);
                }
            }
        }
    }

    /// Takes the last summary back; what is before it is read when something is asked the next time.
    fn undo_summary(&mut self, tick: &mut Tick<'_>) {
        let Some(order) = self.compaction.running.take().and_then(|it| it.order) else {
            return;
        };
        let reply = order.reply;
        let Some((summary, _)) = last_summary(self.history().iter()) else {
            let why = "there is no summary to take back".to_owned();
            let refusal = Refusal::NotCompacted(why);
            self.scribe.journal.now(Effect::Refuse { reply, refusal });
            return;
        };
        self.scribe.append(tick, None, &SummaryUndone::new(summary));
        self.scribe.lose_context();
        self.state.context_tokens = None;
        self.save(tick);
        self.scribe
            .journal
            .then(Effect::Uncompacted { reply, summary });
    }

    fn not_now(&self) -> Option<Refusal> {
        if self.broken {
            let why = "an earlier change could not be written".to_owned();
            return Some(Refusal::NotWritten(why));
        }
        (self.turn.is_some() || self.is_compacting()).then_some(Refusal::Busy)
    }

    fn begin_summary(
        &mut self,
        tick: &mut Tick<'_>,
        trigger: CompactionTrigger,
        order: Option<Order>,
    ) {
        if self.compaction.tries >= TRIES {
            let why = format!("{TRIES} summaries did not make it shorter");
            self.not_summarised(tick, order, &why);
            return;
        }
        self.compaction.requests += 1;
        let request = self.compaction.requests;
        self.compaction.running = Some(Compaction {
            request,
            trigger,
            order,
            survey: Survey::default(),
            answer: None,
            failures: 0,
        });
        let load = !self.scribe.has_context();
        self.scribe.journal.then(Effect::Survey { request, load });
    }

    /// Ends a summary that does not come, and the turn that waits for it.
    fn fail_summary(&mut self, tick: &mut Tick<'_>, why: &str) {
        let order = self
            .compaction
            .running
            .take()
            .and_then(|running| running.order);
        self.scribe.journal.now(Effect::DropModel);
        self.not_summarised(tick, order, why);
    }

    fn not_summarised(&mut self, tick: &mut Tick<'_>, order: Option<Order>, why: &str) {
        if let Some(Order { reply, .. }) = order {
            // What the tries have cost is written down all the same.
            self.save(tick);
            let refusal = Refusal::NotCompacted(why.to_owned());
            self.scribe.journal.then(Effect::Refuse { reply, refusal });
            return;
        }
        let advice = "choose a model with a larger window, or begin a new conversation";
        let message = match self.compaction.overflow.take() {
            Some(failure) => {
                let message = failure.message.clone();
                let model = self.state.model.clone();
                let error = ModelError::new(model, failure.message, failure.status, 1);
                self.scribe.append(tick, self.running_turn(), &error);
                format!(
                    "the conversation is too long for the model and could not be summarised: {why}; {advice} ({message})"
                )
            }
            None if self.has_to_summarise() => {
                format!("what the agent was to begin with could not be summarised: {why}")
            }
            None => format!(
                "the conversation has reached {} % of the model's window and could not be summarised: {why}; {advice}, or \
                 check the window that is configured for it",
                self.compaction.policy.share_percent
            ),
        };
        self.end_turn(
            tick,
            Some(Ending::failed(TurnFailureKind::Context, message)),
        );
    }

    /// Gives a summary up that nobody waits for any longer, or can be had.
    pub(super) fn drop_summary(&mut self, refusal: &Refusal) {
        self.compaction.overflow = None;
        let Some(running) = self.compaction.running.take() else {
            return;
        };
        self.scribe.journal.now(Effect::DropModel);
        if let Some(Order { reply, .. }) = running.order {
            let refusal = refusal.clone();
            self.scribe.journal.now(Effect::Refuse { reply, refusal });
        }
    }
}

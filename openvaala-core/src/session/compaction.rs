//! When a session's context is summarised, and what becomes of it.
//!
//! A summary stands at the beginning of later requests in the place of what was said before; the old items stay in the
//! log. It is made between two requests of a turn, or while no turn runs. Until it is written nothing has changed: an
//! interrupt or a crash leaves the session as it was.

use std::time::Duration;

use openvaala_protocol::conversation::TurnFailureKind;
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{
    CompactionTrigger, ContextSummary, Instructions, ModelError, RetryNotice, SummaryUndone,
};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;

use super::machine::{Effect, Refusal, ReplyId, SessionMachine};
use crate::agent::{AgentEvent, Ending, Failure, Tick};
use crate::context::{Replaced, Survey, last_summary};
use crate::model::{ModelErrorKind, ModelEvent, PartKind, StopReason};
use crate::runtime::CompactionPolicy;

/// How many summaries are asked for until one of them has to help.
const TRIES: u32 = 2;
/// What is shorter than this, in bytes, is not summarised by itself: it is not what fills a window.
const WORTH_IT: usize = 4 << 10;
/// The most bytes of older messages of the user that are kept word for word.
const MESSAGES: usize = 64 << 10;
/// The most bytes of a transcript for a model whose window is not known.
const TRANSCRIPT: usize = 400 << 10;
/// The most bytes of a summary.
const SUMMARY: usize = 256 << 10;

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

/// The text of an answer while it comes.
#[derive(Debug, Default)]
struct Text {
    parts: Vec<u32>,
    text: String,
}

impl Compaction {
    fn wants(&self, wanted: Wanted) -> bool {
        let order = self.order.as_ref();
        order.is_some_and(|order| order.wanted == wanted)
    }
}

impl Text {
    fn take(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Started {
                part,
                kind: PartKind::Text,
            } => self.parts.push(part),
            ModelEvent::Delta { part, text }
                if self.parts.contains(&part) && self.text.len() <= SUMMARY =>
            {
                self.text.push_str(&text);
            }
            _ => {}
        }
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
            return false;
        }
        true
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

    /// Everything that a summary needs besides the items is there, or can't be had.
    pub(super) fn surveyed(
        &mut self,
        tick: &mut Tick<'_>,
        request: u64,
        survey: Result<Survey, String>,
    ) {
        if !self.is_summarising(request) {
            return;
        }
        let mut survey = match survey {
            Ok(survey) => survey,
            // A turn has all it needs already; only the instructions are those that it began with.
            Err(_) if self.turn.is_some() => Survey::default(),
            Err(message) => {
                self.fail_summary(tick, &message);
                return;
            }
        };
        if let Some(context) = survey.context.take() {
            self.scribe.load(context);
        }
        if let Some(running) = &mut self.compaction.running {
            running.survey = survey;
            if running.wants(Wanted::Undo) {
                self.undo_summary(tick);
                return;
            }
        }
        if Replaced::find(self.history(), self.running_turn()).is_none() {
            self.fail_summary(tick, "nothing was done since the last summary");
            return;
        }
        self.ask_for_summary(Duration::ZERO);
    }

    /// Asks a new question, after that time.
    fn ask_for_summary(&mut self, wait: Duration) {
        self.compaction.requests += 1;
        let request = self.compaction.requests;
        if let Some(running) = &mut self.compaction.running {
            running.request = request;
            running.answer = Some(Text::default());
            if running.failures == 0 {
                self.compaction.tries += 1;
            }
            self.scribe
                .journal
                .then(Effect::AskSummary { request, wait });
        }
    }

    /// Something of the answer, or what went wrong with the question.
    pub(super) fn summary_event(
        &mut self,
        tick: &mut Tick<'_>,
        request: u64,
        event: Result<ModelEvent, Failure>,
    ) {
        let Some(running) = &mut self.compaction.running else {
            return;
        };
        if running.request != request {
            return;
        }
        match event {
            Ok(ModelEvent::Finished { reason, usage }) => {
                let text = running.answer.take().unwrap_or_default().text;
                self.used(usage);
                match reason {
                    StopReason::Refused => self.fail_summary(tick, "the model refused to write it"),
                    _ => self.summarised(tick, text.trim().to_owned()),
                }
            }
            Ok(event) => {
                if let Some(answer) = &mut running.answer {
                    answer.take(event);
                }
            }
            Err(failure) => self.summary_failed(tick, failure),
        }
    }

    fn summary_failed(&mut self, tick: &mut Tick<'_>, failure: Failure) {
        if failure.kind == ModelErrorKind::ContextTooLong {
            self.try_again(tick, &failure.message);
            return;
        }
        let chance = tick.id();
        let Some(running) = &mut self.compaction.running else {
            return;
        };
        running.failures += 1;
        let (attempt, asked_for) = (running.failures, failure.retry_after);
        let wait = self
            .limits
            .retry
            .wait(failure.kind, attempt, asked_for, chance);
        let Some(wait) = wait else {
            self.fail_summary(tick, &failure.message);
            return;
        };
        if let Some(turn) = self.running_turn() {
            let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            let next_at = Timestamp::from_millis(tick.now.as_millis().saturating_add(millis));
            let notice = RetryNotice::new(failure.message, attempt, next_at);
            self.scribe.append(tick, Some(turn), &notice);
        }
        self.ask_for_summary(wait);
    }

    /// Asks for another summary, or gives up.
    fn try_again(&mut self, tick: &mut Tick<'_>, why: &str) {
        if self.compaction.tries >= TRIES {
            self.fail_summary(tick, why);
            return;
        }
        if let Some(running) = &mut self.compaction.running {
            running.failures = 0;
        }
        self.ask_for_summary(Duration::ZERO);
    }

    /// Takes a summary if it is one, and writes it down.
    fn summarised(&mut self, tick: &mut Tick<'_>, text: String) {
        if text.is_empty() {
            self.try_again(tick, "the model's summary is empty");
            return;
        }
        let Some(summary) = self.shorter(text) else {
            let why = "the model's summary is no shorter than what it stands for";
            self.try_again(tick, why);
            return;
        };
        let Some(running) = self.compaction.running.take() else {
            return;
        };
        let order = running.order;
        let is_preview = |order: &&Order| order.wanted == Wanted::Preview;
        if let Some(order) = order.as_ref().filter(is_preview) {
            self.save(tick);
            let (reply, item) = (order.reply, None);
            self.scribe.journal.then(Effect::Compacted {
                reply,
                item,
                summary: Box::new(summary),
            });
            return;
        }
        let turn = self.running_turn();
        let instructions = running.survey.instructions.unwrap_or_else(|| {
            let replaced = Replaced::find(self.history(), turn);
            replaced.map_or_else(Vec::new, |replaced| replaced.instructions())
        });
        let item = self.write_summary(tick, turn, &summary, instructions);
        if let Some(Order { reply, .. }) = order {
            self.scribe.journal.then(Effect::Compacted {
                reply,
                item: Some(item),
                summary: Box::new(summary),
            });
        }
    }

    fn write_summary(
        &mut self,
        tick: &mut Tick<'_>,
        turn: Option<TurnId>,
        summary: &ContextSummary,
        instructions: Vec<Instructions>,
    ) -> ItemId {
        let item = self.scribe.append(tick, turn, summary);
        self.scribe.forget(summary.up_to);
        self.instruct(tick, turn, instructions);
        self.state.context_tokens = None;
        self.compaction.overflow = None;
        self.save(tick);
        self.scribe.journal.now(Effect::Forgotten);
        item
    }

    /// The summary of that text with all that is kept beside it; `None` if it is no shorter than what it stands for.
    fn shorter(&self, text: String) -> Option<ContextSummary> {
        let running = self.compaction.running.as_ref()?;
        let replaced = Replaced::find(self.history(), self.running_turn())?;
        // A quarter of the window, at four bytes a token.
        let window = self
            .compaction
            .window
            .map(|tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
        let room = window.map_or(MESSAGES, |window| window.min(MESSAGES));
        let mut summary = replaced.summarised(text, &running.survey, room);
        summary.trigger = Some(running.trigger);
        summary.guidance = running
            .order
            .as_ref()
            .and_then(|order| order.guidance.clone());
        summary.tokens_before = self.state.context_tokens;
        replaced.is_shortened_by(&summary).then_some(summary)
    }

    /// How many bytes of a transcript the model can read; half as many when it was too much before.
    fn room(&self, running: &Compaction, replaced: &Replaced<'_>) -> usize {
        // Nearly two thirds of the window, at three bytes a token: those of other scripts have fewer.
        let window = self
            .compaction
            .window
            .map(|tokens| tokens.saturating_mul(2));
        let window = window.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut room = window.unwrap_or(TRANSCRIPT);
        if running.trigger == CompactionTrigger::Overflow {
            room = room.min(replaced.size() / 2);
        }
        room >> self.compaction.tries.saturating_sub(1)
    }

    fn used(&mut self, usage: Usage) {
        match &mut self.turn {
            Some(active) => active.agent.add_usage(usage),
            None => self.state.usage = self.state.usage.plus(usage),
        }
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

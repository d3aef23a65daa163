//! How a summary is asked for, judged and written down.

use std::time::Duration;

use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{CompactionTrigger, ContextSummary, Instructions, RetryNotice};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;

use super::{Compaction, Order, TRIES, Wanted};
use crate::agent::{Failure, Tick};
use crate::context::{Replaced, Survey};
use crate::model::{ModelErrorKind, ModelEvent, PartKind, StopReason};
use crate::session::event::Effect;
use crate::session::machine::SessionMachine;

/// The most bytes of older messages of the user that are kept word for word.
const MESSAGES: usize = 64 << 10;
/// The most bytes of a transcript for a model whose window is not known.
const TRANSCRIPT: usize = 400 << 10;
/// The most bytes of a summary.
const SUMMARY: usize = 256 << 10;

/// The text of an answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Text {
    parts: Vec<u32>,
    text: String,
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
    /// Everything that a summary needs besides the items is there, or can't be had.
    pub(in crate::session) fn surveyed(
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
    pub(in crate::session) fn summary_event(
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
        self.has_summarised();
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
    pub(super) fn room(&self, running: &Compaction, replaced: &Replaced<'_>) -> usize {
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
}

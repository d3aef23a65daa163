//! How long questions wait for somebody.

use std::time::Duration;

use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{ApprovalState, ToolResultStatus};
use openvaala_protocol::time::Timestamp;

use super::event::{Alarm, ToolOutcome};
use super::machine::{Agent, Phase};
use super::scribe::{Scribe, Tick};
use crate::session::Effect;

impl Agent {
    /// Has somebody call when the open questions have waited long enough, counted from when they were asked.
    pub(super) fn wait_for_answers(&self, scribe: &mut Scribe, tick: &Tick<'_>) {
        let Some(limit) = self.gate.answer_within() else {
            return;
        };
        for (place, _) in self.questions() {
            scribe.journal.now(Effect::Alarm {
                after: limit.saturating_sub(between(place.started_at, tick.now)),
                turn: self.turn,
                alarm: Alarm::Unanswered { question: place.id },
            });
        }
    }

    /// Denies a call of which nobody has said in time whether it may run.
    pub(super) fn expire(&mut self, scribe: &mut Scribe, tick: &mut Tick<'_>, id: ItemId) {
        let Some(limit) = self.gate.answer_within() else {
            return;
        };
        // The runtime is about to end: the next start tells it as well.
        if self.keeps_questions() {
            return;
        }
        let Phase::Tools(calls) = &mut self.phase else {
            return;
        };
        let mut questions = calls
            .iter_mut()
            .filter_map(|call| call.question.take_if(|question| question.place.id == id));
        let Some(question) = questions.next() else {
            return;
        };
        let why = format!("nobody answered within {}", in_words(limit));
        let mut approval = question.approval;
        approval.state = ApprovalState::Expired;
        approval.message = Some(why.clone());
        scribe.write(question.place, Some(self.turn), &approval, tick.now);
        let why =
            format!("not run: the user was asked, and {why}. Do without, or ask again later.");
        let outcome = ToolOutcome::said(ToolResultStatus::Failed, why);
        self.tool_ended(scribe, tick, question.call.result, outcome);
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    let millis = to.as_millis().saturating_sub(from.as_millis());
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn in_words(time: Duration) -> String {
    let (number, unit) = match time.as_secs() {
        0 => return format!("{} milliseconds", time.as_millis()),
        seconds if seconds.is_multiple_of(3600) => (seconds / 3600, "hour"),
        seconds if seconds.is_multiple_of(60) => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

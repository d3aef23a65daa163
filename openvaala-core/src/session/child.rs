//! What a session does as the child of another one: it reports how its turns end, keeps to its budget, and can be closed.
//!
//! A report is part of the session's state from the commit that ends the turn until whoever has started the session has it on
//! disk, so a crash in between loses none; it has the same id each time, so none is read twice.

use openvaala_executor::output::clip_text;
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{AssistantMessage, InterruptionCause};

use super::machine::SessionMachine;
use crate::agent::{AgentEvent, Limits, Tick, spent};
use crate::dao::record::{Report, State, TurnState};

/// The most bytes of an answer that a report has; the whole of it is in the session's log.
const MAX_REPORT: usize = 16 << 10;

impl SessionMachine {
    /// How far the turn that begins may go.
    pub(super) fn limits(&self) -> Limits {
        let budget = self
            .state
            .child
            .as_ref()
            .and_then(|child| child.token_budget);
        Limits {
            tokens: budget.map(|budget| budget.saturating_sub(spent(self.state.usage))),
            ..self.limits
        }
    }

    /// Keeps how a turn has ended for whoever has started the session; the caller saves the state.
    pub(super) fn report_end(&mut self, tick: &mut Tick<'_>, turn: &TurnState) {
        let text = match &turn.failure {
            Some(failure) => failure.message.clone(),
            None => self.last_words(turn.id),
        };
        let Some(child) = self.state.child.as_mut().filter(|child| !child.closed) else {
            return;
        };
        child.reports.push(Report {
            item_id: ItemId::from_uuid(tick.id()),
            ended: turn.status,
            text: clip_text(&text, MAX_REPORT).text,
        });
    }

    /// Counts and reports turns that have ended without the session's state knowing it; says whether there were any.
    ///
    /// The state of a turn is written before that of its session, so a crash may leave the one without the other.
    pub(super) fn note_unknown_ends(&mut self, tick: &mut Tick<'_>, turns: &[TurnState]) -> bool {
        let (active, known) = (self.state.active_turn, self.state.updated_at);
        let is_unknown = |turn: &&TurnState| {
            turn.ended_at.is_some() && (Some(turn.id) == active || turn.started_at > known)
        };
        let mut any = false;
        for turn in turns.iter().filter(is_unknown) {
            any = true;
            self.state.usage = self.state.usage.plus(turn.usage);
            self.report_end(tick, turn);
        }
        any
    }

    /// What the agent said last in a turn.
    fn last_words(&self, turn: TurnId) -> String {
        let of_turn = self.history().iter().rev();
        let mut said = of_turn
            .filter(|item| item.head().turn == Some(turn))
            .filter_map(|item| item.body::<AssistantMessage>()?.ok());
        said.next().map(|message| message.text).unwrap_or_default()
    }

    pub(super) fn report_taken(&mut self, tick: &Tick<'_>, report: ItemId) {
        let Some(child) = &mut self.state.child else {
            return;
        };
        let before = child.reports.len();
        child.reports.retain(|known| known.item_id != report);
        if child.reports.len() != before && !self.broken {
            self.save(tick);
        }
    }

    /// Takes note of the messages that the result of a call hands to the model: they are inputs of the turn.
    pub(super) fn hear(&mut self, event: &AgentEvent) {
        let AgentEvent::ToolEnded { result, outcome } = event else {
            return;
        };
        let Some(active) = self
            .turn
            .as_mut()
            .filter(|active| !outcome.messages.is_empty() && active.agent.is_open(*result))
        else {
            return;
        };
        for message in &outcome.messages {
            active.state.inputs.push(*message);
            self.inputs.take(*message);
        }
        self.scribe.journal.state(State::Turn(active.state.clone()));
    }

    /// Takes no more input, drops what waits, and interrupts what runs.
    pub(super) fn close(&mut self, tick: &mut Tick<'_>) {
        self.stopped = true;
        if let Some(child) = &mut self.state.child {
            child.closed = true;
            child.reports.clear();
        }
        let waiting = self.queue.extract(|_| true);
        for input in waiting {
            self.inputs.withdraw(input.item_id);
            self.withdrawn.push(input.item_id);
        }
        self.save(tick);
        self.interrupt(tick, None, InterruptionCause::Requested);
    }
}

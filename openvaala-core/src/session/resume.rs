//! A turn that goes on after a restart, because one of its questions may still be answered.

use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{Approval, ApprovalState, Item};

use super::event::Effect;
use super::machine::{ActiveTurn, SessionMachine};
use crate::agent::{Agent, LeftQuestion, Place, Tick};
use crate::dao::record::{State, TurnState};

impl SessionMachine {
    /// The open turn at the end of the log, if a call of it waits for an answer.
    pub(super) fn waiting_turn(&self, turns: &[TurnState]) -> Option<TurnId> {
        let mut newest = self.history().iter().rev();
        let last = newest.find_map(|item| item.head().turn)?;
        let is_open = |turn: &TurnState| turn.id == last && turn.ended_at.is_none();
        let is_waiting = turns.iter().any(is_open) && !self.left_questions(last).is_empty();
        is_waiting.then_some(last)
    }

    /// The pending questions of a turn whose calls have no results, with these calls' items.
    fn left_questions(&self, turn: TurnId) -> Vec<(ItemId, Place, Approval)> {
        let open = self.open_calls(turn);
        let pending = self.pending_questions(turn).into_iter();
        let of_open = |(place, approval): (Place, Approval)| {
            let call = open.iter().find(|(item, _)| *item == approval.call)?;
            Some((call.0, place, approval))
        };
        pending.filter_map(of_open).collect()
    }

    /// The questions of a turn that nobody has answered.
    pub(super) fn pending_questions(&self, turn: TurnId) -> Vec<(Place, Approval)> {
        let of_turn = |item: &&Item| item.head().turn == Some(turn);
        self.history()
            .iter()
            .filter(of_turn)
            .filter_map(|item| Some((Place::of(item.head()), item.body::<Approval>()?.ok()?)))
            .filter(|(_, approval)| approval.state == ApprovalState::Pending)
            .collect()
    }

    /// Goes on with a turn: calls that ran get a result that says so, those that are asked wait again.
    ///
    /// Says whether anything was written.
    pub(super) fn resume(&mut self, tick: &mut Tick<'_>, mut turn: TurnState) -> bool {
        let changed = self.name_inputs(&mut turn);
        let mut left = self.left_questions(turn.id);
        let mut questions = Vec::new();
        let mut ran = Vec::new();
        for (item, call) in self.open_calls(turn.id) {
            let place = left.iter().position(|(asked, ..)| *asked == item);
            match place.map(|at| left.swap_remove(at)) {
                Some((_, place, approval)) => questions.push(LeftQuestion {
                    item,
                    call,
                    result: self.scribe.place(tick),
                    place,
                    approval,
                }),
                None => ran.push((item, call.call_id)),
            }
        }
        let changed = changed || !ran.is_empty();
        for (item, call_id) in ran {
            self.answer_lost_call(tick, turn.id, item, call_id);
        }
        let progress = (turn.steps, turn.usage);
        let agent = Agent::resume(
            turn.id,
            turn.model.clone(),
            self.limits(),
            progress,
            questions,
        );
        let id = turn.id;
        if changed {
            self.scribe.journal.state(State::Turn(turn.clone()));
        }
        self.state.active_turn = Some(id);
        self.turn = Some(ActiveTurn {
            state: turn,
            agent,
            agent_name: self.state.agent.clone(),
        });
        self.scribe.journal.then(Effect::Prepare {
            turn: id,
            load: true,
        });
        changed
    }

    /// Writes down how far the turn has come when it waits for answers: it may go on after a restart.
    pub(super) fn note_progress(&mut self) {
        let Some(active) = &mut self.turn else { return };
        let steps = active.agent.steps();
        if active.agent.questions().next().is_some() && active.state.steps != steps {
            (active.state.steps, active.state.usage) = (steps, active.agent.usage());
            self.scribe.journal.state(State::Turn(active.state.clone()));
        }
    }

    /// Whether only answers are waited for, and the runtime is about to end.
    pub(crate) fn is_parked(&self) -> bool {
        let turn = self.turn.as_ref();
        turn.is_some_and(|active| active.agent.is_parked())
    }

    /// Takes the answers that came before the tools were there.
    pub(super) fn take_early_answers(&mut self, tick: &mut Tick<'_>) {
        if self.is_resuming() {
            return;
        }
        for (reply, answer) in std::mem::take(&mut self.early_answers) {
            self.answer(tick, reply, answer);
        }
    }

    /// Whether a turn goes on after a restart and has no tools yet.
    pub(super) fn is_resuming(&self) -> bool {
        let turn = self.turn.as_ref();
        turn.is_some_and(|active| active.agent.is_resuming())
    }
}

//! What is done with a session that was left in the middle of a turn.

use std::collections::BTreeSet;

use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{TurnFailure, TurnFailureKind, TurnStatus};
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{
    Interruption, InterruptionCause, Item, ItemKind, ToolCall, ToolResult, ToolResultStatus,
};
use openvaala_protocol::usage::Usage;

use super::approvals::NOT_ANSWERED;
use super::inputs::taken_by;
use super::machine::SessionMachine;
use crate::agent::Tick;
use crate::dao::record::{State, TurnState};

impl SessionMachine {
    /// Ends the turns that were left open, answers their open calls, and drops inputs that were taken.
    ///
    /// Nothing that has an effect outside is started again. A turn ends `interrupted`, or `failed` where the
    /// reason is that the log could not be written. A turn that waits for somebody's answer goes on after a restart.
    pub(super) fn recover(
        &mut self,
        tick: &mut Tick<'_>,
        turns: Vec<TurnState>,
        failure: Option<String>,
    ) {
        let mut changed = self.note_unknown_ends(tick, &turns);
        let stateless = self.turns_without_state(&turns);
        let waiting = self.waiting_turn(&turns).filter(|_| failure.is_none());
        let open = turns
            .into_iter()
            .filter(|turn| turn.status == TurnStatus::Running);
        let mut resumed = None;
        for turn in open.chain(stateless) {
            if Some(turn.id) == waiting {
                resumed = Some(turn);
                continue;
            }
            changed = true;
            self.end_left_turn(tick, turn, failure.clone());
        }
        let inputs = &self.inputs;
        changed |= self.queue.drop_taken(|id| inputs.contains(id));
        if let Some(turn) = resumed {
            changed |= self.resume(tick, turn);
            self.queue.held = false;
            if changed {
                self.save(tick);
            }
        } else if self.state.active_turn.take().is_some() || changed {
            self.queue.turn_ended();
            self.queue.held = failure.is_some();
            self.save(tick);
        } else if failure.is_none() {
            // A held queue is released by a restart.
            self.queue.held = false;
        }
    }

    fn end_left_turn(&mut self, tick: &mut Tick<'_>, mut turn: TurnState, failure: Option<String>) {
        self.name_inputs(&mut turn);
        let unanswered = self.take_questions_back(tick, turn.id);
        for (item, ToolCall { call_id, .. }) in self.open_calls(turn.id) {
            if unanswered.contains(&item) {
                let status = ToolResultStatus::Interrupted;
                let content = vec![Content::text(NOT_ANSWERED)];
                let result = ToolResult::new(item, call_id, status, content);
                self.scribe.append(tick, Some(turn.id), &result);
            } else {
                self.answer_lost_call(tick, turn.id, item, call_id);
            }
        }
        turn.ended_at = Some(tick.now);
        if let Some(message) = failure {
            turn.status = TurnStatus::Failed;
            turn.failure = Some(TurnFailure {
                kind: TurnFailureKind::Storage,
                message,
            });
        } else {
            turn.status = TurnStatus::Interrupted;
            let crash = Interruption::new(InterruptionCause::Crash);
            self.scribe.append(tick, Some(turn.id), &crash);
        }
        self.state.usage = self.state.usage.plus(turn.usage);
        self.report_end(tick, &turn);
        self.scribe.journal.state(State::Turn(turn));
    }

    /// Names all that was said to a turn: an input is written before the state that names it. Says whether one was missing.
    pub(super) fn name_inputs(&mut self, turn: &mut TurnState) -> bool {
        let known = turn.inputs.len();
        for input in self.inputs_of(turn.id) {
            if !turn.inputs.contains(&input) {
                turn.inputs.push(input);
            }
            self.inputs.take(input);
        }
        turn.inputs.len() > known
    }

    /// Answers a call that may have run when the runtime ended.
    pub(super) fn answer_lost_call(
        &mut self,
        tick: &mut Tick<'_>,
        turn: TurnId,
        item: ItemId,
        call_id: String,
    ) {
        let why = "the runtime ended while this ran: what it did is not known";
        let content = vec![Content::text(why)];
        let result = ToolResult::new(item, call_id, ToolResultStatus::Unknown, content);
        self.scribe.append(tick, Some(turn), &result);
    }

    /// What was said to a turn.
    fn inputs_of(&self, turn: TurnId) -> Vec<ItemId> {
        let of_turn = |item: &&Item| item.head().turn == Some(turn);
        let items = self.history().iter().filter(of_turn);
        items.flat_map(taken_by).collect()
    }

    /// Calls of a turn that have no result.
    pub(super) fn open_calls(&self, turn: TurnId) -> Vec<(ItemId, ToolCall)> {
        let of_turn = || {
            self.history()
                .iter()
                .filter(|item| item.head().turn == Some(turn))
        };
        let answered: BTreeSet<ItemId> = of_turn()
            .filter_map(|item| item.body::<ToolResult>()?.ok())
            .map(|result| result.call)
            .collect();
        of_turn()
            .filter(|item| !answered.contains(&item.head().id))
            .filter_map(|item| Some((item.head().id, item.body::<ToolCall>()?.ok()?)))
            .collect()
    }

    /// The turns at the end of the log whose states never got there, in their order.
    ///
    /// Items are written before states, so a crash between the two leaves turns whose states are missing: the one that the
    /// last message has begun, and those before it that began and ended in the same commit. A crash in a recovery leaves
    /// what that has added.
    fn turns_without_state(&self, known: &[TurnState]) -> Vec<TurnState> {
        let is_open = |turn: &&TurnState| turn.ended_at.is_none();
        // What was changed between turns belongs to none of them, and may come after the last.
        let of_turn = |item: &&Item| item.head().turn.is_some();
        let last = self.history().iter().rev().find(of_turn);
        let is_cut = last.is_some_and(is_cut_off);
        if !is_cut && !known.iter().any(|turn| is_open(&turn)) {
            return Vec::new();
        }
        let mut turns: Vec<TurnState> = Vec::new();
        for id in self
            .history()
            .iter()
            .rev()
            .filter_map(|item| item.head().turn)
        {
            match known.iter().find(|turn| turn.id == id) {
                Some(turn) if is_open(&turn) => {}
                Some(_) => break,
                None if turns.iter().any(|turn| turn.id == id) => {}
                None => turns.extend(self.turn_of_items(id)),
            }
        }
        turns.reverse();
        turns
    }

    /// What the items of a turn tell of its state.
    fn turn_of_items(&self, id: TurnId) -> Option<TurnState> {
        let mut items = self.history().iter();
        let first = items.find(|item| item.head().turn == Some(id))?;
        Some(TurnState {
            id,
            session_id: self.state.id,
            status: TurnStatus::Running,
            failure: None,
            inputs: self.inputs_of(id),
            output_schema: None,
            model: self.state.model.clone(),
            executors: Vec::new(),
            steps: 0,
            usage: Usage::default(),
            started_at: first.head().started_at,
            ended_at: None,
            last_seq: 0,
        })
    }
}

/// Whether an item may be the last one of a commit that has begun a turn; that waits for its commit before it does more.
fn is_cut_off(item: &Item) -> bool {
    matches!(
        item.head().kind,
        ItemKind::UserMessage | ItemKind::AgentMessage | ItemKind::Interruption
    )
}

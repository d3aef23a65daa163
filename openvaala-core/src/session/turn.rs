//! How turns of a session begin, take what is said to them, and end.

use std::collections::BTreeMap;

use openvaala_protocol::conversation::{TurnFailureKind, TurnStatus};
use openvaala_protocol::id::TurnId;
use openvaala_protocol::item::{
    AgentMessage, Instructions, Interruption, InterruptionCause, UserMessage,
};
use openvaala_protocol::usage::Usage;

use super::event::{Effect, Refusal};
use super::machine::{ActiveTurn, SessionMachine};
use crate::agent::{Agent, Ending, Tick};
use crate::dao::record::{QueuedInput, State, TurnState};

impl SessionMachine {
    pub(super) fn start_turn(&mut self, tick: &mut Tick<'_>, input: QueuedInput) {
        let id = TurnId::from_uuid(tick.id());
        self.write_input(tick, id, &input, false);
        let state = TurnState {
            id,
            session_id: self.state.id,
            status: TurnStatus::Running,
            failure: None,
            inputs: vec![input.item_id],
            output_schema: input.output_schema,
            model: self.state.model.clone(),
            executors: Vec::new(),
            steps: 0,
            usage: Usage::default(),
            started_at: tick.now,
            ended_at: None,
            last_seq: 0,
        };
        self.state.active_turn = Some(id);
        self.compaction_of_new_turn();
        self.scribe.journal.state(State::Turn(state.clone()));
        let agent = Agent::new(id, self.state.model.clone(), self.limits());
        let agent_name = self.state.agent.clone();
        self.turn = Some(ActiveTurn {
            state,
            agent,
            agent_name,
        });
        self.save(tick);
        let load = !self.scribe.has_context();
        self.scribe.journal.then(Effect::Prepare { turn: id, load });
    }

    /// Writes down the instructions that are new or have changed since they were written last.
    pub(super) fn instruct(
        &mut self,
        tick: &mut Tick<'_>,
        turn: Option<TurnId>,
        instructions: Vec<Instructions>,
    ) {
        let known: BTreeMap<String, Instructions> = self
            .history()
            .iter()
            .filter_map(|item| item.body::<Instructions>()?.ok())
            .map(|instructions| (instructions.path.clone(), instructions))
            .collect();
        for instructions in instructions {
            if known.get(&instructions.path) != Some(&instructions) {
                self.scribe.append(tick, turn, &instructions);
            }
        }
    }

    pub(super) fn take_steers(&mut self, tick: &Tick<'_>) {
        let steers = self.queue.take_steers();
        let Some(active) = self.turn.as_mut().filter(|_| !steers.is_empty()) else {
            return;
        };
        let mut messages = Vec::with_capacity(steers.len());
        active.agent.heard();
        for input in steers {
            active.state.inputs.push(input.item_id);
            messages.push(input);
        }
        let turn = active.state.id;
        self.scribe.journal.state(State::Turn(active.state.clone()));
        for input in messages {
            self.write_input(tick, turn, &input, true);
        }
        self.save(tick);
    }

    /// Writes down what a turn takes.
    fn write_input(&mut self, tick: &Tick<'_>, turn: TurnId, input: &QueuedInput, steer: bool) {
        let (id, content) = (input.item_id, input.content.clone());
        self.inputs.take(id);
        match &input.from {
            None => {
                let message = UserMessage::new(content, steer);
                self.scribe.message(tick, id, turn, &message);
            }
            Some(from) => {
                let message = AgentMessage::new(from.session, content)
                    .with_path(&from.path)
                    .with_ended(from.ended)
                    .with_steer(steer);
                self.scribe.message(tick, id, turn, &message);
            }
        }
    }

    pub(super) fn end_turn(&mut self, tick: &mut Tick<'_>, ending: Option<Ending>) {
        let Some(ending) = ending else { return };
        let Some(ActiveTurn {
            mut state, agent, ..
        }) = self.turn.take()
        else {
            return;
        };
        let id = state.id;
        self.drop_summary(&Refusal::Busy);
        (state.steps, state.usage, state.ended_at) = (agent.steps(), agent.usage(), Some(tick.now));
        self.queue.turn_ended();
        match ending {
            Ending::Completed => state.status = TurnStatus::Completed,
            Ending::Failed(failure) => {
                if let Some(cause) = limit(failure.kind) {
                    self.scribe
                        .append(tick, Some(id), &Interruption::new(cause));
                }
                (state.status, state.failure) = (TurnStatus::Failed, Some(failure));
                self.queue.held = true;
            }
            Ending::Interrupted(cause) => {
                self.scribe
                    .append(tick, Some(id), &Interruption::new(cause));
                state.status = TurnStatus::Interrupted;
                self.queue.held = cause == InterruptionCause::Requested;
            }
        }
        self.state.usage = self.state.usage.plus(state.usage);
        self.state.active_turn = None;
        self.report_end(tick, &state);
        self.scribe.journal.state(State::Turn(state));
        self.save(tick);
        for reply in self.interrupts.drain(..) {
            self.scribe.journal.then(Effect::Interrupted {
                reply,
                turn: Some(id),
            });
        }
    }
}

/// The limit whose passing is that failure.
const fn limit(failure: TurnFailureKind) -> Option<InterruptionCause> {
    match failure {
        TurnFailureKind::RepeatLimit => Some(InterruptionCause::RepeatLimit),
        TurnFailureKind::StepLimit => Some(InterruptionCause::StepLimit),
        _ => None,
    }
}

//! The session as a pure machine: which turn runs, which input is next, what is written before what happens.

use std::collections::HashMap;

use openvaala_protocol::conversation::ModelRef;
use openvaala_protocol::id::{BlobId, ItemId, TurnId};
use openvaala_protocol::item::{InterruptionCause, Item};
use openvaala_protocol::rpc::params::session::SendMode;

use super::compaction::Compactor;
use super::event::{Effect, Event, Refusal, ReplyId, SessionSetup};
use super::inputs::{Inputs, Known};
use super::look_up::LookedUp;
use super::prepare::Nature;
use super::queue::Queue;
use crate::agent::{Agent, AgentEvent, Gate, Limits, Scribe, Tick};
use crate::conversation::{AnswerApproval, Input};
use crate::dao::record::{SessionState, State, TurnState};
use crate::model::{Messages, OutputSchema};

/// One session.
#[derive(Debug)]
pub(crate) struct SessionMachine {
    pub(super) scribe: Scribe,
    pub(super) state: SessionState,
    pub(super) queue: Queue,
    pub(super) inputs: Inputs,
    pub(super) limits: Limits,
    pub(super) turn: Option<ActiveTurn>,
    /// What waits until the log has told which inputs were taken before.
    pub(super) looked_up: Vec<LookedUp>,
    /// Inputs that were withdrawn since the last commit.
    pub(super) withdrawn: Vec<ItemId>,
    pub(super) interrupts: Vec<ReplyId>,
    /// Answers that wait until the turn that was resumed has its tools.
    pub(super) early_answers: Vec<(ReplyId, AnswerApproval)>,
    pub(super) stopped: bool,
    /// Set when a commit has failed: nothing is decided until the state has been read anew.
    pub(super) broken: bool,
    pub(super) compaction: Compactor,
}

/// The turn that runs.
#[derive(Debug)]
pub(super) struct ActiveTurn {
    pub(super) state: TurnState,
    pub(super) agent: Agent,
    /// The name of the agent that works in it: the session may have another one for the next.
    pub(super) agent_name: Option<String>,
}

impl SessionMachine {
    pub(crate) fn new(setup: SessionSetup) -> Self {
        let SessionSetup {
            mut state,
            items,
            has_context,
            inputs,
            limits,
        } = setup;
        state.withdrawn.clear();
        let queue = Queue::new(std::mem::take(&mut state.queue), state.held);
        Self {
            scribe: Scribe::new(state.id, items, state.last_pos, has_context),
            state,
            queue,
            inputs,
            limits,
            turn: None,
            looked_up: Vec::new(),
            withdrawn: Vec::new(),
            interrupts: Vec::new(),
            early_answers: Vec::new(),
            stopped: false,
            broken: false,
            compaction: Compactor::default(),
        }
    }

    /// What the session is for the turn that runs, or for the next one.
    pub(crate) fn nature(&self) -> Nature {
        Nature {
            model: self.model().clone(),
            agent: self.agent_name().map(str::to_owned),
            approval_mode: self.state.approval_mode,
            rules: self.state.approval_rules.clone(),
            child: self.state.child.clone(),
        }
    }

    /// The model that the running turn asks, or the next one.
    pub(crate) fn model(&self) -> &ModelRef {
        let turn = self.turn.as_ref();
        turn.map_or(&self.state.model, |turn| &turn.state.model)
    }

    /// The agent that works in the running turn, or in the next one; `None` is the default one.
    pub(crate) fn agent_name(&self) -> Option<&str> {
        let turn = self.turn.as_ref();
        turn.map_or(&self.state.agent, |turn| &turn.agent_name)
            .as_deref()
    }

    /// What the last answer of the running turn shall follow.
    pub(crate) fn output_schema(&self) -> Option<&OutputSchema> {
        self.turn.as_ref()?.state.output_schema.as_ref()
    }

    /// The items that are known, by `pos`; while a turn asks the model, all that its requests are made from.
    pub(crate) fn history(&self) -> &[Item] {
        self.scribe.history()
    }

    /// The messages of the next request; `blobs` has the large images in base64.
    pub(crate) fn messages(
        &mut self,
        account: Option<&str>,
        blobs: &HashMap<BlobId, String>,
    ) -> Messages {
        let turn = self.turn.as_ref();
        let model = turn.map_or(&self.state.model, |turn| &turn.state.model);
        self.scribe.messages(model, account, blobs)
    }

    pub(crate) fn is_queue_empty(&self) -> bool {
        self.queue.inputs().is_empty()
    }

    /// The turn that runs.
    pub(crate) fn running_turn(&self) -> Option<TurnId> {
        self.turn.as_ref().map(|turn| turn.state.id)
    }

    /// Sets how far a turn goes; counts from the next turn on.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes in one event and says what is to be done.
    pub(crate) fn on_event(&mut self, mut tick: Tick<'_>, event: Event) -> Vec<Effect> {
        self.handle(&mut tick, event);
        if !self.broken {
            self.take_early_answers(&mut tick);
            self.go_on(&mut tick);
        }
        let mut effects = self.scribe.journal.flush(Effect::Commit);
        if effects
            .iter()
            .any(|effect| matches!(effect, Effect::Commit(_)))
        {
            self.withdrawn.clear();
        }
        effects.retain(|effect| self.is_current(effect));
        effects
    }

    /// Whether an effect that waited for a commit is still wanted: the turn may have ended meanwhile.
    fn is_current(&self, effect: &Effect) -> bool {
        let agent = |id: TurnId| {
            let active = self.turn.as_ref().filter(|active| active.state.id == id);
            active.map(|active| &active.agent)
        };
        match effect {
            Effect::Prepare { turn, .. } => agent(*turn).is_some(),
            Effect::AskModel { turn, request } => {
                agent(*turn).is_some_and(|agent| agent.is_asking(*request))
            }
            Effect::StartTool(call) => self
                .turn
                .as_ref()
                .is_some_and(|active| active.agent.is_open(call.result)),
            Effect::Survey { request, .. } | Effect::AskSummary { request, .. } => {
                self.is_summarising(*request)
            }
            _ => true,
        }
    }

    fn handle(&mut self, tick: &mut Tick<'_>, event: Event) {
        match event {
            Event::Send { reply, input } => self.send(tick, reply, input),
            Event::Interrupt { reply, cause } => self.interrupt(tick, reply, cause),
            Event::Stop => self.stopped = true,
            Event::Committed { n } => self.scribe.journal.committed(n),
            Event::CommitFailed { n, message } => self.commit_failed(n, message),
            Event::Prepared {
                turn,
                executors,
                toolbox,
                account,
                instructions,
                context,
                approval,
                ceiling,
            } => {
                let approval = self.policy(approval, ceiling);
                if let Some(active) = self.turn.as_mut().filter(|active| active.state.id == turn) {
                    active.agent.guard(Gate::new(approval, executors.clone()));
                    active.state.executors = executors;
                    if let Some(context) = context {
                        self.scribe.load(context);
                    }
                    self.instruct(tick, Some(turn), instructions);
                    self.agent(tick, AgentEvent::Prepared { toolbox, account });
                }
            }
            Event::NotPrepared { turn, message } => {
                if self.running_turn() == Some(turn) {
                    self.agent(tick, AgentEvent::NotPrepared { message });
                }
            }
            Event::Agent(event) => {
                self.hear(&event);
                self.agent(tick, event);
            }
            Event::Alarm { turn, alarm } => {
                if self.running_turn() == Some(turn) {
                    self.agent(tick, AgentEvent::Alarm(alarm));
                }
            }
            Event::InputsFound { accepted } => self.inputs_found(tick, accepted),
            Event::InputsNotFound { message } => self.inputs_not_found(&message),
            Event::Recover { turns, failure } => self.recover(tick, turns, failure),
            Event::Request { reply, request } => self.request(tick, reply, request),
            Event::Compact(order) => self.compact(tick, order),
            Event::Surveyed { request, survey } => self.surveyed(tick, request, survey),
            Event::Summary { request, event } => self.summary_event(tick, request, event),
            Event::AnswerApproval { reply, answer } => self.answer(tick, reply, answer),
            Event::ReportTaken { report } => self.report_taken(tick, report),
        }
    }

    pub(super) fn send(&mut self, tick: &Tick<'_>, reply: ReplyId, input: Input) {
        let (item_id, mode) = (input.item_id, input.mode);
        if self.broken {
            let refusal = Refusal::NotWritten("an earlier change could not be written".to_owned());
            self.scribe.journal.now(Effect::Refuse { reply, refusal });
            return;
        }
        let known = if self.queue.contains(item_id) {
            Known::Taken
        } else {
            self.inputs.look_up(item_id)
        };
        match known {
            Known::Taken | Known::Withdrawn => {
                self.scribe.journal.then(Effect::Sent {
                    reply,
                    duplicate: true,
                });
                return;
            }
            Known::Unknown => return self.look_up(LookedUp::Send { reply, input }),
            Known::New => {}
        }
        let refusal = match mode {
            SendMode::IdleOnly if self.turn.is_some() || self.is_compacting() => {
                Some(Refusal::Busy)
            }
            _ if self.queue.is_full() => Some(Refusal::QueueFull),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.scribe.journal.now(Effect::Refuse { reply, refusal });
            return;
        }
        let is_read_in_turn = self.turn.is_some() || input.from.is_some();
        let steer = mode == SendMode::Steer && is_read_in_turn;
        // That another agent has ended is no word to go on.
        let is_report = input.from.as_ref().is_some_and(|from| from.ended.is_some());
        self.queue.held &= is_report;
        self.inputs.accept(item_id);
        self.state.approval_mode = input.approval_mode.or(self.state.approval_mode);
        self.queue.push(input, steer, tick.now);
        self.save(tick);
        self.scribe.journal.then(Effect::Sent {
            reply,
            duplicate: false,
        });
    }

    pub(super) fn interrupt(
        &mut self,
        tick: &mut Tick<'_>,
        reply: Option<ReplyId>,
        cause: InterruptionCause,
    ) {
        let Some(active) = &mut self.turn else {
            self.drop_summary(&Refusal::NotCompacted("interrupted".to_owned()));
            if let Some(reply) = reply {
                self.scribe
                    .journal
                    .then(Effect::Interrupted { reply, turn: None });
            }
            return;
        };
        self.interrupts.extend(reply);
        let ending = active.agent.interrupt(&mut self.scribe, tick, cause);
        self.end_turn(tick, ending);
    }

    fn agent(&mut self, tick: &mut Tick<'_>, event: AgentEvent) {
        let Some(event) = self.watch(event) else {
            return;
        };
        let Some(active) = &mut self.turn else { return };
        let ending = active.agent.on_event(&mut self.scribe, tick, event);
        self.note_progress();
        self.end_turn(tick, ending);
    }

    /// Starts what can start: the next model request of the running turn, or the next turn.
    fn go_on(&mut self, tick: &mut Tick<'_>) {
        if self.turn.is_none() && self.is_compacting() {
            return;
        }
        if self.turn.is_none() && !self.stopped {
            if let Some(input) = self.queue.next_turn() {
                self.start_turn(tick, input);
            }
            return;
        }
        if self
            .turn
            .as_ref()
            .is_some_and(|active| active.agent.is_ready())
        {
            if self.compact_first(tick) {
                return;
            }
            self.take_steers(tick);
            if let Some(active) = &mut self.turn {
                let ending = active.agent.ask(&mut self.scribe);
                self.end_turn(tick, ending);
            }
        }
    }

    /// Puts the session's state into the next commit.
    pub(super) fn save(&mut self, tick: &Tick<'_>) {
        self.state.updated_at = self.state.updated_at.max(tick.now);
        self.state.last_pos = self.scribe.last_pos();
        self.state.newest_input = self.inputs.newest();
        self.state.held = self.queue.held && !self.queue.inputs().is_empty();
        let state = self.current();
        self.scribe.journal.state(State::Session(state));
    }

    /// The session's state with what waits.
    pub(super) fn current(&self) -> SessionState {
        let mut state = self.state.clone();
        state.queue = self.queue.inputs().to_vec();
        state.withdrawn.clone_from(&self.withdrawn);
        state
    }

    /// Gives up on everything that rests on the failed commit; the shell reads the log and begins anew.
    fn commit_failed(&mut self, n: u64, message: String) {
        self.broken = true;
        if self.turn.take().is_some() {
            self.scribe.journal.now(Effect::DropModel);
            self.scribe.journal.now(Effect::StopTools);
            self.scribe.journal.now(Effect::AbandonTools);
        }
        let refusal = Refusal::NotWritten(message.clone());
        self.drop_summary(&refusal);
        let mut replies: Vec<ReplyId> = self.interrupts.drain(..).collect();
        let early = std::mem::take(&mut self.early_answers);
        replies.extend(early.iter().map(|(reply, _)| *reply));
        let looked_up = std::mem::take(&mut self.looked_up);
        replies.extend(looked_up.iter().map(LookedUp::reply));
        for effect in self.scribe.journal.failed(n) {
            if let Effect::Sent { reply, .. }
            | Effect::Interrupted { reply, .. }
            | Effect::Answer { reply, .. }
            | Effect::Compacted { reply, .. }
            | Effect::Uncompacted { reply, .. }
            | Effect::ApprovalAnswered { reply, .. } = effect
            {
                replies.push(reply);
            }
        }
        for reply in replies {
            self.scribe.journal.now(Effect::Refuse {
                reply,
                refusal: refusal.clone(),
            });
        }
        self.scribe.journal.now(Effect::Reload { message });
    }
}

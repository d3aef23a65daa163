//! The agent as a pure machine: events in, entries and effects out through the scribe.

use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::tool::{Routed, Toolbox};
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{ModelRef, TurnFailureKind};
use openvaala_protocol::event::{Live, PartialItem};
use openvaala_protocol::id::{ItemId, TurnId};
use openvaala_protocol::item::{
    InterruptionCause, Item, ItemKind, ModelError, Plan, RetryNotice, ToolCall, ToolResult,
    ToolResultStatus,
};
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;

use super::answer::{Answer, Asked, Source};
use super::event::{AgentEvent, Alarm, Ending, Failure, Limits, RunningCall, ToolOutcome};
use super::gate::{Gate, Passage, Question};
use super::repeats::Repeats;
use super::scribe::{Place, Scribe, Tick};
use crate::agents::PLAN;
use crate::model::{ModelErrorKind, ModelEvent, StopReason};
use crate::session::Effect;

/// How long tools have to end after an interrupt before the turn goes on without them.
///
/// The turn has to be committed within one second, so a little is left for the commit.
const TOOL_GRACE: Duration = Duration::from_millis(850);

/// Why an agent asks nothing any more.
const USED_UP: &str = "the agent has used all tokens that it was given: whoever has started it can give the rest of \
    the task to a new one";

/// The agent of one turn.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(super) turn: TurnId,
    model: ModelRef,
    pub(super) account: Option<String>,
    limits: Limits,
    pub(super) steps: u32,
    /// How many times the request that is due was sent and failed.
    failures: u32,
    pub(super) usage: Usage,
    requests: u64,
    pub(super) toolbox: Option<Arc<Toolbox>>,
    pub(super) phase: Phase,
    stopping: Option<InterruptionCause>,
    pub(super) gate: Gate,
    repeats: Repeats,
}

#[derive(Debug)]
pub(super) enum Phase {
    Preparing,
    /// Everything for the next model request is written or on its way.
    Ready,
    Asking(Answer),
    /// The request failed and will be asked again.
    Waiting,
    Tools(Vec<Call>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) item: ItemId,
    pub(super) call_id: String,
    pub(super) result: Place,
    pub(super) done: bool,
    /// What has to be answered before it runs.
    pub(super) question: Option<Question>,
    /// The list of steps that it keeps.
    pub(super) plan: Option<Plan>,
}

impl Agent {
    pub(crate) fn new(turn: TurnId, model: ModelRef, limits: Limits) -> Self {
        Self {
            turn,
            model,
            account: None,
            limits,
            steps: 0,
            failures: 0,
            usage: Usage::default(),
            requests: 0,
            toolbox: None,
            phase: Phase::Preparing,
            stopping: None,
            gate: Gate::default(),
            repeats: Repeats::new(limits.repeats),
        }
    }

    pub(crate) const fn steps(&self) -> u32 {
        self.steps
    }

    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Whether the next model request can go out as soon as steered input is taken.
    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Sends the next model request once all that it rests on is written; gives the ending if there may be none.
    pub(crate) fn ask(&mut self, scribe: &mut Scribe) -> Option<Ending> {
        if self.limits.is_used_up(self.usage) {
            return Some(Ending::failed(TurnFailureKind::Budget, USED_UP));
        }
        self.requests += 1;
        self.phase = Phase::Asking(Answer::default());
        let (turn, request) = (self.turn, self.requests);
        scribe.journal.then(Effect::AskModel { turn, request });
        None
    }

    /// Takes the request that was sent back: it will be asked again with less in it.
    pub(crate) fn withdraw(&mut self, scribe: &mut Scribe) {
        if let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Ready) {
            answer.discard(scribe);
        }
        self.failures = 0;
    }

    /// Somebody has said something: what was done so far may rightly be done again.
    pub(crate) fn heard(&mut self) {
        self.repeats.forget();
    }

    /// Counts tokens that were used for the turn beside its own requests.
    pub(crate) fn add_usage(&mut self, usage: Usage) {
        self.usage = self.usage.plus(usage);
    }

    /// Takes in an event; gives the ending if that was the last thing to happen.
    pub(crate) fn on_event(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        event: AgentEvent,
    ) -> Option<Ending> {
        match event {
            AgentEvent::Prepared { toolbox, account } => {
                if self.is_resuming() {
                    return self.prepared_again(scribe, tick, toolbox, account);
                }
                if matches!(self.phase, Phase::Preparing) {
                    (self.toolbox, self.account) = (Some(toolbox), account);
                    self.phase = Phase::Ready;
                }
                None
            }
            AgentEvent::NotPrepared { message } => {
                let why = format!("not run: the turn could not go on: {message}");
                self.close_questions(scribe, tick, &why, |_| true);
                Some(Ending::failed(TurnFailureKind::Internal, message))
            }
            AgentEvent::Model { request, event } => self.on_model(scribe, tick, request, event),
            AgentEvent::ModelFailed { request, failure } => {
                if !self.is_asking(request) {
                    return None;
                }
                self.model_failed(scribe, tick, failure)
            }
            AgentEvent::ToolEnded { result, outcome } => {
                self.tool_ended(scribe, tick, result, outcome);
                self.after_tools()
            }
            AgentEvent::Alarm(Alarm::GraceOver) => {
                self.abandon_tools(scribe, tick);
                self.after_tools()
            }
            AgentEvent::Alarm(Alarm::Unanswered { question }) => {
                self.expire(scribe, tick, question);
                self.after_tools()
            }
            AgentEvent::Alarm(Alarm::AskAgain { request }) => {
                if matches!(self.phase, Phase::Waiting) && self.requests == request {
                    self.phase = Phase::Ready;
                }
                None
            }
        }
    }

    /// Begins to end the turn before its time.
    pub(crate) fn interrupt(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        cause: InterruptionCause,
    ) -> Option<Ending> {
        if self.stopping.is_some() {
            return None;
        }
        self.stopping = Some(cause);
        let source = self.source();
        match std::mem::replace(&mut self.phase, Phase::Ready) {
            Phase::Preparing | Phase::Ready | Phase::Waiting => Some(Ending::Interrupted(cause)),
            Phase::Asking(answer) => {
                scribe.journal.now(Effect::DropModel);
                answer.abandon(scribe, self.turn, &source, tick.now);
                Some(Ending::Interrupted(cause))
            }
            Phase::Tools(calls) => {
                self.phase = Phase::Tools(calls);
                if !self.keeps_questions() {
                    self.take_questions_back(scribe, tick);
                }
                if let Some(ending) = self.after_tools() {
                    return Some(ending);
                }
                if self.is_parked() {
                    return None;
                }
                scribe.journal.now(Effect::StopTools);
                scribe.journal.now(Effect::Alarm {
                    after: TOOL_GRACE,
                    turn: self.turn,
                    alarm: Alarm::GraceOver,
                });
                None
            }
        }
    }

    fn on_model(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        request: u64,
        event: ModelEvent,
    ) -> Option<Ending> {
        if !self.is_asking(request) {
            return None;
        }
        if let ModelEvent::Finished { reason, usage } = event {
            self.usage = self.usage.plus(usage);
            return self.answered(scribe, tick, reason);
        }
        let Phase::Asking(answer) = &mut self.phase else {
            return None;
        };
        let wrong = answer.take(scribe, tick, self.turn, event).err()?;
        scribe.journal.now(Effect::DropModel);
        self.model_failed(scribe, tick, Failure::new(ModelErrorKind::BadAnswer, wrong))
    }

    fn answered(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        reason: StopReason,
    ) -> Option<Ending> {
        self.steps += 1;
        self.failures = 0;
        let source = self.source();
        let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return None;
        };
        let asked = answer.finish(scribe, self.turn, &source, reason, tick.now);
        if reason == StopReason::Refused {
            self.refuse_calls(scribe, tick, asked);
            let message = format!("{} refused to answer", self.model.model);
            return Some(Ending::failed(TurnFailureKind::Refused, message));
        }
        if asked.is_empty() {
            return Some(Ending::Completed);
        }
        self.start_tools(scribe, tick, asked);
        self.after_tools()
    }

    /// Writes all calls, and lets those that can run start once they are written.
    fn start_tools(&mut self, scribe: &mut Scribe, tick: &mut Tick<'_>, asked: Vec<Asked>) {
        let mut started = Vec::new();
        let mut ended = Vec::new();
        let mut questions = Vec::new();
        let mut calls = Vec::new();
        for (asked, result) in with_result_places(scribe, tick, asked) {
            let call_id = scribe.call_id(&asked.id, asked.place.id);
            let mut call = ToolCall::new(call_id.clone(), asked.name, asked.arguments);
            call.cut = asked.cut;
            match self.route(&call) {
                Ok(routed) => {
                    call.executor.clone_from(&routed.executor);
                    let running = RunningCall {
                        result: result.id,
                        call_id: call_id.clone(),
                        tool: call.tool.clone(),
                        arguments: call.arguments.clone(),
                    };
                    match self.gate.judge(asked.place.id, &call, &routed) {
                        Passage::Open => started.push(running),
                        Passage::Closed(why) => ended.push((result.id, why)),
                        Passage::Ask(approval) => questions.push((*approval, running)),
                    }
                }
                Err(why) => ended.push((result.id, why)),
            }
            scribe.write(asked.place, Some(self.turn), &call, tick.now);
            self.repeats.asked(result.id, &call);
            calls.push(Call {
                item: asked.place.id,
                call_id,
                result,
                done: false,
                question: None,
                plan: plan_of(&call),
            });
        }
        for (approval, running) in questions {
            let place = scribe.place(tick);
            scribe.write(place, Some(self.turn), &approval, tick.now);
            let call = calls
                .iter_mut()
                .find(|call| call.result.id == running.result);
            if let Some(call) = call {
                call.question = Some(Question {
                    place,
                    approval,
                    call: running,
                });
            }
        }
        self.phase = Phase::Tools(calls);
        self.wait_for_answers(scribe, tick);
        for (id, why) in ended {
            self.tool_ended(
                scribe,
                tick,
                id,
                ToolOutcome::said(ToolResultStatus::Failed, why),
            );
        }
        for call in started {
            self.start(scribe, tick, call);
        }
    }

    /// Lets a call run once all that was written so far is on disk.
    pub(super) fn start(&self, scribe: &mut Scribe, tick: &Tick<'_>, call: RunningCall) {
        let Phase::Tools(calls) = &self.phase else {
            return;
        };
        let mut results = calls.iter().map(|call| call.result);
        let Some(place) = results.find(|place| place.id == call.result) else {
            return;
        };
        scribe.journal.then(Effect::Live(Live::Started(PartialItem {
            session_id: scribe.session,
            turn_id: self.turn,
            item_id: place.id,
            kind: ItemKind::ToolResult,
            pos: place.pos,
            started_at: tick.now,
            label: Some(call.call_id.clone()),
            offset: 0,
            text: String::new(),
        })));
        scribe.journal.then(Effect::StartTool(call));
    }

    fn route(&self, call: &ToolCall) -> Result<Routed, String> {
        if call.cut {
            return Err(format!(
                "{} was not run: the answer was cut off in the middle of its arguments. \
                 Ask again with shorter arguments, or in several calls.",
                call.tool
            ));
        }
        let Some(toolbox) = &self.toolbox else {
            return Err("there are no tools in this turn".to_owned());
        };
        toolbox
            .route(&call.tool, &call.arguments)
            .map_err(|error| error.to_string())
    }

    /// Answers the calls of an answer that is not acted upon.
    fn refuse_calls(&self, scribe: &mut Scribe, tick: &mut Tick<'_>, asked: Vec<Asked>) {
        for (asked, result) in with_result_places(scribe, tick, asked) {
            let call_id = scribe.call_id(&asked.id, asked.place.id);
            let mut call = ToolCall::new(call_id.clone(), asked.name, asked.arguments);
            call.cut = true;
            scribe.write(asked.place, Some(self.turn), &call, tick.now);
            let content = vec![Content::text("not run: the model refused to go on")];
            let status = ToolResultStatus::Failed;
            let body = ToolResult::new(asked.place.id, call_id, status, content);
            scribe.write(result, Some(self.turn), &body, tick.now);
        }
    }

    pub(super) fn tool_ended(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        result: ItemId,
        mut outcome: ToolOutcome,
    ) {
        let Phase::Tools(calls) = &mut self.phase else {
            return;
        };
        let open = calls
            .iter_mut()
            .find(|call| call.result.id == result && !call.done);
        let Some(call) = open else { return };
        call.done = true;
        let is_ok = outcome.status == ToolResultStatus::Ok;
        let plan = call.plan.take().filter(|_| is_ok);
        let warning = self.repeats.got(result, &outcome);
        outcome.content.extend(warning.map(Content::text));
        let ToolOutcome {
            status,
            content,
            exit_code,
            output,
            messages,
            goes_on: _,
        } = outcome;
        let mut body = ToolResult::new(call.item, call.call_id.clone(), status, content);
        (body.exit_code, body.output) = (exit_code, output);
        body.messages.clone_from(&messages);
        scribe.write(call.result, Some(self.turn), &body, tick.now);
        if !messages.is_empty() {
            scribe.journal.then(Effect::Heard { messages });
        }
        if let Some(plan) = plan {
            self.keep_plan(scribe, tick, &plan);
        }
    }

    /// Writes the list of steps down; a turn has one, which changes.
    fn keep_plan(&self, scribe: &mut Scribe, tick: &mut Tick<'_>, plan: &Plan) {
        let is_plan = |item: &&Item| {
            item.head().kind == ItemKind::Plan && item.head().turn == Some(self.turn)
        };
        let place = scribe.history().iter().rev().find(is_plan);
        let place = place.map(|item| Place::of(item.head()));
        let place = place.unwrap_or_else(|| scribe.place(tick));
        scribe.write(place, Some(self.turn), plan, tick.now);
    }

    fn abandon_tools(&mut self, scribe: &mut Scribe, tick: &mut Tick<'_>) {
        let (Phase::Tools(calls), Some(_)) = (&self.phase, self.stopping) else {
            return;
        };
        let open: Vec<ItemId> = calls
            .iter()
            .filter(|call| !call.done && call.question.is_none())
            .map(|call| call.result.id)
            .collect();
        scribe.journal.now(Effect::AbandonTools);
        for result in open {
            let why = "interrupted, and it did not stop in time: what it did is not known";
            let outcome = ToolOutcome::said(ToolResultStatus::Interrupted, why);
            self.tool_ended(scribe, tick, result, outcome);
        }
    }

    pub(super) fn after_tools(&mut self) -> Option<Ending> {
        let Phase::Tools(calls) = &self.phase else {
            return None;
        };
        if !calls.iter().all(|call| call.done) {
            return None;
        }
        self.phase = Phase::Ready;
        if let Some(cause) = self.stopping {
            return Some(Ending::Interrupted(cause));
        }
        if let Some(why) = self.repeats.too_many() {
            return Some(Ending::failed(TurnFailureKind::RepeatLimit, why));
        }
        (self.steps >= self.limits.steps).then(|| self.too_many_steps())
    }

    /// Whether questions stay open though the turn is being stopped: a restart goes on with them.
    pub(super) fn keeps_questions(&self) -> bool {
        self.stopping == Some(InterruptionCause::Shutdown)
    }

    fn too_many_steps(&self) -> Ending {
        let limit = self.limits.steps;
        let message =
            format!("the turn took {limit} steps, which is the limit: send a message to go on");
        Ending::failed(TurnFailureKind::StepLimit, message)
    }

    /// Asks again later, or gives up.
    fn model_failed(
        &mut self,
        scribe: &mut Scribe,
        tick: &mut Tick<'_>,
        failure: Failure,
    ) -> Option<Ending> {
        self.failures += 1;
        let (kind, asked_for) = (failure.kind, failure.retry_after);
        let chance = tick.id();
        let retry = &self.limits.retry;
        let Some(wait) = retry.wait(kind, self.failures, asked_for, chance) else {
            return Some(self.give_up(scribe, tick, failure));
        };
        if let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Waiting) {
            answer.discard(scribe);
        }
        let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let next_at = Timestamp::from_millis(tick.now.as_millis().saturating_add(millis));
        let notice = RetryNotice::new(failure.message, self.failures, next_at);
        scribe.append(tick, Some(self.turn), &notice);
        let request = self.requests;
        scribe.journal.now(Effect::Alarm {
            after: wait,
            turn: self.turn,
            alarm: Alarm::AskAgain { request },
        });
        None
    }

    fn give_up(&mut self, scribe: &mut Scribe, tick: &mut Tick<'_>, failure: Failure) -> Ending {
        let source = self.source();
        if let Phase::Asking(answer) = std::mem::replace(&mut self.phase, Phase::Ready) {
            answer.abandon(scribe, self.turn, &source, tick.now);
        }
        let Failure {
            kind,
            message,
            status,
            ..
        } = failure;
        let error = ModelError::new(self.model.clone(), message.clone(), status, self.failures);
        scribe.append(tick, Some(self.turn), &error);
        let refused = kind == ModelErrorKind::Refused;
        let kind = if refused {
            TurnFailureKind::Refused
        } else {
            TurnFailureKind::Model
        };
        Ending::failed(kind, message)
    }

    fn source(&self) -> Source {
        Source {
            provider: self.model.provider.clone(),
            model: self.model.model.clone(),
            account: self.account.clone(),
        }
    }

    /// Whether a call still waits for its result.
    pub(crate) fn is_open(&self, result: ItemId) -> bool {
        let Phase::Tools(calls) = &self.phase else {
            return false;
        };
        calls
            .iter()
            .any(|call| call.result.id == result && !call.done)
    }

    /// Whether that request's answer is awaited.
    pub(crate) const fn is_asking(&self, request: u64) -> bool {
        matches!(self.phase, Phase::Asking(_)) && self.requests == request
    }
}

/// Takes the places of the results right behind those of all calls, in call order.
fn with_result_places(
    scribe: &mut Scribe,
    tick: &mut Tick<'_>,
    asked: Vec<Asked>,
) -> Vec<(Asked, Place)> {
    asked
        .into_iter()
        .map(|asked| (asked, scribe.place(tick)))
        .collect()
}

/// The list of steps that a call keeps, if that is what it is for.
pub(super) fn plan_of(call: &ToolCall) -> Option<Plan> {
    (call.tool == PLAN)
        .then(|| serde_json::from_str(&call.arguments).ok())
        .flatten()
}

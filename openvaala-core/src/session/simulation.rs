//! The session machine under random schedules: clients, models, tools, failing commits and crashes in any order.
//!
//! A run is driven by a list of numbers, each choosing one of the things that can happen next. The "disk" takes
//! a commit at the moment that the schedule says so, or half of it before a crash.

mod approvals;
mod reports;
mod requests;
mod resumed;
mod schedules;
mod summaries;
mod under_way;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use openvaala_executor::tool::{
    Offer, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, Toolbox,
};
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::content::Content;
use openvaala_protocol::conversation::{ModelRef, TurnStatus};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_protocol::item::{
    InterruptionCause, Item, ItemKind, ToolCall, ToolResult, ToolResultStatus,
};
use openvaala_protocol::rpc::params::session::SendMode;
use openvaala_protocol::time::Timestamp;
use openvaala_protocol::usage::Usage;
use openvaala_storage::{Entry, EntryData};
use uuid::{Builder, Uuid};

use self::requests::Changes;
use super::event::{Effect, Event, ReplyId, SessionSetup};
use super::inputs::Inputs;
use super::machine::SessionMachine;
use crate::agent::{
    AgentEvent, Alarm, Failure, Limits, RetryPolicy, RunningCall, Tick, ToolOutcome,
};
use crate::approval::ApprovalPolicy;
use crate::context::last_summary;
use crate::conversation::Input;
use crate::dao::record::{ConversationState, SessionState, State, TurnState};
use crate::dao::tail::{Accepted, LatestStates, RecentItems, latest_of};
use crate::journal::Commit;
use crate::model::{ModelErrorKind, ModelEvent, PartKind, StopReason};
use crate::runtime::CompactionPolicy;

/// What is on disk.
#[derive(Clone, Debug, Default)]
struct Disk {
    items: Vec<Item>,
    metadata: Vec<State>,
    session: Option<SessionState>,
    turns: BTreeMap<TurnId, TurnState>,
}

impl Disk {
    fn take_items(&mut self, commit: &Commit) {
        self.items.extend(commit.batch.items.iter().cloned());
    }

    fn take_states(&mut self, commit: &Commit, count: usize) {
        for state in commit.batch.states.iter().take(count) {
            self.metadata.push(state.clone());
            match state {
                State::Session(state) => self.session = Some(state.clone()),
                State::Turn(turn) => {
                    self.turns.insert(turn.id, turn.clone());
                }
                State::Conversation(_) => {}
            }
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let entries = (1..).zip(&self.metadata).map(|(seq, state)| Entry {
            seq,
            time: 0,
            data: EntryData::Json(state.to_raw().unwrap()),
        });
        entries.collect()
    }
    /// What an opening finds out from the end of the metadata.
    fn latest(&self, session: SessionId) -> LatestStates {
        let entries = self.entries();
        let with_items = (!self.items.is_empty()).then_some(session);
        latest_of(&entries, with_items.into_iter().collect()).0
    }

    /// What a look through all of the metadata finds.
    fn accepted(&self, session: SessionId) -> Accepted {
        let mut accepted = Accepted::default();
        for entry in self.entries() {
            accepted.take(&entry, session);
        }
        accepted
    }

    /// Where an input is: as an item, or waiting. It must be in one place only.
    fn places_of(&self, input: ItemId) -> usize {
        let as_item = self
            .items
            .iter()
            .filter(|item| item.head().id == input)
            .count();
        let queue = self.session.iter().flat_map(|session| &session.queue);
        // Items are written before states: until the next state both may name it, and recovery drops the second.
        as_item.max(queue.filter(|queued| queued.item_id == input).count())
    }
}

#[derive(Debug)]
struct NoTool(ToolSpec);

#[async_trait]
impl Tool for NoTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: ToolContext, _: &str) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("never called: the simulation answers"))
    }
}

struct Simulation {
    machine: SessionMachine,
    disk: Disk,
    setup: SessionState,
    toolbox: Arc<Toolbox>,
    ids: u128,
    now: i64,
    commits: VecDeque<Commit>,
    preparing: Option<(TurnId, bool)>,
    asking: Option<u64>,
    parts: u32,
    tools: Vec<RunningCall>,
    /// With the time when they are due.
    alarms: Vec<(i64, TurnId, Alarm)>,
    replies: BTreeMap<ReplyId, ItemId>,
    /// The inputs that are sent for the second time.
    again: BTreeSet<ReplyId>,
    finding: bool,
    last_reply: ReplyId,
    acked: BTreeSet<ItemId>,
    /// The call ids of all calls that were started.
    started: BTreeSet<String>,
    /// The calls whose questions a restart has left open.
    left_calls: BTreeSet<ItemId>,
    /// How many of them have started.
    late_starts: usize,
    needs_reload: Option<String>,
    changes: Changes,
    surveying: Option<(u64, bool)>,
    summarising: Option<u64>,
}

impl Simulation {
    fn new() -> Self {
        let now = Timestamp::from_millis(0);
        let setup = SessionState {
            id: SessionId::from_uuid(Uuid::from_u128(1)),
            conversation_id: ConversationId::from_uuid(Uuid::from_u128(2)),
            parent: None,
            agent: None,
            model: ModelRef {
                provider: "p".into(),
                model: "m".into(),
                effort: None,
            },
            approval_mode: None,
            approval_rules: Vec::new(),
            active_turn: None,
            queue: Vec::new(),
            held: false,
            last_pos: 0,
            newest_input: Inputs::whole(HashSet::new()).newest(),
            withdrawn: Vec::new(),
            usage: Usage::default(),
            created_at: now,
            updated_at: now,
            context_tokens: None,
            child: None,
        };
        let parameters = serde_json::value::to_raw_value(&serde_json::json!({"type": "object"}));
        let spec = ToolSpec::new("tool".into(), "does nothing".into(), parameters.unwrap());
        let toolbox = Toolbox::new(vec![Offer::runtime(Arc::new(NoTool(spec)))]).unwrap();
        Self {
            machine: machine(whole(setup.clone(), &[])),
            disk: Disk {
                metadata: vec![
                    State::Conversation(conversation(&setup)),
                    State::Session(setup.clone()),
                ],
                session: Some(setup.clone()),
                ..Disk::default()
            },
            setup,
            toolbox: Arc::new(toolbox),
            ids: 100,
            now: 0,
            commits: VecDeque::new(),
            preparing: None,
            asking: None,
            parts: 0,
            tools: Vec::new(),
            alarms: Vec::new(),
            replies: BTreeMap::new(),
            again: BTreeSet::new(),
            finding: false,
            last_reply: 0,
            acked: BTreeSet::new(),
            started: BTreeSet::new(),
            left_calls: BTreeSet::new(),
            late_starts: 0,
            needs_reload: None,
            changes: Changes::default(),
            surveying: None,
            summarising: None,
        }
    }

    fn event(&mut self, event: Event) {
        self.now += 1;
        let ids = &mut self.ids;
        let mut next = || {
            *ids += 1;
            Uuid::from_u128(*ids)
        };
        let tick = Tick {
            now: Timestamp::from_millis(self.now),
            ids: &mut next,
        };
        let effects = self.machine.on_event(tick, event);
        self.note_withdrawals();
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(commit) => {
                assert!(self.commits.is_empty(), "one commit is in flight at a time");
                self.commits.push_back(commit);
            }
            Effect::Sent { reply, duplicate } => {
                assert_eq!(
                    duplicate,
                    self.again.remove(&reply),
                    "an input is taken once"
                );
                let input = self
                    .replies
                    .remove(&reply)
                    .expect("a reply to something asked");
                if self.changes.has_withdrawn(input) {
                    return;
                }
                assert_eq!(
                    self.disk.places_of(input),
                    1,
                    "I-1: sent means on disk, once"
                );
                self.acked.insert(input);
            }
            Effect::Refuse { reply, refusal } => {
                self.replies.remove(&reply);
                self.refused(reply, &refusal);
            }
            Effect::Interrupted { reply, .. } => {
                self.replies.remove(&reply);
            }
            Effect::Answer { reply, answer } => {
                self.replies.remove(&reply);
                self.answered(reply, &answer);
            }
            Effect::ApprovalAnswered { reply, approval } => {
                self.replies.remove(&reply);
                self.expect_last_word(&approval);
            }
            Effect::Live(_) | Effect::Heard { .. } => {}
            Effect::Prepare { turn, load } => self.preparing = Some((turn, load)),
            Effect::FindInputs => {
                assert!(!self.finding, "one look into the log is enough");
                self.finding = true;
            }
            Effect::AskModel { request, .. } => {
                assert_eq!(self.asking, None, "one model request at a time");
                assert_eq!(open_calls(self.machine.history()), Vec::<String>::new());
                // Of an item that was written more than once the last writing counts.
                let written = self.disk.items.iter().cloned();
                let written: BTreeMap<u64, Item> =
                    written.map(|item| (item.head().pos, item)).collect();
                let summary = last_summary(written.values()).map(|(_, summary)| summary);
                let up_to = summary.map_or(0, |summary| summary.up_to);
                // What was changed between turns is no part of a request, and may be on its way.
                let is_of_turn = |item: &Item| item.head().turn.is_some();
                let written: Vec<Item> = written
                    .into_values()
                    .filter(|item| is_of_turn(item) && item.head().pos > up_to)
                    .collect();
                let of_turns = self
                    .machine
                    .history()
                    .iter()
                    .filter(|item| is_of_turn(item));
                assert_eq!(
                    of_turns.cloned().collect::<Vec<_>>(),
                    written,
                    "a request rests on what is written, and on all of it"
                );
                (self.asking, self.parts) = (Some(request), 0);
            }
            Effect::DropModel => (self.asking, self.summarising) = (None, None),
            Effect::StartTool(call) => {
                assert!(
                    self.started.insert(call.call_id.clone()),
                    "I-8: a call is started once"
                );
                let on_disk = self.disk.items.iter().any(|item| {
                    item.body::<ToolCall>()
                        .is_some_and(|body| body.unwrap().call_id == call.call_id)
                });
                assert!(on_disk, "a call is written before it starts");
                self.expect_approved(&call);
                self.note_start(&call);
                self.tools.push(call);
            }
            Effect::StopTools => {}
            Effect::AbandonTools => self.tools.clear(),
            Effect::Alarm { after, turn, alarm } => {
                let due = self.now + i64::try_from(after.as_millis()).unwrap();
                self.alarms.push((due, turn, alarm));
            }
            Effect::Reload { message } => self.needs_reload = Some(message),
            Effect::Survey { request, load } => self.surveying = Some((request, load)),
            Effect::AskSummary { request, .. } => {
                assert_eq!((self.asking, self.summarising), (None, None));
                assert!(self.machine.summary_question().is_some());
                self.summarising = Some(request);
            }
            Effect::Forgotten => {}
            Effect::Compacted { reply, item, .. } => {
                self.replies
                    .remove(&reply)
                    .expect("a reply to something asked");
                assert!(item.is_none_or(|item| self.disk.places_of(item) == 1));
            }
            Effect::Uncompacted { reply, summary } => {
                self.replies
                    .remove(&reply)
                    .expect("a reply to something asked");
                let last = last_summary(self.disk.items.iter()).map(|(id, _)| id);
                assert_ne!(
                    last,
                    Some(summary),
                    "a summary that was taken back counts no longer"
                );
            }
        }
    }

    fn send(&mut self, mode: SendMode, detail: u8) {
        if let Some(failure) = self.needs_reload.take() {
            self.restart(Some(failure));
        }
        self.last_reply += 1;
        self.ids += 1;
        let item_id = self.input_id(detail);
        self.replies.insert(self.last_reply, item_id);
        let reply = self.last_reply;
        let input = Input::new(item_id, vec![Content::text("hello")]).with_mode(mode);
        self.event(Event::Send { reply, input });
    }

    /// An id as clients make them: with the time of a clock of their own, or with none.
    fn input_id(&self, detail: u8) -> ItemId {
        let id = Uuid::from_u128(self.ids);
        if detail.is_multiple_of(5) {
            return ItemId::from_uuid(id);
        }
        let millis = self.now.unsigned_abs() + u64::from(detail);
        let mut random = [0; 10];
        random.copy_from_slice(&id.as_bytes()[6..]);
        ItemId::from_uuid(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    fn send_again(&mut self, detail: u8) {
        let Some(item_id) = self
            .acked
            .iter()
            .nth(usize::from(detail) % (self.acked.len() + 1))
            .copied()
            .or_else(|| self.withdrawn_input(detail))
            .filter(|_| self.needs_reload.is_none())
        else {
            return;
        };
        self.last_reply += 1;
        self.replies.insert(self.last_reply, item_id);
        self.again.insert(self.last_reply);
        let reply = self.last_reply;
        let input = Input::new(item_id, vec![Content::text("hello")]);
        self.event(Event::Send { reply, input });
    }

    fn write(&mut self) {
        let Some(commit) = self.commits.pop_front() else {
            return;
        };
        self.disk.take_items(&commit);
        self.disk.take_states(&commit, usize::MAX);
        self.event(Event::Committed { n: commit.n });
    }

    fn fail_write(&mut self) {
        let Some(commit) = self.commits.pop_front() else {
            return;
        };
        let message = "no space left on device".to_owned();
        self.event(Event::CommitFailed {
            n: commit.n,
            message,
        });
    }

    /// The process dies; with `half` the items of the running commit are on disk, and so many of its states.
    fn crash(&mut self, half: bool, states: usize) {
        if let Some(commit) = self.commits.pop_front().filter(|_| half) {
            self.disk.take_items(&commit);
            self.disk.take_states(&commit, states);
        }
        self.restart(None);
    }

    fn restart(&mut self, failure: Option<String>) {
        self.commits.clear();
        (self.preparing, self.asking) = (None, None);
        self.alarms.clear();
        (self.surveying, self.summarising) = (None, None);
        self.tools.clear();
        self.replies.clear();
        self.again.clear();
        self.changes.forget();
        self.finding = false;
        self.needs_reload = None;
        let state = self
            .disk
            .session
            .clone()
            .unwrap_or_else(|| self.setup.clone());
        let all = whole(state, &self.disk.items);
        let turns: Vec<TurnState> = self.disk.turns.values().cloned().collect();
        let expected = self.recovered(all, turns, failure.clone());
        let (by_tail, turns) = self.by_tail();
        assert_eq!(
            self.recovered(by_tail.clone(), turns.clone(), failure.clone()),
            expected,
            "the end of the log tells all that the whole of it does"
        );
        self.machine = machine(by_tail);
        let questions = self.disk.open_questions().filter(|_| failure.is_none());
        self.event(Event::Recover { turns, failure });
        self.expect_open(&questions.unwrap_or_default());
        for input in &self.acked {
            let known = self.disk.places_of(*input);
            assert_eq!(
                known, 1,
                "I-1: what was acknowledged is there after a restart, once"
            );
        }
    }

    /// What a session does that begins with that.
    fn recovered(
        &self,
        setup: SessionSetup,
        turns: Vec<TurnState>,
        failure: Option<String>,
    ) -> String {
        let mut ids = self.ids;
        let tick = Tick {
            now: Timestamp::from_millis(self.now + 1),
            ids: &mut || {
                ids += 1;
                Uuid::from_u128(ids)
            },
        };
        let recover = Event::Recover { turns, failure };
        let effects = SessionMachine::new(setup).on_event(tick, recover);
        format!("{effects:#?}")
    }

    /// What an opening reads from the end of the log.
    fn by_tail(&self) -> (SessionSetup, Vec<TurnState>) {
        let mut latest = self.disk.latest(self.setup.id);
        let state = latest.states.sessions.remove(&self.setup.id).unwrap();
        let turns: Vec<TurnState> = latest.states.turns.into_values().collect();
        let mut recent = RecentItems::new(&state, &turns, false);
        for (seq, item) in self.disk.items.iter().enumerate().rev() {
            if !recent.take(seq as u64 + 1, Some(item.clone())) {
                break;
            }
        }
        let items = recent.finish();
        let mut taken = latest.inputs.remove(&state.id).unwrap_or_default();
        let said = items
            .iter()
            .filter(|item| item.head().kind == ItemKind::UserMessage);
        taken.extend(said.map(|item| item.head().id));
        let setup = SessionSetup {
            has_context: self.disk.items.is_empty(),
            inputs: Inputs::latest(taken, state.newest_input),
            state,
            items,
            limits: limits(),
        };
        (setup, turns)
    }

    fn found(&mut self) {
        if std::mem::take(&mut self.finding) {
            let accepted = self.disk.accepted(self.setup.id);
            self.event(Event::InputsFound { accepted });
        }
    }

    fn model(&mut self, choice: u8) {
        let Some(request) = self.asking else { return };
        let part = self.parts;
        let mut event = |event| self.event(Event::Agent(AgentEvent::Model { request, event }));
        match choice % 8 {
            0 | 1 => {
                event(ModelEvent::Started {
                    part,
                    kind: PartKind::Text,
                });
                event(ModelEvent::Delta {
                    part,
                    text: "word ".repeat(400),
                });
                self.parts += 1;
            }
            2 | 3 => {
                let id = if choice & 8 == 0 { "call" } else { "" };
                let name = if choice & 16 == 0 { "tool" } else { "unknown" };
                let kind = PartKind::ToolCall {
                    id: id.into(),
                    name: name.into(),
                };
                event(ModelEvent::Started { part, kind });
                event(ModelEvent::Delta {
                    part,
                    text: "{}".into(),
                });
                event(ModelEvent::Ended { part, opaque: None });
                self.parts += 1;
            }
            4 => event(ModelEvent::Delta {
                part: part + 7,
                text: "nonsense".into(),
            }),
            5 => {
                self.asking = None;
                let kinds = [ModelErrorKind::Connection, ModelErrorKind::ContextTooLong];
                let kind = kinds[usize::from(choice >> 5) % 2];
                let failure = Failure::new(kind, "reset".to_owned());
                let failed = AgentEvent::ModelFailed { request, failure };
                self.event(Event::Agent(failed));
            }
            _ => {
                self.asking = None;
                let reasons = [StopReason::Done, StopReason::Length, StopReason::Refused];
                let reason = reasons[usize::from(choice >> 5) % 3];
                let mut usage = Usage::default();
                usage.input_tokens = (choice & 16 == 0).then_some(u64::from(choice) * 10);
                let finished = ModelEvent::Finished { reason, usage };
                self.event(Event::Agent(AgentEvent::Model {
                    request,
                    event: finished,
                }));
            }
        }
    }

    fn tool_ends(&mut self, choice: u8) {
        if self.tools.is_empty() {
            return;
        }
        let call = self.tools.remove(usize::from(choice) % self.tools.len());
        let outcome = ToolOutcome::said(ToolResultStatus::Ok, "done");
        let ended = AgentEvent::ToolEnded {
            result: call.result,
            outcome,
        };
        self.event(Event::Agent(ended));
    }

    fn prepared(&mut self, choice: u8) {
        let Some((turn, load)) = self.preparing.take() else {
            return;
        };
        if choice.is_multiple_of(8) {
            self.event(Event::NotPrepared {
                turn,
                message: "no such folder".into(),
            });
        } else {
            let toolbox = if choice % 16 == 3 {
                Arc::new(Toolbox::new(Vec::new()).unwrap())
            } else {
                Arc::clone(&self.toolbox)
            };
            let context = load.then(|| self.disk.items.clone());
            self.event(Event::Prepared {
                turn,
                executors: Vec::new(),
                toolbox,
                account: None,
                instructions: Vec::new(),
                context,
                ceiling: None,
                approval: policy(choice),
            });
        }
    }

    /// The next alarm comes, whenever it is due; whether there is one.
    fn alarm(&mut self) -> bool {
        let next = self.alarms.iter().map(|(due, ..)| *due).min();
        let at = self.alarms.iter().position(|(due, ..)| Some(*due) == next);
        let Some((due, turn, alarm)) = at.map(|at| self.alarms.remove(at)) else {
            return false;
        };
        self.now = self.now.max(due);
        self.event(Event::Alarm { turn, alarm });
        true
    }

    fn interrupt(&mut self) {
        self.last_reply += 1;
        let reply = Some(self.last_reply);
        self.replies
            .insert(self.last_reply, ItemId::from_uuid(Uuid::nil()));
        self.event(Event::Interrupt {
            reply,
            cause: InterruptionCause::Requested,
        });
    }

    fn step(&mut self, choice: u8, detail: u8) {
        match choice % 26 {
            0 | 1 => self.send(SendMode::Queue, detail),
            2 => self.send(SendMode::Steer, detail),
            3 => self.send(SendMode::IdleOnly, detail),
            4 => self.send_again(detail),
            5 => self.interrupt(),
            6 => {
                let _ = self.alarm();
            }
            7 if detail.is_multiple_of(4) => self.fail_write(),
            8 if detail.is_multiple_of(4) => {
                self.crash(detail.is_multiple_of(8), usize::from(detail / 8) % 4);
            }
            9 => self.prepared(detail),
            10 | 11 => self.model(detail),
            12 => self.tool_ends(detail),
            13 => self.found(),
            16 => self.update(detail),
            17 => self.withdraw(detail),
            18 => self.reorder(detail),
            19 => self.change(detail),
            20 if detail.is_multiple_of(2) => self.order(detail / 2),
            21 => self.surveyed(detail),
            22 => self.summary(detail),
            14 => self.answer(detail),
            15 if detail.is_multiple_of(4) => self.stop(),
            _ => self.write(),
        }
        let running = self
            .disk
            .turns
            .values()
            .filter(|turn| turn.status == TurnStatus::Running);
        assert!(running.count() <= 1, "one turn of a session at a time");
        self.check_history();
        self.check_withdrawn();
    }

    fn check_history(&self) {
        let places: Vec<u64> = self
            .machine
            .history()
            .iter()
            .map(|item| item.head().pos)
            .collect();
        let unique: BTreeSet<u64> = places.iter().copied().collect();
        assert_eq!(
            places,
            unique.into_iter().collect::<Vec<_>>(),
            "each place once, in order"
        );
    }
}

/// What is asked, and for how long.
fn policy(choice: u8) -> ApprovalPolicy {
    if !choice.is_multiple_of(2) {
        return ApprovalPolicy::new(ApprovalMode::Full);
    }
    let asks = ApprovalPolicy::new(ApprovalMode::Ask);
    if choice.is_multiple_of(4) {
        asks.with_answer_within(Duration::from_secs(60))
    } else {
        asks
    }
}

fn machine(setup: SessionSetup) -> SessionMachine {
    let mut machine = SessionMachine::new(setup);
    machine.set_compaction(CompactionPolicy::default(), Some(1_000));
    machine
}

/// What a session begins with that knows all of its log.
fn whole(state: SessionState, items: &[Item]) -> SessionSetup {
    let said = items
        .iter()
        .filter(|item| item.head().kind == ItemKind::UserMessage);
    let taken = said.map(|item| item.head().id).collect();
    let waiting = state.queue.iter().map(|input| input.item_id);
    let mut inputs = Inputs::latest(HashSet::new(), state.newest_input);
    inputs.complete(taken, waiting);
    SessionSetup {
        state,
        items: items.to_vec(),
        has_context: true,
        inputs,
        limits: limits(),
    }
}

fn limits() -> Limits {
    Limits {
        tokens: None,
        steps: 20,
        repeats: 5,
        retry: RetryPolicy::default().with_attempts(3),
    }
}

fn conversation(session: &SessionState) -> ConversationState {
    ConversationState {
        id: session.conversation_id,
        title: None,
        root_session: session.id,
        executors: Vec::new(),
        created_at: session.created_at,
        updated_at: session.updated_at,
        damaged: None,
        archived: false,
        forked_from: None,
        children: Vec::new(),
    }
}

/// Calls that have no result after them.
fn open_calls(items: &[Item]) -> Vec<String> {
    let results: BTreeSet<String> = items
        .iter()
        .filter_map(|item| item.body::<ToolResult>())
        .map(|result| result.unwrap().call_id)
        .collect();
    items
        .iter()
        .filter(|item| item.head().kind == ItemKind::ToolCall)
        .map(|item| item.body::<ToolCall>().unwrap().unwrap().call_id)
        .filter(|id| !results.contains(id))
        .collect()
}

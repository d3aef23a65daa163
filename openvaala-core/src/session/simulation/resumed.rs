//! Turns that go on after a restart, since somebody may still answer their questions.

use std::collections::BTreeMap;

use openvaala_protocol::approval::{ApprovalAnswer, ApprovalScope};
use openvaala_protocol::content::joined_text;
use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{Approval, Item, ToolResult};
use openvaala_protocol::rpc::params::session::SendMode;
use pretty_assertions::assert_eq;
use proptest::prelude::{ProptestConfig, Strategy, any};
use proptest::proptest;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use uuid::Uuid;

use super::Simulation;
use super::under_way::Ways;
use crate::conversation::AnswerApproval;
use crate::session::event::Event;

/// Choices of [`Simulation::prepared`]: all is asked; the same for a minute; there are no tools; nothing is there.
const ASKS: u8 = 2;
const ASKS_A_MINUTE: u8 = 4;
const NO_TOOLS: u8 = 3;
const FAILS: u8 = 8;
/// Choices of [`Simulation::model`]: a call, the end of an answer.
const CALL: u8 = 2;
const END: u8 = 6;

impl Simulation {
    /// A turn in which two calls wait for answers.
    fn with_two_questions() -> Self {
        Self::with_two_questions_of(ASKS)
    }

    fn with_two_questions_of(prepared: u8) -> Self {
        let mut simulation = Self::new();
        simulation.send(SendMode::Queue, 0);
        simulation.write_all();
        simulation.prepared(prepared);
        simulation.write_all();
        for choice in [CALL, CALL, END] {
            simulation.model(choice);
        }
        simulation.write_all();
        assert_eq!(simulation.questions().len(), 2);
        simulation
    }

    pub(super) fn write_all(&mut self) {
        while !self.commits.is_empty() {
            self.write();
        }
    }

    fn questions(&self) -> Vec<ItemId> {
        let open = self.machine.open_approvals(self.setup.conversation_id);
        open.iter().map(|open| open.approval_id).collect()
    }

    fn reply_to(&mut self, question: ItemId, answer: ApprovalAnswer) {
        self.last_reply += 1;
        let reply = self.last_reply;
        self.replies.insert(reply, ItemId::from_uuid(Uuid::nil()));
        let answer = AnswerApproval::new(question, answer).with_scope(ApprovalScope::Once);
        self.event(Event::AnswerApproval { reply, answer });
    }

    /// The questions and results on disk, each as it was written last.
    fn said(&self) -> Vec<String> {
        let items = self.disk.items.iter();
        let items: BTreeMap<u64, &Item> = items.map(|item| (item.head().pos, item)).collect();
        let said = items.values().filter_map(|item| {
            if let Some(Ok(approval)) = item.body::<Approval>() {
                let message = approval.message.unwrap_or_default();
                return Some(format!("question {:?}: {message}", approval.state));
            }
            let result = item.body::<ToolResult>()?.ok()?;
            let text = joined_text(&result.content);
            Some(format!("result {:?}: {text}", result.status))
        });
        said.collect()
    }

    fn statuses(&self) -> Vec<TurnStatus> {
        self.disk.turns.values().map(|turn| turn.status).collect()
    }
}

#[test]
fn an_answer_before_the_tools_are_there_counts_once_they_are() {
    let mut simulation = Simulation::with_two_questions();
    simulation.crash(false, 0);
    let questions = simulation.questions();
    simulation.reply_to(questions[0], ApprovalAnswer::Approve);
    simulation.reply_to(questions[1], ApprovalAnswer::Deny);
    assert!(simulation.tools.is_empty() && simulation.commits.is_empty());
    assert_eq!(simulation.questions(), questions);
    simulation.prepared(ASKS);
    simulation.write_all();
    assert_eq!((simulation.tools.len(), simulation.late_starts), (1, 1));
    simulation.settle();
    assert_eq!(
        simulation.said(),
        [
            "question Approved: ",
            "question Denied: ",
            "result Ok: done",
            "result Failed: not run: the user was asked and said no.",
        ]
    );
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn a_call_that_ran_at_the_end_is_not_run_again_while_the_other_is_still_asked() {
    let mut simulation = Simulation::with_two_questions();
    let questions = simulation.questions();
    simulation.reply_to(questions[0], ApprovalAnswer::Approve);
    simulation.write_all();
    assert_eq!(simulation.tools.len(), 1);
    simulation.crash(false, 0);
    assert_eq!(simulation.questions(), questions[1..]);
    // A second end changes nothing.
    simulation.write_all();
    simulation.crash(false, 0);
    assert_eq!(simulation.questions(), questions[1..]);
    simulation.prepared(ASKS);
    simulation.reply_to(questions[1], ApprovalAnswer::Approve);
    simulation.settle();
    assert_eq!(
        simulation.said(),
        [
            "question Approved: ",
            "question Approved: ",
            "result Unknown: the runtime ended while this ran: what it did is not known",
            "result Ok: done",
        ]
    );
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn a_call_that_is_no_longer_what_was_asked_is_not_run() {
    let mut simulation = Simulation::with_two_questions();
    simulation.crash(false, 0);
    let questions = simulation.questions();
    simulation.reply_to(questions[0], ApprovalAnswer::Approve);
    simulation.prepared(NO_TOOLS);
    simulation.settle();
    let why = "not run: since it was asked the runtime was started anew, and now the call would do something else, or nothing. \
               Ask again if it is still needed.";
    let (question, result) = (
        format!("question Cancelled: {why}"),
        format!("result Failed: {why}"),
    );
    assert_eq!(
        simulation.said(),
        [question.clone(), question, result.clone(), result]
    );
    assert_eq!(simulation.late_starts, 0);
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn a_turn_that_cannot_be_prepared_again_fails_and_takes_its_questions_back() {
    let mut simulation = Simulation::with_two_questions();
    simulation.crash(false, 0);
    simulation.prepared(FAILS);
    simulation.settle();
    let why = "not run: the turn could not go on: no such folder";
    let (question, result) = (
        format!("question Cancelled: {why}"),
        format!("result Failed: {why}"),
    );
    assert_eq!(
        simulation.said(),
        [question.clone(), question, result.clone(), result]
    );
    assert_eq!(simulation.statuses(), [TurnStatus::Failed]);
}

#[test]
fn a_stop_in_good_order_keeps_questions_and_waits_for_what_runs() {
    let mut simulation = Simulation::with_two_questions();
    let questions = simulation.questions();
    simulation.reply_to(questions[0], ApprovalAnswer::Approve);
    simulation.write_all();
    simulation.stop();
    assert_eq!(simulation.questions(), questions[1..]);
    assert_eq!(
        simulation.said(),
        [
            "result Ok: done",
            "question Approved: ",
            "question Pending: "
        ]
    );
    simulation.settle();
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn after_a_failed_write_the_turn_ends_and_its_questions_are_taken_back() {
    let mut simulation = Simulation::with_two_questions();
    let questions = simulation.questions();
    simulation.reply_to(questions[0], ApprovalAnswer::Deny);
    simulation.fail_write();
    simulation.settle();
    let result =
        "result Interrupted: not run: the runtime ended before somebody said whether it may";
    assert_eq!(
        simulation.said(),
        [
            "question Cancelled: the runtime ended",
            "question Cancelled: the runtime ended",
            result,
            result,
        ]
    );
    assert_eq!(simulation.statuses(), [TurnStatus::Failed]);
}

impl Simulation {
    /// A step of a schedule in which much is asked.
    fn asking_step(&mut self, choice: u8, detail: u8) {
        match choice % 16 {
            0 => self.send(SendMode::Queue, detail),
            1 | 2 => self.answer(detail),
            3 if detail.is_multiple_of(2) => {
                self.crash(detail.is_multiple_of(4), usize::from(detail / 8) % 4);
            }
            3 if detail.is_multiple_of(3) => self.stop(),
            3 if detail.is_multiple_of(5) => self.fail_write(),
            3 if detail.is_multiple_of(7) => self.interrupt(),
            _ => {
                let _ = self.advance(&Ways {
                    prepared: [
                        ASKS,
                        ASKS,
                        ASKS,
                        ASKS_A_MINUTE,
                        ASKS_A_MINUTE,
                        1,
                        NO_TOOLS,
                        FAILS,
                    ][usize::from(detail) % 8],
                    survey: detail,
                    summary: detail,
                    model: [0, CALL, CALL, 3, END][usize::from(detail) % 5],
                    tool: detail,
                });
            }
        }
        self.check_history();
    }
}

fn schedule() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec(any::<(u8, u8)>(), 0..200)
}

fn run(steps: Vec<(u8, u8)>) -> Simulation {
    let mut simulation = Simulation::new();
    for (choice, detail) in steps {
        simulation.asking_step(choice, detail);
    }
    simulation.settle();
    simulation
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_with_questions_keeps_the_invariants(steps in schedule()) {
        run(steps);
    }
}

#[test]
fn u_141_a_question_that_nobody_answers_in_time_is_denied_over_restarts() {
    let mut simulation = Simulation::with_two_questions_of(ASKS_A_MINUTE);
    let questions = simulation.questions();
    let open = simulation
        .machine
        .open_approvals(simulation.setup.conversation_id);
    let asked_at = open[0].asked_at.as_millis();
    // Half a minute later another process goes on: no new minute begins.
    simulation.now = asked_at + 30_000;
    simulation.crash(false, 0);
    simulation.prepared(ASKS_A_MINUTE);
    let due: Vec<i64> = simulation.alarms.iter().map(|(due, ..)| *due).collect();
    assert_eq!(due, [asked_at + 60_000, asked_at + 60_000]);
    simulation.reply_to(questions[1], ApprovalAnswer::Approve);
    simulation.write_all();
    assert!(simulation.alarm());
    simulation.settle();
    assert_eq!(
        simulation.said(),
        [
            "question Expired: nobody answered within 1 minute",
            "question Approved: ",
            "result Failed: not run: the user was asked, and nobody answered within 1 minute. Do without, or ask again later.",
            "result Ok: done",
        ]
    );
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn u_141_a_question_whose_time_is_over_at_a_start_is_denied_at_once() {
    let mut simulation = Simulation::with_two_questions_of(ASKS_A_MINUTE);
    simulation.now += 3_600_000;
    simulation.stop();
    simulation.prepared(ASKS_A_MINUTE);
    let due: Vec<i64> = simulation.alarms.iter().map(|(due, ..)| *due).collect();
    assert_eq!(due, [simulation.now; 2]);
    assert!(simulation.alarm() && simulation.alarm());
    simulation.settle();
    let question = "question Expired: nobody answered within 1 minute";
    let result = "result Failed: not run: the user was asked, and nobody answered within 1 minute. Do without, or ask again later.";
    assert_eq!(simulation.said(), [question, question, result, result]);
    assert_eq!(simulation.statuses(), [TurnStatus::Completed]);
}

#[test]
fn u_141_without_a_time_a_question_waits_for_ever() {
    let mut simulation = Simulation::with_two_questions();
    simulation.now += 100 * 365 * 24 * 3_600_000;
    assert!(!simulation.alarm());
    assert_eq!(simulation.questions().len(), 2);
}

/// A simulation in which nothing goes on after a restart proves nothing about it.
#[test]
fn the_schedules_come_to_answers_after_a_restart() {
    let mut runner = TestRunner::deterministic();
    let mut late_starts = 0;
    for _ in 0..200 {
        let steps = schedule().new_tree(&mut runner).unwrap().current();
        late_starts += run(steps).late_starts;
    }
    assert!(late_starts >= 50, "{late_starts}");
}

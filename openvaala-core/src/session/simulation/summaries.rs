//! Summaries that are made, looked at and taken back in between, and schedules that have many of them.

use std::collections::BTreeMap;

use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{ContextSummary, ItemKind};
use openvaala_protocol::rpc::params::session::SendMode;
use openvaala_protocol::usage::Usage;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use uuid::Uuid;

use super::Simulation;
use super::under_way::Ways;
use crate::agent::Failure;
use crate::context::Survey;
use crate::model::{ModelErrorKind, ModelEvent, PartKind, StopReason};
use crate::session::compaction::{Order, Wanted};
use crate::session::event::Event;

impl Simulation {
    pub(super) fn order(&mut self, detail: u8) {
        if let Some(failure) = self.needs_reload.take() {
            self.restart(Some(failure));
        }
        self.last_reply += 1;
        let reply = self.last_reply;
        self.replies.insert(reply, ItemId::from_uuid(Uuid::nil()));
        let wanted = [Wanted::Summary, Wanted::Preview, Wanted::Undo][usize::from(detail) % 3];
        let guidance = None;
        self.event(Event::Compact(Order {
            reply,
            wanted,
            guidance,
        }));
    }

    pub(super) fn surveyed(&mut self, detail: u8) {
        let Some((request, load)) = self.surveying.take() else {
            return;
        };
        let survey = Survey {
            context: load.then(|| self.disk.items.clone()),
            ..Survey::default()
        };
        let survey = if detail.is_multiple_of(8) {
            Err("no such folder".to_owned())
        } else {
            Ok(survey)
        };
        self.event(Event::Surveyed { request, survey });
    }

    pub(super) fn summary(&mut self, detail: u8) {
        let Some(request) = self.summarising.take() else {
            return;
        };
        let mut event = |event| self.event(Event::Summary { request, event });
        match detail % 8 {
            0 => event(Err(Failure::new(
                ModelErrorKind::Connection,
                "reset".to_owned(),
            ))),
            1 => event(Err(Failure::new(
                ModelErrorKind::ContextTooLong,
                "long".to_owned(),
            ))),
            kind => {
                let (part, length) = (0, [0, 1, 1, 1, 1, 10_000][usize::from(kind - 2)]);
                let text = "sum".repeat(length);
                event(Ok(ModelEvent::Started {
                    part,
                    kind: PartKind::Text,
                }));
                event(Ok(ModelEvent::Delta { part, text }));
                event(Ok(ModelEvent::Finished {
                    reason: StopReason::Done,
                    usage: Usage::default(),
                }));
            }
        }
    }

    /// A step of a schedule in which conversations become long.
    fn long_step(&mut self, choice: u8, detail: u8) {
        match choice % 16 {
            0 => self.send(SendMode::Queue, detail),
            1 => self.order(detail),
            2 if detail.is_multiple_of(4) => self.crash(detail.is_multiple_of(8), 1),
            2 if detail.is_multiple_of(3) => self.fail_write(),
            2 if detail.is_multiple_of(5) => self.interrupt(),
            2 => self.send(SendMode::Steer, detail),
            _ => {
                let _ = self.advance(&Ways {
                    prepared: 1,
                    survey: detail,
                    summary: detail,
                    // Some text, a tool call, an answer that leaves room or none, a request that is too long.
                    model: [0, 0, 0, 0, 2, 6, 102, 37][usize::from(detail) % 8],
                    tool: detail,
                });
            }
        }
        self.check_history();
    }
}

fn schedule() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec(any::<(u8, u8)>(), 0..400)
}

fn run(steps: Vec<(u8, u8)>) -> Simulation {
    let mut simulation = Simulation::new();
    for (choice, detail) in steps {
        simulation.long_step(choice, detail);
    }
    simulation.settle();
    simulation
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_with_summaries_keeps_the_invariants(steps in schedule()) {
        run(steps);
    }
}

#[test]
fn the_last_place_is_known_though_the_state_after_the_end_of_a_turn_is_missing() {
    // The last step is a crash after the turn's state; the last item written has not the last place.
    run(vec![
        (48, 0),
        (35, 0),
        (3, 0),
        (3, 40),
        (2, 215),
        (3, 0),
        (0, 0),
        (2, 1),
        (0, 0),
        (51, 0),
        (19, 0),
        (2, 244),
        (98, 77),
        (3, 0),
        (3, 0),
        (16, 0),
        (19, 0),
        (19, 0),
        (131, 0),
        (19, 0),
        (3, 72),
        (3, 180),
        (3, 48),
        (3, 30),
        (3, 0),
        (98, 77),
        (3, 0),
        (3, 0),
        (3, 0),
        (3, 0),
        (3, 49),
        (3, 59),
        (210, 11),
        (3, 0),
        (3, 0),
        (3, 220),
        (208, 0),
        (19, 0),
        (3, 92),
        (3, 24),
        (3, 128),
        (3, 174),
        (3, 0),
        (3, 65),
        (3, 0),
        (19, 0),
        (82, 8),
    ]);
}

/// A simulation that never comes to a summary proves nothing about them.
#[test]
fn the_schedules_come_to_summaries_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..200 {
        let steps = schedule().new_tree(&mut runner).unwrap().current();
        for item in run(steps).disk.items {
            let kind = match item.body::<ContextSummary>() {
                Some(summary) => format!("{:?}", summary.unwrap().trigger.unwrap()),
                None if item.head().kind == ItemKind::SummaryUndone => "Undone".to_owned(),
                None => continue,
            };
            *seen.entry(kind).or_default() += 1;
        }
    }
    let often = |kind: &str| seen.get(kind).is_some_and(|count| *count >= 20);
    let all = ["Share", "Overflow", "Manual", "Undone"];
    assert!(all.into_iter().all(often), "{seen:?}");
}

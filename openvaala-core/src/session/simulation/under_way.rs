//! How what is under way goes on, and comes to its end.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::item::InterruptionCause;
use pretty_assertions::assert_eq;

use super::{Simulation, open_calls};
use crate::session::event::Event;

/// How what is under way goes on: choices of a schedule.
pub(super) struct Ways {
    pub(super) prepared: u8,
    pub(super) survey: u8,
    pub(super) summary: u8,
    pub(super) model: u8,
    pub(super) tool: u8,
}

/// Ways that bring everything to an end.
const WAYS_OUT: Ways = Ways {
    prepared: 1,
    survey: 1,
    summary: 3,
    model: 7,
    tool: 0,
};

impl Simulation {
    /// Lets the next thing happen that is under way; whether there is one.
    pub(super) fn advance(&mut self, ways: &Ways) -> bool {
        if !self.commits.is_empty() {
            self.write();
        } else if self.finding {
            self.found();
        } else if self.preparing.is_some() {
            self.prepared(ways.prepared);
        } else if self.surveying.is_some() {
            self.surveyed(ways.survey);
        } else if self.summarising.is_some() {
            self.summary(ways.summary);
        } else if self.asking.is_some() {
            self.model(ways.model);
        } else if !self.tools.is_empty() {
            self.tool_ends(ways.tool);
        } else {
            return self.alarm();
        }
        true
    }

    /// The process ends in good order, and another begins.
    pub(super) fn stop(&mut self) {
        if let Some(failure) = self.needs_reload.take() {
            self.restart(Some(failure));
        }
        self.event(Event::Stop);
        let cause = InterruptionCause::Shutdown;
        self.event(Event::Interrupt { reply: None, cause });
        for _ in 0..20_000 {
            let running = self.machine.running_turn().is_some() && !self.machine.is_parked();
            if !running && !self.machine.is_compacting() && self.commits.is_empty() {
                self.restart(None);
                return;
            }
            assert!(self.advance(&WAYS_OUT), "nothing ends what runs");
        }
        panic!("a stop has no end");
    }

    /// Lets everything that is under way come to its end.
    pub(super) fn settle(&mut self) {
        if let Some(failure) = self.needs_reload.take() {
            self.restart(Some(failure));
        }
        for _ in 0..20_000 {
            if !self.advance(&WAYS_OUT) && !self.answer_all() {
                break;
            }
        }
        assert_eq!(
            self.machine.running_turn(),
            None,
            "nothing runs after all has ended"
        );
        let open = self
            .disk
            .turns
            .values()
            .filter(|turn| turn.status == TurnStatus::Running);
        assert_eq!(open.count(), 0, "every turn has an end");
        assert_eq!(
            open_calls(&self.disk.items),
            Vec::<String>::new(),
            "every call has a result"
        );
        self.expect_no_open_question();
        assert!(self.replies.is_empty(), "everybody got an answer");
        assert!(!self.machine.is_compacting(), "every summary has an end");
        for input in &self.acked {
            assert_eq!(
                self.disk.places_of(*input),
                1,
                "every acknowledged input is there once"
            );
        }
        let queue = &self.disk.session.as_ref().unwrap().queue;
        let held = self.disk.session.as_ref().unwrap().held;
        assert!(
            queue.is_empty() || held,
            "what waits is held, or it would have run"
        );
    }
}

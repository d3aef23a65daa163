//! Reports of a session that an agent has started, over crashes.

use openvaala_protocol::conversation::TurnStatus;
use openvaala_protocol::rpc::params::session::SendMode;
use pretty_assertions::assert_eq;

use super::{Simulation, machine, whole};
use crate::dao::record::{ChildState, State};

/// Choices of [`Simulation::model`]: words, the end of an answer.
const WORDS: u8 = 1;
const END: u8 = 6;
/// A choice of [`Simulation::prepared`]: everything runs.
const RUNS: u8 = 1;

impl Simulation {
    /// A session that `main` has started.
    fn of_child() -> Self {
        let mut simulation = Self::new();
        simulation.setup.child = Some(ChildState {
            path: "main/review".to_owned(),
            ..ChildState::default()
        });
        let setup = simulation.setup.clone();
        simulation.disk.metadata.push(State::Session(setup.clone()));
        simulation.disk.session = Some(setup.clone());
        simulation.machine = machine(whole(setup, &[]));
        simulation
    }

    /// A turn that has ended, whose end is about to be written.
    fn with_an_ended_turn() -> Self {
        let mut simulation = Self::of_child();
        simulation.send(SendMode::Queue, 0);
        simulation.write_all();
        simulation.prepared(RUNS);
        simulation.write_all();
        simulation.model(WORDS);
        simulation.model(END);
        assert_eq!(simulation.commits.len(), 1);
        simulation
    }

    /// What the state on disk has to report.
    fn reports(&self) -> Vec<(TurnStatus, String)> {
        let state = self.disk.session.as_ref();
        let child = state.and_then(|state| state.child.as_ref());
        let reports = child.map(|child| child.reports.clone());
        let reports = reports.unwrap_or_default().into_iter();
        reports.map(|report| (report.ended, report.text)).collect()
    }
}

#[test]
fn a_turn_is_reported_once_wherever_a_crash_cuts_the_commit_that_ends_it() {
    let states = Simulation::with_an_ended_turn().commits[0]
        .batch
        .states
        .len();
    assert_eq!(states, 2, "the turn's and the session's");
    for written in 0..=states {
        let mut simulation = Simulation::with_an_ended_turn();
        simulation.crash(true, written);
        simulation.write_all();
        let ended = if written == 0 {
            TurnStatus::Interrupted
        } else {
            TurnStatus::Completed
        };
        let used = simulation.disk.session.as_ref().unwrap().usage.input_tokens;
        let counted = (written > 0).then_some(u64::from(END) * 10);
        assert_eq!(used, counted, "after {written} states");
        let reports = simulation.reports();
        let statuses: Vec<TurnStatus> = reports.iter().map(|(ended, _)| *ended).collect();
        assert_eq!(statuses, [ended], "after {written} states: {reports:?}");
        assert!(!reports[0].1.is_empty(), "its last words are there");
        // A second crash adds nothing.
        simulation.crash(false, 0);
        simulation.write_all();
        assert_eq!(simulation.reports(), reports);
    }
}

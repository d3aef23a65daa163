//! Schedules: any, and those that have shown something.

use proptest::prelude::{ProptestConfig, any};
use proptest::proptest;

use super::Simulation;

fn run(steps: &[(u8, u8)]) {
    let mut simulation = Simulation::new();
    for (choice, detail) in steps {
        simulation.step(*choice, *detail);
    }
    simulation.settle();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_keeps_the_invariants(
        steps in proptest::collection::vec(any::<(u8, u8)>(), 0..200),
    ) {
        run(&steps);
    }
}

#[test]
fn the_first_turns_of_a_session_are_recovered_though_none_has_a_state() {
    run(&[(199, 1), (182, 0), (5, 0), (130, 0), (179, 0), (138, 160)]);
}

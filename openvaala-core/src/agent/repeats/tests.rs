use pretty_assertions::assert_eq;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

/// A call and its result, by small numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Round {
    call: u8,
    result: u8,
    goes_on: bool,
}

const fn round(call: u8, result: u8) -> Round {
    Round {
        call,
        result,
        goes_on: false,
    }
}

/// What an answer has led to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Said {
    Nothing,
    Warned,
    Ended,
}

fn call(number: u8) -> ToolCall {
    ToolCall::new(
        "c".to_owned(),
        "bash".to_owned(),
        format!("{{\"n\":{number}}}"),
    )
}

fn outcome(round: Round) -> ToolOutcome {
    let mut outcome = ToolOutcome::said(ToolResultStatus::Ok, round.result.to_string());
    outcome.goes_on = round.goes_on;
    outcome
}

/// Plays answers of one or more calls each, the results coming in the opposite order.
fn play(limit: u32, answers: &[Vec<Round>]) -> Vec<Said> {
    let mut repeats = Repeats::new(limit);
    let mut number = 0;
    let mut said = Vec::new();
    for answer in answers {
        let mut open = Vec::new();
        for round in answer {
            number += 1;
            let id = ItemId::from_uuid(Uuid::from_u128(number));
            repeats.asked(id, &call(round.call));
            open.push((id, *round));
        }
        let results = open.into_iter().rev();
        let warnings: Vec<_> = results
            .filter_map(|(id, round)| repeats.got(id, &outcome(round)))
            .collect();
        said.push(match (repeats.too_many(), warnings.as_slice()) {
            (Some(_), []) => Said::Ended,
            (None, [_]) => Said::Warned,
            (None, []) => Said::Nothing,
            other => panic!("{other:?}"),
        });
    }
    said
}

fn single(rounds: &[Round]) -> Vec<Vec<Round>> {
    rounds.iter().map(|round| vec![*round]).collect()
}

#[test]
fn the_same_call_with_the_same_result_is_warned_of_and_then_ends_the_turn() {
    let same = single(&[round(1, 1); 5]);
    assert_eq!(
        play(5, &same),
        [
            Said::Nothing,
            Said::Nothing,
            Said::Warned,
            Said::Nothing,
            Said::Ended
        ]
    );
    assert_eq!(
        play(3, &same)[..3],
        [Said::Nothing, Said::Warned, Said::Ended]
    );
    assert_eq!(play(2, &same)[..2], [Said::Nothing, Said::Ended]);
    assert_eq!(play(0, &same), [Said::Nothing; 5]);
}

#[test]
fn another_call_or_another_result_begins_anew() {
    let mut rounds = [round(1, 1); 9];
    (rounds[4], rounds[5].result) = (round(2, 1), 2);
    let said = play(5, &single(&rounds));
    assert!(!said.contains(&Said::Ended), "{said:?}");
    assert_eq!((said[2], said[8]), (Said::Warned, Said::Warned));
}

#[test]
fn looking_at_what_goes_on_is_no_repetition_and_ends_one() {
    let waits = Round {
        goes_on: true,
        ..round(1, 1)
    };
    assert_eq!(play(5, &single(&[waits; 20])), [Said::Nothing; 20]);
    let mut rounds = [round(1, 1); 8];
    rounds[4] = waits;
    let said = play(5, &single(&rounds));
    assert!(!said.contains(&Said::Ended), "{said:?}");
    let beside = vec![vec![round(1, 1), waits]; 10];
    assert_eq!(play(5, &beside), [Said::Nothing; 10]);
}

#[test]
fn equal_calls_of_one_answer_are_one_and_several_calls_repeat_together() {
    let many = vec![vec![round(1, 1); 10]];
    assert_eq!(play(5, &many), [Said::Nothing]);
    let pairs = vec![vec![round(1, 1), round(2, 2)]; 5];
    assert_eq!(play(5, &pairs)[4], Said::Ended);
}

#[test]
fn what_is_said_meanwhile_begins_anew() {
    let mut repeats = Repeats::new(2);
    let id = ItemId::from_uuid(Uuid::nil());
    let again = |repeats: &mut Repeats| {
        repeats.asked(id, &call(1));
        repeats.got(id, &outcome(round(1, 1)));
        repeats.too_many()
    };
    assert_eq!(again(&mut repeats), None);
    repeats.forget();
    assert_eq!(again(&mut repeats), None);
    let why = "bash was called 2 times in a row with the same arguments and the same result: say what to do instead";
    assert_eq!(again(&mut repeats), Some(why.to_owned()));
}

fn some_round() -> impl Strategy<Value = Round> {
    (0..2u8, 0..2u8, 0..6u8).prop_map(|(call, result, waits)| Round {
        call,
        result,
        goes_on: waits == 0,
    })
}

proptest! {
    /// Beside the plainest count there is: how long the row of equal answers is that ends here.
    #[test]
    fn it_says_what_counting_the_row_by_hand_says(
        limit in 0..7u32,
        rounds in prop::collection::vec(some_round(), 0..60),
    ) {
        let row = |end: usize| {
            let last = rounds[end];
            let row = rounds[..=end].iter().rev().take_while(|round| **round == last && !round.goes_on);
            u32::try_from(row.count()).unwrap()
        };
        let expected: Vec<Said> = (0..rounds.len()).map(|end| match row(end) {
            0 => Said::Nothing,
            times if limit > 0 && times >= limit => Said::Ended,
            times if times >= 2 && times < limit && times == limit.saturating_sub(2).max(2) => Said::Warned,
            _ => Said::Nothing,
        }).collect();
        prop_assert_eq!(play(limit, &single(&rounds)), expected);
    }
}

//! A history that grows gives the messages that all of it would give at once, however it came to be.

use std::collections::HashMap;

use openvaala_protocol::content::Content;
use openvaala_protocol::id::TurnId;
use openvaala_protocol::item::{Instructions, Item, ItemBody, ItemHead, UserMessage};
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use uuid::Uuid;

use super::random::{event, history};
use super::{call, id, result, said, shown, target, user};
use crate::context::{AssembleOptions, History, assemble};
use crate::model::Messages;

/// What is done to a history.
#[derive(Clone, Debug)]
enum Act {
    /// The first of the items that are not there yet is added.
    AddNext,
    /// Any of them is added.
    AddAny(prop::sample::Index),
    /// A request is made, to the usual model or to another one.
    Ask { of_other_account: bool },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => Just(Act::AddNext),
        1 => any::<prop::sample::Index>().prop_map(Act::AddAny),
        4 => prop::bool::weighted(0.1).prop_map(|of_other_account| Act::Ask { of_other_account }),
    ]
}

/// What belongs to a turn, of which there are two: the message that starts it, or instructions.
fn of_turn() -> impl Strategy<Value = (u128, bool)> {
    (1_u128..3, any::<bool>())
}

fn item_of_turn(pos: u64, (turn, is_message): (u128, bool)) -> Item {
    let turn = TurnId::from_uuid(Uuid::from_u128(turn));
    if is_message {
        let text = if pos.is_multiple_of(5) { " " } else { "hi" };
        in_turn(
            pos,
            turn,
            &UserMessage::new(vec![Content::text(text)], false),
        )
    } else {
        let path = format!("/{pos}");
        in_turn(pos, turn, &Instructions::new(path, "be kind".to_owned(), 7))
    }
}

fn in_turn<B: ItemBody>(pos: u64, turn: TurnId, body: &B) -> Item {
    let time = Timestamp::from_millis(0);
    let head = ItemHead::new(id(pos), B::KIND, Some(turn), pos, time, time);
    Item::new(head, body).unwrap()
}

fn asked(history: &mut History, account: Option<&str>) -> Messages {
    history.messages(&target(), account, &HashMap::new())
}

fn assembled(items: &[Item], account: Option<&str>) -> Messages {
    let (target, blobs) = (target(), HashMap::new());
    let mut options = AssembleOptions::new(items, &target, &blobs);
    options.account = account;
    assemble(options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn a_history_that_grows_gives_the_messages_of_all_its_items(
        events in prop::collection::vec((event(true), prop::option::weighted(0.3, of_turn())), 0..16),
        acts in prop::collection::vec(act(), 0..40),
        known in 0_usize..4,
    ) {
        let (events, of_turns): (Vec<_>, Vec<_>) = events.into_iter().unzip();
        let mut rest: Vec<Item> = history(&events)
            .into_iter()
            .zip(of_turns)
            .map(|(item, of_turn)| match of_turn {
                Some(of_turn) => item_of_turn(item.head().pos, of_turn),
                None => item,
            })
            .collect();
        let known = rest.drain(..known.min(rest.len())).collect();
        let mut history = History::new(known);
        for act in acts.into_iter().chain([Act::Ask { of_other_account: false }]) {
            match act {
                Act::AddNext if !rest.is_empty() => history.add(rest.remove(0)),
                Act::AddAny(at) if !rest.is_empty() => history.add(rest.remove(at.index(rest.len()))),
                Act::Ask { of_other_account } => {
                    let account = of_other_account.then_some("other");
                    let messages = asked(&mut history, account);
                    let expected = assembled(history.items(), account);
                    prop_assert_eq!(format!("{messages:#?}"), format!("{expected:#?}"));
                }
                Act::AddNext | Act::AddAny(_) => {}
            }
        }
    }
}

#[test]
fn a_later_request_holds_the_very_messages_of_the_earlier_one() {
    let mut history = History::new(vec![user(1, "hi"), call(2, "a"), result(3, 2, "a", "1")]);
    let first = asked(&mut history, None);
    history.add(call(4, "b"));
    history.add(result(5, 4, "b", "2"));
    let second = asked(&mut history, None);
    assert_eq!((first.len(), second.len()), (3, 5));
    let are_same = first.iter().zip(&second).all(|(a, b)| std::ptr::eq(a, b));
    assert!(are_same);
}

#[test]
fn a_late_result_changes_the_next_request_and_not_the_one_that_was_made() {
    let mut history = History::new(vec![
        user(1, "hi"),
        call(2, "a"),
        call(3, "b"),
        result(4, 3, "b", "2"),
    ]);
    let first = asked(&mut history, None);
    let unknown = "user: hi\nassistant: f#a {\"x\":1} | f#b {\"x\":1}\n\
                   results: f#a failed: interrupted: the outcome is not known | f#b: 2";
    assert_eq!(shown(&first), unknown);
    history.add(said(5, "ok"));
    history.add(result(6, 2, "a", "1"));
    let second = asked(&mut history, None);
    assert_eq!(shown(&first), unknown);
    assert_eq!(
        shown(&second),
        "user: hi\nassistant: f#a {\"x\":1} | f#b {\"x\":1}\nresults: f#a: 1 | f#b: 2\nassistant: ok"
    );
}

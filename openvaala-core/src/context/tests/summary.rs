use std::collections::HashSet;

use openvaala_protocol::content::Content;
use openvaala_protocol::id::TurnId;
use openvaala_protocol::item::{ContextSummary, Item, ItemBody, ItemHead, KeptMessage, ToolResult};
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use uuid::Uuid;

use super::{call, id, item, messages, result, said, shown, user};
use crate::context::{Replaced, Survey};

fn turn(number: u8) -> TurnId {
    TurnId::from_uuid(Uuid::from_u128(u128::from(number)))
}

/// The same item as one of a turn.
fn of_turn<B: ItemBody>(number: u8, item: &Item) -> Item {
    let body: B = item.body().unwrap().unwrap();
    let (pos, time) = (item.head().pos, Timestamp::from_millis(0));
    let head = ItemHead::new(item.head().id, B::KIND, Some(turn(number)), pos, time, time);
    Item::new(head, &body).unwrap()
}

fn summarised(items: &[Item], running: Option<TurnId>, room: usize) -> Option<ContextSummary> {
    let replaced = Replaced::find(items, running)?;
    Some(replaced.summarised("short".to_owned(), &Survey::default(), room))
}

fn kept(summary: &ContextSummary) -> Vec<String> {
    let texts = |message: &KeptMessage| message.content[0].as_text().unwrap().to_owned();
    summary.messages.iter().map(texts).collect()
}

/// Calls and results in any order that a log may have, and messages between them.
fn history(choices: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut open: Vec<(u64, String)> = Vec::new();
    for (pos, choice) in (1..).zip(choices) {
        items.push(match (choice % 4, open.pop()) {
            (0, of) => {
                open.extend(of);
                user(pos, &format!("message {pos}"))
            }
            (1, Some((of, name))) => result(pos, of, &name, "done"),
            (2, of) => {
                open.extend(of);
                said(pos, "hm")
            }
            (_, of) => {
                let name = format!("call {pos}");
                open.extend(of);
                open.push((pos, name.clone()));
                call(pos, &name)
            }
        });
    }
    items
}

proptest! {
    #[test]
    fn u_044_no_cut_parts_a_call_from_its_result(
        choices in proptest::collection::vec(any::<u8>(), 1..40),
        begin in 0usize..40,
    ) {
        let mut items = history(&choices);
        // A turn that has just begun is left alone, wherever its message stands.
        let begin = begin % items.len();
        items[begin] = of_turn::<openvaala_protocol::item::UserMessage>(
            1,
            &user(begin as u64 + 1, "the message of the turn"),
        );
        let Some(summary) = summarised(&items, Some(turn(1)), 1 << 20) else {
            return Ok(());
        };
        prop_assert!(summary.up_to <= begin as u64);
        let late: HashSet<_> = items
            .iter()
            .filter(|item| item.head().pos > summary.up_to)
            .filter_map(|item| item.body::<ToolResult>()?.ok())
            .map(|result| result.call)
            .collect();
        let parted = items
            .iter()
            .filter(|item| item.head().pos <= summary.up_to && late.contains(&item.head().id));
        prop_assert_eq!(parted.count(), 0);
        items.push(item(100, &summary));
        messages(&items);
    }

    #[test]
    fn u_036_all_that_the_user_said_is_kept_while_there_is_room(
        choices in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        let items = history(&choices);
        let Some(summary) = summarised(&items, None, 1 << 20) else {
            return Ok(());
        };
        let said: Vec<String> = items
            .iter()
            .filter_map(|item| item.body::<openvaala_protocol::item::UserMessage>())
            .map(|message| message.unwrap().content[0].as_text().unwrap().to_owned())
            .collect();
        prop_assert_eq!(kept(&summary), said);
    }

    #[test]
    fn a_transcript_is_no_longer_than_there_is_room(
        choices in proptest::collection::vec(any::<u8>(), 1..40),
        room in 0usize..600,
    ) {
        let items = history(&choices);
        if let Some(replaced) = Replaced::find(&items, None) {
            let text = replaced.transcript(None, room);
            // The frame, and a gap and two line ends an entry.
            prop_assert!(text.len() <= room + 100 + 14 * choices.len(), "{text}");
        }
    }
}

#[test]
fn the_newest_message_is_kept_however_long_it_is_and_older_ones_as_far_as_there_is_room() {
    let items = [
        user(1, "far too long"),
        user(2, "old"),
        said(3, "hm"),
        user(4, "the newest, which is the longest of all"),
        said(5, "hm"),
    ];
    let summary = summarised(&items, None, 5).unwrap();
    assert_eq!(
        kept(&summary),
        ["old", "the newest, which is the longest of all"]
    );
}

#[test]
fn a_second_summary_carries_what_the_first_has_kept() {
    let mut items = vec![user(1, "count"), said(2, "one")];
    let first = summarised(&items, None, 100).unwrap();
    assert_eq!(first.up_to, 2);
    items.extend([item(3, &first), user(4, "on"), said(5, "two")]);
    let second = summarised(&items, None, 100).unwrap();
    assert_eq!(
        (second.up_to, kept(&second)),
        (5, vec!["count".to_owned(), "on".to_owned()])
    );
    items.push(item(6, &second));
    assert_eq!(
        shown(&messages(&items)),
        "user: Summary of the conversation so far:/<summary>/short/</summary>//What the user said, word for word, \
         oldest first:/<user_message>/count/</user_message>/<user_message>/on/</user_message>"
    );
    assert_eq!(
        summarised(&items, None, 100),
        None,
        "nothing was done since"
    );
}

#[test]
fn a_message_that_the_model_has_not_answered_is_no_reason_for_a_summary() {
    assert_eq!(summarised(&[user(1, "hi")], None, 100), None);
    let kept = vec![KeptMessage::new(id(1), vec![Content::text("hi")])];
    let mut summary = ContextSummary::default();
    (summary.up_to, summary.messages) = (1, kept);
    assert_eq!(
        summarised(&[item(2, &summary), user(3, "hi")], None, 100),
        None
    );
}

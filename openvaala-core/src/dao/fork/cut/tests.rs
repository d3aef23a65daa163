use openvaala_protocol::content::Content;
use openvaala_protocol::item::{
    AgentChange, AssistantMessage, ItemBody, ItemHead, ToolResultStatus, UserMessage,
};
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use uuid::Uuid;

use super::*;

fn id(pos: u64) -> ItemId {
    ItemId::from_uuid(Uuid::from_u128(u128::from(pos)))
}

fn turn(n: u128) -> TurnId {
    TurnId::from_uuid(Uuid::from_u128(1_000 + n))
}

fn item<B: ItemBody>(pos: u64, of: u128, body: &B) -> Item {
    let time = Timestamp::EPOCH;
    let head = ItemHead::new(id(pos), B::KIND, Some(turn(of)), pos, time, time);
    Item::new(head, body).unwrap()
}

fn said(pos: u64, of: u128) -> Item {
    item(pos, of, &UserMessage::new(vec![Content::text("x")], false))
}

fn call(pos: u64, of: u128) -> Item {
    let arguments = "{}".to_owned();
    item(
        pos,
        of,
        &ToolCall::new(format!("c{pos}"), "t".into(), arguments),
    )
}

fn result(pos: u64, of: u128, call: u64) -> Item {
    let content = vec![Content::text("x")];
    let status = ToolResultStatus::Ok;
    item(
        pos,
        of,
        &ToolResult::new(id(call), format!("c{call}"), status, content),
    )
}

/// Two calls at once, of which the second one ends first; then a turn that may run.
fn cuts(running: bool) -> Cuts {
    let mut cuts = Cuts::default();
    for item in [
        said(1, 1),
        call(2, 1),
        call(3, 1),
        result(5, 1, 3),
        result(4, 1, 2),
        said(6, 2),
        said(7, 2),
    ] {
        cuts.take(&item);
    }
    cuts.finish(|it| !running || it != turn(2));
    cuts
}

fn at(cuts: &Cuts, pos: Option<u64>) -> Result<(u64, Option<TurnId>), String> {
    let session = SessionId::from_uuid(Uuid::from_u128(9));
    let cut = cuts.at(pos.map(id), session);
    cut.map(|cut| (cut.pos, cut.within))
        .map_err(|error| error.to_string())
}

#[test]
fn a_cut_never_separates_a_call_from_its_result() {
    let cuts = cuts(false);
    assert_eq!(at(&cuts, Some(1)), Ok((1, Some(turn(1)))));
    for pos in [2, 3, 4] {
        let item = id(pos);
        let said = format!(
            "cannot fork behind item {item}: it would separate a tool call from its result; \
             the nearest that can be are {} before it and {} after it",
            id(1),
            id(5)
        );
        assert_eq!(at(&cuts, Some(pos)), Err(said));
    }
    assert_eq!(at(&cuts, Some(5)), Ok((5, None)));
    assert_eq!(at(&cuts, Some(6)), Ok((6, Some(turn(2)))));
    assert_eq!(at(&cuts, None), Ok((7, None)));
}

#[test]
fn a_turn_that_runs_is_not_cut_and_left_out_by_itself() {
    let cuts = cuts(true);
    let item = id(7);
    let before = id(5);
    let said = format!(
        "cannot fork behind item {item}: it lies in a turn that runs; the nearest that can be is {before} before it"
    );
    assert_eq!(at(&cuts, Some(7)), Err(said));
    assert_eq!(at(&cuts, None), Ok((5, None)));
}

#[test]
fn turns_that_have_begun_since_the_states_were_read_are_left_out() {
    let mut cuts = Cuts::default();
    for item in [said(1, 1), said(2, 2), said(3, 3), said(4, 4)] {
        cuts.take(&item);
    }
    // The state of the first is lost, that of the third says that it runs, and the fourth has none.
    cuts.finish(|it| it == turn(2));
    assert_eq!(at(&cuts, None), Ok((2, None)));
}

#[test]
fn a_call_without_a_result_stands_in_no_way() {
    let mut cuts = Cuts::default();
    for item in [said(1, 1), call(2, 1), said(3, 2)] {
        cuts.take(&item);
    }
    cuts.finish(|_| true);
    assert_eq!(at(&cuts, Some(2)), Ok((2, None)));
    let nothing = Cuts::default();
    let said = "there is nothing to fork: no turn has ended in this session";
    assert_eq!(at(&nothing, None), Err(said.to_owned()));
    let session = SessionId::from_uuid(Uuid::from_u128(9));
    let said = format!("session {session} has no item {}", id(8));
    assert_eq!(at(&cuts, Some(8)), Err(said));
}

#[test]
fn a_change_within_a_turn_divides_it() {
    let mut cuts = Cuts::default();
    let time = Timestamp::EPOCH;
    let change = AgentChange::new(None, Some("a".to_owned()));
    let head = ItemHead::new(id(2), AgentChange::KIND, None, 2, time, time);
    let change = Item::new(head, &change).unwrap();
    for item in [said(1, 1), change, said(3, 1)] {
        cuts.take(&item);
    }
    cuts.finish(|_| true);
    assert_eq!(at(&cuts, Some(2)), Ok((2, Some(turn(1)))));
    assert_eq!(at(&cuts, Some(3)), Ok((3, None)));
}

#[test]
fn an_answer_may_be_cut_from_the_calls_behind_it() {
    let mut cuts = Cuts::default();
    let answer = AssistantMessage::new("I look.".to_owned(), false);
    for item in [said(1, 1), item(2, 1, &answer), call(3, 1), result(4, 1, 3)] {
        cuts.take(&item);
    }
    cuts.finish(|_| true);
    assert_eq!(at(&cuts, Some(2)), Ok((2, Some(turn(1)))));
}

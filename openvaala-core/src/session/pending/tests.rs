use openvaala_protocol::content::Content;
use openvaala_protocol::id::ItemId;
use openvaala_protocol::time::Timestamp;
use pretty_assertions::assert_eq;
use uuid::Uuid;

use super::*;
use crate::conversation::Input;

fn id(n: u128) -> ItemId {
    ItemId::from_uuid(Uuid::from_u128(n))
}

fn queue(ids: impl IntoIterator<Item = u128>, held: bool) -> Queue {
    let mut queue = Queue::new(Vec::new(), held);
    for n in ids {
        let input = Input::new(id(n), vec![Content::text(format!("input {n}"))]);
        queue.push(input, false, Timestamp::EPOCH);
    }
    queue
}

fn waiting(queue: &Queue) -> Vec<ItemId> {
    queue.inputs().iter().map(|input| input.item_id).collect()
}

#[test]
fn an_order_has_to_name_each_waiting_input_once() {
    let mut inputs = queue([1, 2, 3], false);
    assert_eq!(inputs.reorder(&[id(3), id(1), id(2)]), Ok(()));
    assert_eq!(waiting(&inputs), [id(3), id(1), id(2)]);
    let refused = |said: String| Err(Refusal::QueueChanged(said));
    let missing = refused(format!("{} waits as well", id(2)));
    assert_eq!(inputs.reorder(&[id(1), id(3)]), missing);
    let foreign = refused(format!("{} does not wait any more, or never did", id(4)));
    assert_eq!(inputs.reorder(&[id(1), id(2), id(3), id(4)]), foreign);
    let double = refused(format!("{} is named twice", id(1)));
    assert_eq!(inputs.reorder(&[id(1), id(1), id(2)]), double);
    assert_eq!(waiting(&inputs), [id(3), id(1), id(2)]);
}

#[test]
fn nothing_is_held_once_all_is_withdrawn() {
    let mut inputs = queue([1, 2], true);
    assert_eq!(inputs.withdraw(&[id(1)]), [id(1)]);
    assert!(inputs.held);
    assert_eq!(inputs.withdraw(&[id(2)]), [id(2)]);
    assert!(!inputs.held);
}

#[test]
fn an_edit_keeps_what_it_does_not_name() {
    let mut inputs = queue([1], false);
    inputs.update(id(1), None, Some(true)).unwrap();
    let content = vec![Content::text("something else")];
    inputs.update(id(1), Some(content.clone()), None).unwrap();
    let input = &inputs.inputs()[0];
    assert_eq!((&input.content, input.steer), (&content, true));
}

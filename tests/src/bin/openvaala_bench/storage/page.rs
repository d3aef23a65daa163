//! Pages of a history, compared with what was written.

use openvaala_core::protocol::event::Entry;
use openvaala_core::protocol::rpc::params::session::ItemsOrder;
use openvaala_core::{ConversationHandle, ItemsQuery};

use crate::Failure;
use crate::generate::{At, Author};

/// How many items a page has.
pub(super) const PAGE: u64 = 100;

/// The query for the page after a number in a direction.
pub(super) fn query(order: ItemsOrder, cursor: u64) -> ItemsQuery {
    ItemsQuery {
        order,
        cursor,
        limit: PAGE as usize,
        ..ItemsQuery::default()
    }
}

/// The numbers that such a page has to have.
fn expected(query: &ItemsQuery, last: u64) -> Vec<u64> {
    match query.order {
        ItemsOrder::Ascending => (query.cursor + 1..=last.min(query.cursor + PAGE)).collect(),
        ItemsOrder::Descending => {
            let end = if query.cursor == 0 {
                last + 1
            } else {
                query.cursor
            };
            (end.saturating_sub(PAGE).max(1)..end).rev().collect()
        }
    }
}

/// Reads a page and gives how many milliseconds that took.
///
/// # Errors
/// Also if an item is not the one that was written.
pub(super) async fn read(
    conversation: &ConversationHandle,
    query: ItemsQuery,
    author: &Author,
    at: At,
) -> Result<f64, Failure> {
    let began = std::time::Instant::now();
    let page = conversation.items(query).await?;
    let took = super::ms(began);
    let wanted = expected(&query, author.plan.items_of(at));
    if page.items.len() != wanted.len() {
        let found = page.items.len();
        return Err(format!("a page has {found} entries and not {}", wanted.len()).into());
    }
    for (entry, wanted) in page.items.iter().zip(wanted) {
        let Entry::Item { seq, item, .. } = entry else {
            return Err(format!("an entry is no item: {entry:?}").into());
        };
        if *seq != wanted || *item != author.item(at, wanted)? {
            return Err(format!("item {wanted} is not what was written: {seq}, {item:?}").into());
        }
    }
    Ok(took)
}

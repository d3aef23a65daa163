//! What an open conversation needs, read from the ends of its streams however long they are.
//!
//! The metadata stream is read backwards until every state that matters was met: that of the conversation, those
//! of its sessions and of their last turns. A session writes its states all the time; that of the conversation is written
//! again before it lies too far back, so that this takes about [`REFRESH_AFTER`] entries. A log without such
//! repetitions is read further. Of the items only those are read that tell where a session stands.

mod items;
mod states;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, ItemId, SessionId};
use openvaala_protocol::item::Item;
use openvaala_storage::{Entry as LogEntry, Error, LogStorage, Order, ReadOptions, StreamKey};

pub(crate) use self::items::{Context, RecentItems};
use self::states::Backwards;
pub(crate) use self::states::{Accepted, LatestStates};
use super::query::wire_entry;
use super::{conversation_path, items_key, metadata_key};

/// A conversation's state that lies more than this many entries before the end of the metadata is written again.
pub(crate) const REFRESH_AFTER: u64 = 100;

/// How many entries of metadata are read at a time.
const STATES: usize = 128;
/// How many items are read at a time: few, since one may have megabytes.
const ITEMS: usize = 64;

/// Reads the latest states of a conversation from the end of its metadata; `None` if there is no such conversation.
pub(crate) async fn states(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
) -> Result<Option<LatestStates>, Error> {
    let names = log.list(Some(&conversation_path(id)?)).await?.streams;
    let with_items: BTreeSet<SessionId> = names
        .iter()
        .filter_map(|name| name.as_str().parse().ok())
        .collect();
    let mut states = Backwards::new(with_items);
    let key = metadata_key(id)?;
    let found = each_backwards(log, &key, STATES, |entry| states.take(&entry)).await?;
    let mut latest = states.finish();
    latest.states.check_id(id);
    Ok(found.then_some(latest))
}

/// Reads the newest items of a session, as many as it takes to finish what was left open.
///
/// Gives the number of the last entry as well.
pub(crate) async fn recent_items(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    mut recent: RecentItems,
) -> Result<(Vec<Item>, u64), Error> {
    let (session, mut last) = (recent.session(), 0);
    let key = items_key(id, session)?;
    // Most often the last one says all: a page of many may be large.
    for limit in [1, ITEMS] {
        let cursor = recent.cursor();
        each_backwards_from(log, &key, cursor, limit, |entry| {
            last = last.max(entry.seq);
            let seq = entry.seq;
            recent.take(seq, readable(session, entry)) && limit > 1
        })
        .await?;
        if recent.is_complete() {
            break;
        }
    }
    Ok((recent.finish(), last))
}

/// Reads what a session's next request is made from: its items from the last summary on, oldest first.
pub(crate) async fn context(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
) -> Result<Vec<Item>, Error> {
    let mut context = Context::default();
    each_backwards(log, &items_key(id, session)?, ITEMS, |entry| {
        readable(session, entry).is_none_or(|item| context.take(item))
    })
    .await?;
    Ok(context.finish())
}

/// Reads a session's items from the last one back to the one at a place, as it was written last; `None` if there is none.
pub(crate) async fn item_at(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
    pos: u64,
) -> Result<Option<Item>, Error> {
    let mut found = None;
    each_backwards(log, &items_key(id, session)?, ITEMS, |entry| {
        found = readable(session, entry).filter(|item| item.head().pos == pos);
        found.is_none()
    })
    .await?;
    Ok(found)
}

/// Reads all of a session's items to find out which of those ids are among them.
pub(crate) async fn which_are_items(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
    mut wanted: HashSet<ItemId>,
) -> Result<HashSet<ItemId>, Error> {
    let mut found = HashSet::new();
    each_backwards(log, &items_key(id, session)?, ITEMS, |entry| {
        let item = readable(session, entry).map(|item| item.head().id);
        found.extend(item.and_then(|id| wanted.take(&id)));
        !wanted.is_empty()
    })
    .await?;
    Ok(found)
}

/// Reads all of the metadata for the inputs that a session has accepted.
pub(crate) async fn accepted_inputs(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    session: SessionId,
) -> Result<Accepted, Error> {
    let mut accepted = Accepted::default();
    each_backwards(log, &metadata_key(id)?, STATES, |entry| {
        accepted.take(&entry, session);
        true
    })
    .await?;
    Ok(accepted)
}

/// The latest states of those entries, oldest first, and how many of them were read.
#[cfg(test)]
pub(crate) fn latest_of(
    entries: &[LogEntry],
    with_items: BTreeSet<SessionId>,
) -> (LatestStates, usize) {
    let mut states = Backwards::new(with_items);
    let more = |entry: &LogEntry| states.take(entry);
    let read = entries.iter().rev().map(more).position(|more| !more);
    (states.finish(), read.map_or(entries.len(), |last| last + 1))
}

fn readable(session: SessionId, entry: LogEntry) -> Option<Item> {
    match wire_entry(session, entry) {
        Entry::Item { item, .. } => Some(item),
        _ => None,
    }
}

/// Calls `visit` for the entries of a stream from the last one on until it says `false`; says whether there is such a
/// stream.
async fn each_backwards(
    log: &Arc<dyn LogStorage>,
    key: &StreamKey,
    limit: usize,
    visit: impl FnMut(LogEntry) -> bool,
) -> Result<bool, Error> {
    each_backwards_from(log, key, 0, limit, visit).await
}

async fn each_backwards_from(
    log: &Arc<dyn LogStorage>,
    key: &StreamKey,
    mut cursor: u64,
    limit: usize,
    mut visit: impl FnMut(LogEntry) -> bool,
) -> Result<bool, Error> {
    loop {
        let options = ReadOptions::default()
            .order(Order::Descending)
            .cursor(cursor)
            .limit(limit);
        let page = match log.read(key, options).await {
            Ok(page) => page,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        for entry in page.entries {
            if !visit(entry) {
                return Ok(true);
            }
        }
        let Some(next) = page.next else {
            return Ok(true);
        };
        cursor = next;
    }
}

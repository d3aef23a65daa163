//! What lies before a subscription, read beside the feed.

use std::sync::Arc;

use openvaala_protocol::conversation::Conversation;
use openvaala_protocol::event::{Entry, SessionSnapshot, Snapshot};
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_storage::{LogStorage, Order, ReadOptions};

use super::View;
use crate::conversation::cursor::Position;
use crate::dao::query;
use crate::error::RuntimeError;

/// How many items of a session a snapshot has.
const SNAPSHOT_ITEMS: usize = 100;
/// How many missing entries are given one by one; beyond that a snapshot is less.
const REPLAY: u64 = 1_000;

/// Exactly the entries between two positions, or a snapshot of the later one.
pub(super) async fn read_up_to(
    id: ConversationId,
    log: &Arc<dyn LogStorage>,
    view: View,
    from: Option<Position>,
) -> Result<(Option<Snapshot>, Vec<Entry>), RuntimeError> {
    if let Some(from) = from {
        // A cursor beyond the log comes from another life of it (a restored backup): begin anew.
        if let Some(missing) = missing(&from, &view.position)
            && missing <= REPLAY
        {
            return Ok((None, entries_between(id, log, &from, &view).await?));
        }
    }
    Ok((Some(snapshot(id, log, view).await?), Vec::new()))
}

/// How many entries lie between two positions; `None` if the first is not before the second.
fn missing(from: &Position, to: &Position) -> Option<u64> {
    let known = |id: &SessionId| to.sessions.contains_key(id) || from.session(*id) == 0;
    if !from.sessions.keys().all(known) {
        return None;
    }
    let metadata = to.metadata.checked_sub(from.metadata)?;
    to.sessions.iter().try_fold(metadata, |sum, (id, seq)| {
        Some(sum + seq.checked_sub(from.session(*id))?)
    })
}

async fn entries_between(
    id: ConversationId,
    log: &Arc<dyn LogStorage>,
    from: &Position,
    view: &View,
) -> Result<Vec<Entry>, RuntimeError> {
    let mut entries = Vec::new();
    for (session, to) in &view.position.sessions {
        let mut cursor = from.session(*session);
        while cursor < *to {
            let (page, next) = query::page(log, id, *session, up_to(cursor, *to)).await?;
            entries.extend(page);
            // A page may end before its limit: only the lack of a next one is the end.
            cursor = next.unwrap_or(*to);
        }
    }
    let newest = view.conversation();
    let mut cursor = from.metadata;
    while cursor < view.position.metadata {
        let options = up_to(cursor, view.position.metadata);
        let (page, next) = query::metadata_page(log, id, options).await?;
        entries.extend(page.into_iter().map(|entry| match entry {
            // Whether it runs, and since when it is as it is, only the feed knows.
            Entry::Conversation { seq, conversation } => Entry::Conversation {
                seq,
                conversation: Conversation {
                    status: newest.status,
                    updated_at: newest.updated_at,
                    damaged: newest.damaged.clone(),
                    ..conversation
                },
            },
            other => other,
        }));
        cursor = next.unwrap_or(view.position.metadata);
    }
    Ok(entries)
}

/// Reads the entries after `from`, `to` the last of them.
pub(super) fn up_to(from: u64, to: u64) -> ReadOptions {
    let count = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    ReadOptions::default().cursor(from).limit(count)
}

async fn snapshot(
    id: ConversationId,
    log: &Arc<dyn LogStorage>,
    view: View,
) -> Result<Snapshot, RuntimeError> {
    let conversation = view.conversation();
    let mut sessions = Vec::new();
    for session in view.sessions {
        let (mut items, mut before) = (Vec::new(), None);
        let last = view.position.session(session.id);
        if last > 0 {
            let options = ReadOptions::default()
                .order(Order::Descending)
                .cursor(last + 1)
                .limit(SNAPSHOT_ITEMS);
            (items, before) = query::page(log, id, session.id, options).await?;
            items.reverse();
        }
        let turn = view
            .last_turns
            .get(&session.id)
            .map(|turn| (**turn).clone());
        let questions = view.questions.of(session.id);
        sessions.push(SessionSnapshot {
            session,
            turn,
            items,
            before,
            questions,
        });
    }
    Ok(Snapshot {
        conversation,
        sessions,
    })
}

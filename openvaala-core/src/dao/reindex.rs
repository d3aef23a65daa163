//! Brings the index in step with the log, for what differs or for all of it.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use openvaala_protocol::id::ConversationId;
use openvaala_storage::{Error, ListOptions, LogStorage, Order, SortBy};
use tokio::sync::mpsc;

use super::index::{CONVERSATION, Index, Row};
use super::{conversations_path, metadata_key, query, trash};
use crate::runtime::{Progress, ReindexReport};

/// How many conversations are read at the same time.
const AT_ONCE: usize = 8;

/// Which rows are made anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extent {
    /// Those whose log has changed since they were made.
    Changed,
    /// All of them.
    All,
}

enum Outcome {
    Kept,
    Made,
    /// The directory holds no conversation (any longer).
    Nothing(ConversationId),
    Damaged(String),
}

/// Makes rows for conversations in the log and drops rows of those that are not there any more.
///
/// Conversations that cannot be read are named in the report; their files stay untouched.
pub(crate) async fn reindex(
    log: &Arc<dyn LogStorage>,
    index: &Index,
    extent: Extent,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<ReindexReport, Error> {
    let known = known_rows(index).await?;
    let listing = log.list(Some(&conversations_path()?)).await?;
    let names = listing
        .paths
        .iter()
        .filter_map(|path| path.as_str().rsplit('/').next());
    let ids: Vec<ConversationId> = names.filter_map(|name| name.parse().ok()).collect();
    for gone in known.keys().filter(|id| !ids.contains(id)) {
        index.remove(*gone);
    }
    let total = ids.len() as u64;
    let mut report = ReindexReport::default();
    let mut done = 0;
    let mut outcomes = futures::stream::iter(ids)
        .map(|id| {
            one(
                log,
                index,
                id,
                known.get(&id).filter(|_| extent == Extent::Changed),
            )
        })
        .buffer_unordered(AT_ONCE);
    while let Some(outcome) = outcomes.next().await {
        done += 1;
        match outcome {
            Outcome::Kept | Outcome::Made => report.conversations += 1,
            Outcome::Nothing(id) => index.remove(id),
            Outcome::Damaged(what) => report.damaged.push(what),
        }
        if let Some(progress) = &progress {
            // Only the newest figure matters to who listens: a full channel may lose some.
            let _ = progress.try_send(Progress { done, total });
        }
    }
    report.damaged.sort();
    index.flush().await;
    Ok(report)
}

/// Counts the rows that do not say what the log says, or that are missing or too many.
pub(crate) async fn stale(log: &Arc<dyn LogStorage>, index: &Index) -> Result<u64, Error> {
    let mut known = known_rows(index).await?;
    let listing = log.list(Some(&conversations_path()?)).await?;
    let mut stale = 0;
    for path in &listing.paths {
        let name = path.as_str().rsplit('/').next().unwrap_or_default();
        let Ok(id) = name.parse::<ConversationId>() else {
            continue;
        };
        let Some(fingerprint) = log.fingerprint(&metadata_key(id)?).await? else {
            continue;
        };
        if known
            .remove(&id)
            .is_some_and(|row| row == fingerprint.as_str())
        {
            continue;
        }
        // One that is deleted or cannot be read has no row.
        let states = query::states(log, id).await?;
        if states.is_some_and(|states| states.wire_conversation().is_some()) {
            stale += 1;
        }
    }
    Ok(stale + known.len() as u64)
}

async fn known_rows(index: &Index) -> Result<HashMap<ConversationId, String>, Error> {
    let mut known = HashMap::new();
    let mut cursor = None;
    loop {
        let options = ListOptions::default()
            .sort(SortBy::Key)
            .order(Order::Ascending)
            .cursor(cursor)
            .limit(1_000);
        let page = index.records.list(CONVERSATION, options).await?;
        for record in &page.records {
            if let Ok(id) = record.key.parse() {
                // A row that cannot be read has no fingerprint and so is made anew.
                let fingerprint = Row::parse(record).map(|row| row.fingerprint);
                known.insert(id, fingerprint.unwrap_or_default());
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(known);
        }
    }
}

async fn one(
    log: &Arc<dyn LogStorage>,
    index: &Index,
    id: ConversationId,
    known: Option<&String>,
) -> Outcome {
    match try_one(log, index, id, known).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Damaged(format!("conversation {id}: {error}")),
    }
}

/// Makes the row of one conversation anew.
pub(crate) async fn reindex_one(
    log: &Arc<dyn LogStorage>,
    index: &Index,
    id: ConversationId,
) -> Result<(), Error> {
    try_one(log, index, id, None).await?;
    Ok(())
}

async fn try_one(
    log: &Arc<dyn LogStorage>,
    index: &Index,
    id: ConversationId,
    known: Option<&String>,
) -> Result<Outcome, Error> {
    let Some(fingerprint) = log.fingerprint(&metadata_key(id)?).await? else {
        return Ok(Outcome::Nothing(id));
    };
    if known.is_some_and(|known| known == fingerprint.as_str()) {
        return Ok(Outcome::Kept);
    }
    let Some(states) = query::states(log, id).await? else {
        return Ok(Outcome::Nothing(id));
    };
    if states.deleted {
        // A crash came between the entry and the move, or the move is on its way right now.
        trash::move_in(log, id).await?;
        return Ok(Outcome::Nothing(id));
    }
    let Some(conversation) = states.wire_conversation() else {
        let damage = states.damaged.join("; ");
        return Ok(Outcome::Damaged(format!(
            "conversation {id}: no state can be read: {damage}"
        )));
    };
    let waiting = states
        .sessions
        .values()
        .any(|session| !session.queue.is_empty());
    index.put(states.last, Row::new(conversation, waiting, &fingerprint));
    Ok(Outcome::Made)
}

//! Brings the rows of an index in step with the log, for what differs or for all of it.
//!
//! Only metadata streams are read, some at a time, page by page: memory does not grow with what was said.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;

use futures::future::{join, try_join};
use futures::{Stream, StreamExt, stream};
use openvaala_protocol::id::ConversationId;
use openvaala_storage::{
    Error, Fingerprint, ListOptions, Listing, LogStorage, Order, Record, RecordStorage, SortBy,
};
use tokio::sync::mpsc;

use super::index::{CONVERSATION, Index, Row, describe};
use super::query::{self, States};
use super::staging::Staging;
use super::{conversations_path, metadata_key, salvage, trash};
use crate::runtime::{Progress, ReindexReport};

/// How many conversations are read at the same time.
const AT_ONCE: usize = 8;
/// How many are looked at in one go for whether they must be read, and how many goes there are at the same time.
const LOOKS: usize = 256;
const GOES: usize = 4;
/// How many rows are written at once, and the most that wait for it.
const BATCH: usize = 500;

/// Which rows are made anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extent {
    /// Those whose log has changed since they were made.
    Changed,
    /// All of them.
    All,
}

/// Where the rows go.
pub(crate) enum Target<'a> {
    /// To the index that serves, whose rows lie in these records.
    Serving(&'a Index, &'a dyn RecordStorage),
    /// To records that nobody reads yet.
    Beside(&'a dyn RecordStorage),
}

/// What came of looking at all conversations.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) report: ReindexReport,
    /// Of the rows that were made: those with something left to do.
    pub(crate) active: Vec<ConversationId>,
}

/// What the log says of one conversation.
enum Found {
    /// A row, the metadata entry that it was made from, and what of the conversation cannot be read.
    Row(Box<Row>, u64, Option<String>),
    /// The directory holds no conversation (any longer).
    Nothing,
    /// The row is as it should be.
    Unchanged,
    /// Nothing can be read, but there is a row from better times.
    Unreadable(String),
}

/// Makes rows for conversations in the log and drops rows of those that are not there any more.
///
/// Conversations that cannot be read are named in the report; their files stay untouched.
pub(crate) async fn reindex(
    log: &Arc<dyn LogStorage>,
    staging: &Staging,
    target: Target<'_>,
    extent: Extent,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<Scan, Error> {
    let (known, mut ids) = try_join(known_rows(target.records()), ids(log, staging)).await?;
    // A conversation may have come between the two: one without a directory is gone only if its log says so.
    let gone = gone(&known, &ids);
    ids.extend(gone);
    let mut scanning = Scanning {
        total: ids.len() as u64,
        done: 0,
        progress,
        scan: Scan::default(),
        rows: Rows::new(target),
    };
    let wanted = if extent == Extent::Changed {
        Some(&known)
    } else {
        None
    };
    let mut reads = looks(log, &ids, wanted)
        .map(|(id, is_unchanged)| {
            let is_known = known.contains_key(&id);
            async move {
                if is_unchanged {
                    return (id, Found::Unchanged);
                }
                let found = find(log, id).await;
                (
                    id,
                    found.unwrap_or_else(|error| unreadable(id, is_known, &error)),
                )
            }
        })
        .buffer_unordered(AT_ONCE);
    while let Some((id, found)) = reads.next().await {
        scanning.take(id, found).await?;
    }
    drop(reads);
    scanning.end().await
}

struct Scanning<'a> {
    total: u64,
    done: u64,
    progress: Option<mpsc::Sender<Progress>>,
    scan: Scan,
    rows: Rows<'a>,
}

impl Scanning<'_> {
    /// Takes in what was found of a conversation.
    async fn take(&mut self, id: ConversationId, found: Found) -> Result<(), Error> {
        self.done += 1;
        let report = &mut self.scan.report;
        match found {
            Found::Unchanged => report.conversations += 1,
            Found::Row(row, seq, damage) => {
                report.conversations += 1;
                report
                    .damaged
                    .extend(damage.map(|damage| format!("conversation {id}: {damage}")));
                if row.is_active() {
                    self.scan.active.push(id);
                }
                self.rows.put(seq, *row).await?;
            }
            Found::Nothing => self.rows.remove(id).await?,
            Found::Unreadable(damage) => {
                report.conversations += 1;
                report.damaged.push(format!("conversation {id}: {damage}"));
            }
        }
        if let Some(progress) = &self.progress {
            let (done, total) = (self.done, self.total);
            // Only the newest figure matters to who listens: a full channel may lose some.
            let _ = progress.try_send(Progress { done, total });
        }
        Ok(())
    }

    async fn end(mut self) -> Result<Scan, Error> {
        self.rows.write().await?;
        self.scan.report.damaged.sort();
        Ok(self.scan)
    }
}

/// Counts the rows that do not say what the log says, or that are missing or too many.
pub(crate) async fn stale(
    log: &Arc<dyn LogStorage>,
    staging: &Staging,
    records: &dyn RecordStorage,
) -> Result<u64, Error> {
    // In this order: what comes between the two has no row among them.
    let known = known_rows(records).await?;
    let ids = ids(log, staging).await?;
    let mut stale = gone(&known, &ids).len() as u64;
    let mut looks = pin!(looks(log, &ids, Some(&known)));
    while let Some((id, is_unchanged)) = looks.next().await {
        let row = known.get(&id).and_then(Option::as_deref);
        // Without metadata there is nothing to compare: such a row is made anew at every start.
        if is_unchanged || row == Some("") {
            continue;
        }
        // One that is deleted has no row.
        let states = query::salvaged(log, id).await?;
        stale += u64::from(known.contains_key(&id) || states.is_some());
    }
    Ok(stale)
}

/// Rows on their way to a target, some at a time.
struct Rows<'a> {
    target: Target<'a>,
    waiting: Vec<Row>,
    put: usize,
}

impl<'a> Rows<'a> {
    const fn new(target: Target<'a>) -> Self {
        Self {
            target,
            waiting: Vec::new(),
            put: 0,
        }
    }

    async fn put(&mut self, seq: u64, row: Row) -> Result<(), Error> {
        self.put += 1;
        match &self.target {
            Target::Serving(index, _) => index.put(seq, row),
            Target::Beside(_) => self.waiting.push(row),
        }
        if self.put.is_multiple_of(BATCH) {
            self.write().await?;
        }
        Ok(())
    }

    async fn remove(&self, id: ConversationId) -> Result<(), Error> {
        match &self.target {
            Target::Serving(index, _) => index.remove(id),
            Target::Beside(records) => {
                records.delete(CONVERSATION, &id.to_string()).await?;
            }
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), Error> {
        let records = match &self.target {
            Target::Serving(index, _) => {
                index.flush().await;
                return Ok(());
            }
            Target::Beside(records) => *records,
        };
        let mut batch = Vec::with_capacity(self.waiting.len());
        for row in self.waiting.drain(..) {
            let record = row.record().map_err(|source| Error::Encode { source })?;
            batch.push((CONVERSATION.to_owned(), record));
        }
        records.mset(batch).await
    }
}

impl<'a> Target<'a> {
    const fn records(&self) -> &'a dyn RecordStorage {
        match self {
            Self::Serving(_, records) | Self::Beside(records) => *records,
        }
    }
}

/// The fingerprints of rows; `None` for a row that must be made anew.
type Known = HashMap<ConversationId, Option<String>>;

/// The rows without a directory.
fn gone(known: &Known, ids: &[ConversationId]) -> Vec<ConversationId> {
    let present: HashSet<ConversationId> = ids.iter().copied().collect();
    let gone = known.keys().filter(|id| !present.contains(id));
    gone.copied().collect()
}

/// Tells of each conversation whether its log is as it was when the known row was made, some at a time and in any order.
fn looks<'a>(
    log: &'a Arc<dyn LogStorage>,
    ids: &'a [ConversationId],
    known: Option<&'a Known>,
) -> impl Stream<Item = (ConversationId, bool)> + 'a {
    stream::iter(ids.chunks(LOOKS))
        .map(move |ids| are_unchanged(log, ids, known))
        .buffer_unordered(GOES)
        .flat_map(stream::iter)
}

async fn known_rows(records: &dyn RecordStorage) -> Result<Known, Error> {
    let (mut known, mut fetched, mut cursor) = (Known::new(), Vec::new(), None);
    loop {
        let options = ListOptions::default()
            .sort(SortBy::Key)
            .order(Order::Ascending)
            .cursor(cursor)
            .limit(1_000);
        // What has been fetched is parsed while the next page is on its way.
        let parse = async { known.extend(fetched.iter().filter_map(fingerprint_of)) };
        let (page, ()) = join(records.list(CONVERSATION, options), parse).await;
        let page = page?;
        (fetched, cursor) = (page.records, page.next);
        if cursor.is_none() {
            known.extend(fetched.iter().filter_map(fingerprint_of));
            return Ok(known);
        }
    }
}

fn fingerprint_of(record: &Record) -> Option<(ConversationId, Option<String>)> {
    let id = record.key.parse().ok()?;
    Some((id, Row::fingerprint_of(record)))
}

/// The conversations that have a directory: those that are still in memory have no row.
async fn ids(log: &Arc<dyn LogStorage>, staging: &Staging) -> Result<Vec<ConversationId>, Error> {
    let listing = log.list(Some(&conversations_path()?)).await?;
    let paths = listing.paths.iter();
    let real = paths.filter(|path| !staging.is_staged_path(path));
    let names = real.filter_map(|path| path.as_str().rsplit('/').next());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// Makes the row of one conversation anew.
pub(crate) async fn reindex_one(
    log: &Arc<dyn LogStorage>,
    index: &Index,
    id: ConversationId,
) -> Result<(), Error> {
    match find(log, id).await? {
        Found::Row(row, seq, _) => index.put(seq, *row),
        _ => index.remove(id),
    }
    Ok(())
}

async fn are_unchanged(
    log: &Arc<dyn LogStorage>,
    ids: &[ConversationId],
    known: Option<&Known>,
) -> Vec<(ConversationId, bool)> {
    let row = |id| known?.get(id)?.as_deref();
    let asked = ids.iter().filter(|id| row(id).is_some());
    let keys: Result<Vec<_>, _> = asked.map(|id| metadata_key(*id)).collect();
    let mut found = log
        .fingerprints(&keys.unwrap_or_default())
        .await
        .into_iter();
    let mut is_unchanged = |id| {
        let fingerprint = row(id).and_then(|row| Some((row, found.next()?.ok()??)));
        fingerprint.is_some_and(|(row, fingerprint)| fingerprint.as_str() == row)
    };
    ids.iter().map(|id| (*id, is_unchanged(id))).collect()
}

async fn find(log: &Arc<dyn LogStorage>, id: ConversationId) -> Result<Found, Error> {
    // Taken before the read: what comes between is read again the next time.
    let fingerprint = log.fingerprint(&metadata_key(id)?).await?;
    let Some(states) = query::salvaged(log, id).await? else {
        // A crash came between the entry that deletes it and the move, or the move is on its way right now.
        if query::states(log, id)
            .await?
            .is_some_and(|states| states.deleted)
        {
            trash::move_in(log, id).await?;
        }
        return Ok(Found::Nothing);
    };
    // No stream has an empty fingerprint: it is looked at again the next time.
    let fingerprint = fingerprint.unwrap_or_else(|| Fingerprint::new(""));
    Ok(row(&states, &fingerprint))
}

/// What a conversation whose log cannot be read at all is listed with.
fn unreadable(id: ConversationId, is_known: bool, error: &Error) -> Found {
    let message = describe(error);
    if is_known {
        return Found::Unreadable(message);
    }
    let mut states = States::default();
    salvage::conversation(&mut states, id, &Listing::default());
    states.damaged = vec![message];
    row(&states, &Fingerprint::new(""))
}

/// The row of a conversation as its states tell it.
fn row(states: &States, fingerprint: &Fingerprint) -> Found {
    let Some(conversation) = states.wire_conversation() else {
        return Found::Nothing;
    };
    let mut sessions = states.sessions.values();
    let waiting = sessions.any(|session| !session.queue.is_empty());
    let damage = conversation.damaged.clone();
    let row = Row::new(conversation, waiting, fingerprint);
    Found::Row(Box::new(row), states.last, damage)
}

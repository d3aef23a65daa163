//! The index for listing: rows made from the log, disposable, always second.
//!
//! The [`writer`] owns the rows that are on their way and writes them a moment later, so that of the many states of a turn
//! only the last ones are written. A row that cannot be written stays and is tried again; whoever appended to the log
//! never waits for it. The [`keeper`] owns the storage of the rows: it opens it, brings it in step with the log, and
//! replaces it when it is damaged, all while the runtime serves.

mod keeper;
mod place;
mod shelf;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::id::ConversationId;
use openvaala_storage::{
    Error, Fingerprint, ListOptions, LogStorage, Namespace, Order, Record, RecordStorage, SortBy,
};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use self::keeper::Ask;
pub(crate) use self::keeper::{Keeper, Left, Origin, describe};
#[cfg(all(feature = "file", feature = "sqlite"))]
pub(crate) use self::place::DataDirIndex;
pub(crate) use self::shelf::Shelf;
use self::shelf::{Fault, Standing};
use self::writer::Message;
use crate::dao::list::{ConversationPage, ListConversations, list};
use crate::dao::reindex::stale;
use crate::dao::staging::Staging;
use crate::error::RuntimeError;
use crate::runtime::{Progress, ReindexReport};

/// The namespace of conversation rows.
pub(crate) const CONVERSATION: &str = "conversation";
/// The field that tells rows with something left to do (`yes`) from others (`no`).
pub(crate) const ACTIVE: &str = "active";
/// The field with the status of the conversation, by its name in JSON.
pub(crate) const STATUS: &str = "status";
/// The field that tells rows of archived conversations (`yes`) from others (`no`).
pub(crate) const ARCHIVED: &str = "archived";
/// The field with the directories that the conversation works in.
pub(crate) const ROOTS: &str = "roots";
/// The field with the title, which may be searched.
pub(crate) const TITLE: &str = "title";
/// What rows are made like: rows of another number are made anew. Raise it when a row gets something new in it.
const ROW_FORMAT: u32 = 4;

/// How long a listing waits for what is on its way, and then for the check.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a listing waits for a storage to read.
const OPENING: Duration = Duration::from_secs(3);
/// How often a read is tried that found the storage broken.
const READS: u32 = 3;

/// What the records of a runtime must have declared.
pub(crate) fn namespaces() -> Vec<Namespace> {
    vec![Namespace::new(CONVERSATION, [ACTIVE, STATUS, ROOTS, ARCHIVED]).search([TITLE])]
}

/// The name of a status as rows have it.
pub(crate) const fn status_name(status: ConversationStatus) -> &'static str {
    match status {
        ConversationStatus::Running => "running",
        _ => "idle",
    }
}

/// How rows say whether something is so.
pub(crate) const fn yes_or_no(so: bool) -> &'static str {
    if so { "yes" } else { "no" }
}

/// One conversation in the index.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Row {
    active: String,
    // Copies of what a listing filters by, where a record storage finds them.
    status: ConversationStatus,
    roots: Vec<String>,
    title: Option<String>,
    #[serde(default)]
    archived: String,
    #[serde(default)]
    format: u32,
    /// What the metadata stream looked like when the row was made.
    pub(crate) fingerprint: String,
    pub(crate) conversation: Conversation,
}

/// What of a row tells whether it must be made anew.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: u32,
    fingerprint: String,
}

impl Row {
    pub(crate) fn new(
        conversation: Conversation,
        waiting: bool,
        fingerprint: &Fingerprint,
    ) -> Self {
        let active = waiting || conversation.status == ConversationStatus::Running;
        let roots = conversation.executors.iter().map(|it| it.root.clone());
        Self {
            active: yes_or_no(active).to_owned(),
            status: conversation.status,
            roots: roots.collect(),
            title: conversation.title.clone(),
            archived: yes_or_no(conversation.archived).to_owned(),
            format: ROW_FORMAT,
            fingerprint: fingerprint.as_str().to_owned(),
            conversation,
        }
    }

    pub(crate) fn parse(record: &Record) -> Option<Self> {
        serde_json::from_str(record.data.get()).ok()
    }

    /// The fingerprint of a row; `None` if it must be made anew.
    pub(crate) fn fingerprint_of(record: &Record) -> Option<String> {
        let head: Head = serde_json::from_str(record.data.get()).ok()?;
        (head.format == ROW_FORMAT).then_some(head.fingerprint)
    }

    /// Whether something is left to do in the conversation.
    pub(crate) fn is_active(&self) -> bool {
        self.active == "yes"
    }

    pub(crate) fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record::new(
            self.conversation.id.to_string(),
            self.conversation.updated_at.as_millis(),
            to_raw_value(self)?,
        ))
    }
}

/// The way to the index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    writer: mpsc::UnboundedSender<Message>,
    keeper: mpsc::UnboundedSender<Ask>,
    shelf: watch::Receiver<Option<Arc<Shelf>>>,
    standing: watch::Receiver<Standing>,
    trouble: watch::Receiver<Option<String>>,
    staging: Staging,
}

impl Index {
    /// Puts a row; one made from an older metadata entry than an earlier row is left out.
    pub(crate) fn put(&self, seq: u64, row: Row) {
        // The task is gone only when the runtime is.
        let _ = self.writer.send(Message::Put {
            seq,
            row: Box::new(row),
        });
    }

    pub(crate) fn remove(&self, id: ConversationId) {
        let _ = self.writer.send(Message::Remove(id));
    }

    /// Waits until all that was put before has been tried once.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.writer.send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }

    /// What keeps the index from being what it should be, if anything does.
    pub(crate) fn trouble(&self) -> Vec<String> {
        let kept = self.standing.borrow().trouble.clone();
        kept.into_iter()
            .chain(self.trouble.borrow().clone())
            .collect()
    }

    /// Waits a moment for what is on its way and for the check; says whether the index is now in step with the log.
    async fn settle(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let flushed = timeout_at(until, self.flush()).await.is_ok();
        let mut standing = self.standing.clone();
        // An error says that the runtime has ended: what was is all that will be.
        let _ = timeout_at(until, standing.wait_for(|standing| standing.is_checked)).await;
        flushed && self.is_checked() && self.trouble.borrow().is_none()
    }

    /// Whether all of it has been compared with the log.
    fn is_checked(&self) -> bool {
        self.standing.borrow().is_checked
    }

    /// Reads a page; if the storage turns out to be broken, waits for the one that takes its place.
    pub(crate) async fn list(
        &self,
        options: ListConversations,
    ) -> Result<ConversationPage, RuntimeError> {
        let is_settled = self.settle().await;
        let mut known = 0;
        let mut tries = 0;
        loop {
            let shelf = self.shelf_after(known).await?;
            tries += 1;
            match list(&*shelf.records, options.clone()).await {
                Ok(mut page) => {
                    page.stale = !(is_settled && self.is_checked());
                    return Ok(page);
                }
                Err(RuntimeError::Storage(error)) if tries < READS => {
                    let Some(fault) = Fault::of_read(&error) else {
                        return Err(error.into());
                    };
                    tracing::warn!(%error, "the index cannot be read");
                    known = shelf.generation;
                    self.report(known, fault, &error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes all rows anew, beside the old ones where that can be.
    pub(crate) async fn rebuild(
        &self,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<ReindexReport, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let ask = Ask::Rebuild { progress, reply };
        self.keeper.send(ask).map_err(|_| RuntimeError::Stopped)?;
        Ok(wait.await.map_err(|_| RuntimeError::Stopped)??)
    }

    /// Counts the rows that do not say what the log says.
    pub(crate) async fn stale(&self, log: &Arc<dyn LogStorage>) -> Result<u64, Error> {
        self.flush().await;
        let shelf = self.shelf_after(0).await?;
        stale(log, &self.staging, &*shelf.records).await
    }

    /// Tells the keeper that a storage is broken.
    fn report(&self, generation: u64, fault: Fault, error: &Error) {
        let _ = self.keeper.send(Ask::Fault {
            generation,
            fault,
            message: error.to_string(),
        });
    }

    /// The storage of the rows, if it is newer than that; waits a moment for it.
    async fn shelf_after(&self, generation: u64) -> Result<Arc<Shelf>, Error> {
        let mut shelves = self.shelf.clone();
        let newer = |shelf: &Option<Arc<Shelf>>| {
            shelf
                .as_ref()
                .is_some_and(|shelf| shelf.generation > generation)
        };
        match timeout(OPENING, shelves.wait_for(newer)).await {
            Ok(Ok(shelf)) => shelf.clone().ok_or(Error::Closed),
            _ => Err(Error::Closed),
        }
    }

    /// Begins to keep copies of the rows that are put.
    fn mirror(&self) {
        let _ = self.writer.send(Message::Mirror);
    }

    /// Ends that and gives the copies.
    async fn take_mirror(&self) -> HashMap<ConversationId, Option<Row>> {
        let (reply, wait) = oneshot::channel();
        let _ = self.writer.send(Message::TakeMirror(reply));
        wait.await.unwrap_or_default()
    }
}

/// Conversations that ran or had waiting input when their row was made.
async fn active(records: &dyn RecordStorage) -> Result<Vec<ConversationId>, Error> {
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let options = ListOptions::default()
            .sort(SortBy::Key)
            .order(Order::Ascending)
            .filter(ACTIVE, "yes")
            .cursor(cursor)
            .limit(1_000);
        let page = records.list(CONVERSATION, options).await?;
        let keys = page
            .records
            .iter()
            .map(|record| record.key.parse::<ConversationId>());
        ids.extend(keys.filter_map(Result::ok));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(ids);
        }
    }
}

#[cfg(test)]
mod tests;

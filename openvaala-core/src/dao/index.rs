//! The index for listing: rows made from the log, disposable, always second.
//!
//! One task owns the rows that are on their way and writes them a moment later, so that of the many states of a turn
//! only the last ones are written. A row that cannot be written stays and is tried again; whoever appended to the log
//! never waits for it. Whoever reads [flushes](Index::flush) first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::conversation::{Conversation, ConversationStatus};
use openvaala_protocol::id::ConversationId;
use openvaala_storage::{
    Fingerprint, ListOptions, Namespace, Order, Record, RecordStorage, SortBy,
};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// The namespace of conversation rows.
pub(crate) const CONVERSATION: &str = "conversation";
/// The field that tells rows with something left to do (`yes`) from others (`no`).
pub(crate) const ACTIVE: &str = "active";
/// The field with the status of the conversation, by its name in JSON.
pub(crate) const STATUS: &str = "status";
/// The field with the directories that the conversation works in.
pub(crate) const ROOTS: &str = "roots";
/// The field with the title, which may be searched.
pub(crate) const TITLE: &str = "title";

/// How long a row waits for a newer one to take its place.
const GATHER: Duration = Duration::from_millis(50);
/// How long to wait before rows that could not be written are tried again.
const RETRY: Duration = Duration::from_secs(2);

/// What the records of a runtime must have declared.
pub(crate) fn namespaces() -> Vec<Namespace> {
    vec![Namespace::new(CONVERSATION, [ACTIVE, STATUS, ROOTS]).search([TITLE])]
}

/// One conversation in the index.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Row {
    active: String,
    // Copies of what a listing filters by, where a record storage finds them.
    status: ConversationStatus,
    roots: Vec<String>,
    title: Option<String>,
    /// What the metadata stream looked like when the row was made.
    pub(crate) fingerprint: String,
    pub(crate) conversation: Conversation,
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
            active: if active { "yes" } else { "no" }.to_owned(),
            status: conversation.status,
            roots: roots.collect(),
            title: conversation.title.clone(),
            fingerprint: fingerprint.as_str().to_owned(),
            conversation,
        }
    }

    pub(crate) fn parse(record: &Record) -> Option<Self> {
        serde_json::from_str(record.data.get()).ok()
    }

    fn record(&self) -> Result<Record, serde_json::Error> {
        Ok(Record::new(
            self.conversation.id.to_string(),
            self.conversation.updated_at.as_millis(),
            to_raw_value(self)?,
        ))
    }
}

#[derive(Debug)]
enum Message {
    Put { seq: u64, row: Box<Row> },
    Remove(ConversationId),
    Flush(oneshot::Sender<()>),
}

/// The way to the index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    sender: mpsc::UnboundedSender<Message>,
    trouble: watch::Receiver<Option<String>>,
    pub(crate) records: Arc<dyn RecordStorage>,
}

impl Index {
    /// Makes an index and the task that owns what is on its way to it; the task ends with the last handle.
    pub(crate) fn new(records: Arc<dyn RecordStorage>) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (tell, trouble) = watch::channel(None);
        let task = Task {
            records: Arc::clone(&records),
            receiver,
            waiting: HashMap::new(),
            newest: HashMap::new(),
            due: None,
            trouble: tell,
        };
        (
            Self {
                sender,
                trouble,
                records,
            },
            task.run(),
        )
    }

    /// Puts a row; one made from an older metadata entry than an earlier row is left out.
    pub(crate) fn put(&self, seq: u64, row: Row) {
        // The task is gone only when the runtime is.
        let _ = self.sender.send(Message::Put {
            seq,
            row: Box::new(row),
        });
    }

    pub(crate) fn remove(&self, id: ConversationId) {
        let _ = self.sender.send(Message::Remove(id));
    }

    /// Waits until all that was put before has been tried once.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }

    /// What keeps rows from being written, if anything does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Conversations that ran or had waiting input when their row was made.
    pub(crate) async fn active(&self) -> Result<Vec<ConversationId>, openvaala_storage::Error> {
        let mut ids = Vec::new();
        let mut cursor = None;
        loop {
            let options = ListOptions::default()
                .sort(SortBy::Key)
                .order(Order::Ascending)
                .filter(ACTIVE, "yes")
                .cursor(cursor)
                .limit(1_000);
            let page = self.records.list(CONVERSATION, options).await?;
            ids.extend(
                page.records
                    .iter()
                    .filter_map(Row::parse)
                    .map(|row| row.conversation.id),
            );
            cursor = page.next;
            if cursor.is_none() {
                return Ok(ids);
            }
        }
    }
}

struct Task {
    records: Arc<dyn RecordStorage>,
    receiver: mpsc::UnboundedReceiver<Message>,
    /// Rows not yet written; `None` is one to be removed.
    waiting: HashMap<ConversationId, Option<Row>>,
    /// The metadata entry that the newest row of a conversation was made from.
    newest: HashMap<ConversationId, u64>,
    /// When to write what waits; `None` if nothing does.
    due: Option<Instant>,
    trouble: watch::Sender<Option<String>>,
}

impl Task {
    async fn run(mut self) {
        loop {
            let message = match self.due {
                None => self.receiver.recv().await,
                Some(due) => match timeout_at(due, self.receiver.recv()).await {
                    Ok(message) => message,
                    Err(_) => {
                        self.write().await;
                        continue;
                    }
                },
            };
            let Some(message) = message else { break };
            let mut flushed = Vec::new();
            self.take(message, &mut flushed);
            while let Ok(message) = self.receiver.try_recv() {
                self.take(message, &mut flushed);
            }
            // Messages that never cease put nothing off.
            if !flushed.is_empty() || self.due.is_some_and(|due| due <= Instant::now()) {
                self.write().await;
            }
            for done in flushed {
                let _ = done.send(());
            }
        }
        self.write().await;
    }

    fn take(&mut self, message: Message, flushed: &mut Vec<oneshot::Sender<()>>) {
        match message {
            Message::Put { seq, row } => {
                let newest = self.newest.entry(row.conversation.id).or_default();
                if seq >= *newest {
                    *newest = seq;
                    self.change(row.conversation.id, Some(*row));
                }
            }
            Message::Remove(id) => {
                self.newest.remove(&id);
                self.change(id, None);
            }
            Message::Flush(done) => flushed.push(done),
        }
    }

    fn change(&mut self, id: ConversationId, row: Option<Row>) {
        self.waiting.insert(id, row);
        let due = Instant::now() + GATHER;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    async fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let written = self.try_write().await;
        self.due = match &written {
            Ok(()) => None,
            Err(_) => Some(Instant::now() + RETRY),
        };
        if written.is_ok() {
            self.waiting.clear();
        }
        let trouble = written
            .err()
            .map(|error| format!("the index could not be written: {error}"));
        self.trouble.send_if_modified(|told| {
            let changed = *told != trouble;
            if let (true, Some(trouble)) = (changed, &trouble) {
                tracing::warn!("{trouble}");
            }
            *told = trouble;
            changed
        });
    }

    async fn try_write(&self) -> Result<(), openvaala_storage::Error> {
        let mut records = Vec::new();
        for (id, row) in &self.waiting {
            match row.as_ref().map(Row::record) {
                Some(Ok(record)) => records.push((CONVERSATION.to_owned(), record)),
                Some(Err(error)) => tracing::error!(%id, %error, "a row could not be encoded"),
                None => {
                    self.records.delete(CONVERSATION, &id.to_string()).await?;
                }
            }
        }
        if records.is_empty() {
            Ok(())
        } else {
            self.records.mset(records).await
        }
    }
}

#[cfg(test)]
mod tests;

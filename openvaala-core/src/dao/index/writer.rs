//! The task that owns the rows on their way to the index.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::id::ConversationId;
use openvaala_storage::{Error, RecordStorage};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::keeper::Ask;
use super::shelf::{Fault, Shelf};
use super::{CONVERSATION, Row};

/// How long a row waits for a newer one to take its place.
pub(super) const GATHER: Duration = Duration::from_millis(50);
/// How long to wait before rows that could not be written are tried again.
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// Rows by conversation; `None` is one to be removed.
pub(super) type Rows = HashMap<ConversationId, Option<Row>>;

/// What the writer is told.
#[derive(Debug)]
pub(super) enum Message {
    Put {
        seq: u64,
        row: Box<Row>,
    },
    Remove(ConversationId),
    Flush(oneshot::Sender<()>),
    /// Keep copies of what comes from now on.
    Mirror,
    /// Give the copies and keep no more.
    TakeMirror(oneshot::Sender<Rows>),
}

pub(super) struct Writer {
    shelf: watch::Receiver<Option<Arc<Shelf>>>,
    keeper: mpsc::UnboundedSender<Ask>,
    receiver: mpsc::UnboundedReceiver<Message>,
    /// Rows not yet written.
    waiting: Rows,
    /// Copies of the rows that came since they were asked for.
    mirror: Option<Rows>,
    /// The metadata entry that the newest row of a conversation was made from.
    newest: HashMap<ConversationId, u64>,
    /// Who waits until what was put before has been tried.
    flushing: Vec<oneshot::Sender<()>>,
    /// When to write what waits; `None` if nothing does.
    due: Option<Instant>,
    /// How many writes have failed in a row.
    failures: u32,
    trouble: watch::Sender<Option<String>>,
}

impl Writer {
    pub(super) fn new(
        shelf: watch::Receiver<Option<Arc<Shelf>>>,
        keeper: mpsc::UnboundedSender<Ask>,
        receiver: mpsc::UnboundedReceiver<Message>,
        trouble: watch::Sender<Option<String>>,
    ) -> Self {
        Self {
            shelf,
            keeper,
            receiver,
            waiting: HashMap::new(),
            mirror: None,
            newest: HashMap::new(),
            flushing: Vec::new(),
            due: None,
            failures: 0,
            trouble,
        }
    }

    /// Runs until the last handle of the index is gone.
    pub(super) async fn run(mut self) {
        // Until whoever replaces the storage is gone.
        let mut replaced = true;
        loop {
            let shelf = self.shelf.borrow_and_update().clone();
            let due = self.due.filter(|_| shelf.is_some());
            let is_late = due.is_some_and(|due| due <= Instant::now());
            // Messages that never cease put nothing off.
            if let Some(shelf) = &shelf
                && (is_late || !self.flushing.is_empty())
            {
                self.write(shelf).await;
                continue;
            }
            // While nothing is written nobody is kept from replacing the storage.
            drop(shelf);
            tokio::select! {
                message = self.receiver.recv() => match message {
                    Some(message) => self.take_all(message),
                    None => break,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                changed = self.shelf.changed(), if replaced => {
                    replaced = changed.is_ok();
                    if replaced {
                        self.due = self.due.map(|_| Instant::now());
                        self.failures = 0;
                    }
                }
            }
        }
        let shelf = self.shelf.borrow().clone();
        if let Some(shelf) = shelf {
            self.write(&shelf).await;
        }
    }

    fn take_all(&mut self, message: Message) {
        self.take(message);
        while let Ok(message) = self.receiver.try_recv() {
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
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
            Message::Flush(done) => self.flushing.push(done),
            Message::Mirror => self.mirror = Some(HashMap::new()),
            Message::TakeMirror(reply) => {
                let _ = reply.send(self.mirror.take().unwrap_or_default());
            }
        }
    }

    fn change(&mut self, id: ConversationId, row: Option<Row>) {
        if let Some(mirror) = &mut self.mirror {
            mirror.insert(id, row.clone());
        }
        self.waiting.insert(id, row);
        let due = Instant::now() + GATHER;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    async fn write(&mut self, shelf: &Shelf) {
        if !self.waiting.is_empty() {
            let written = write(&*shelf.records, &self.waiting).await;
            self.written(shelf, written);
        }
        for done in self.flushing.drain(..) {
            let _ = done.send(());
        }
    }

    fn written(&mut self, shelf: &Shelf, written: Result<(), Error>) {
        match &written {
            Ok(()) => {
                self.due = None;
                self.failures = 0;
                self.waiting.clear();
            }
            Err(error) => {
                self.due = Some(Instant::now() + RETRY);
                self.failures += 1;
                if let Some(fault) = Fault::of_write(error, self.failures) {
                    let _ = self.keeper.send(Ask::Fault {
                        generation: shelf.generation,
                        fault,
                        message: error.to_string(),
                    });
                }
            }
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
}

/// Writes rows and removes those that are to be removed.
pub(super) async fn write(records: &dyn RecordStorage, rows: &Rows) -> Result<(), Error> {
    let mut batch = Vec::new();
    for (id, row) in rows {
        match row.as_ref().map(Row::record) {
            Some(Ok(record)) => batch.push((CONVERSATION.to_owned(), record)),
            Some(Err(error)) => tracing::error!(%id, %error, "a row could not be encoded"),
            None => {
                records.delete(CONVERSATION, &id.to_string()).await?;
            }
        }
    }
    if batch.is_empty() {
        Ok(())
    } else {
        records.mset(batch).await
    }
}

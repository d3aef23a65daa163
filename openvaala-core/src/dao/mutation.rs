//! The write side: one batch at a time, items first, then states.

use std::sync::Arc;

use openvaala_protocol::event::Entry;
use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_storage::{Error, Fingerprint, LogStorage, NewEntry};
use tokio::sync::{mpsc, oneshot};

use super::record::State;
use super::staging::Staging;
use super::{items_key, metadata_key};
use crate::conversation::{ConversationDeps, Upward};
use crate::environment::Clock;
use crate::journal::Batch;

/// Asks the owner of a conversation to move it from memory to the real storage.
pub(crate) type Promote = oneshot::Sender<Result<(), Error>>;

/// Writes what happens in one conversation.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) conversation: ConversationId,
    pub(crate) log: Arc<dyn LogStorage>,
    pub(crate) clock: Arc<dyn Clock>,
    staging: Staging,
    /// Where to ask for the move to the real storage; the conversation itself has nobody to ask.
    promoter: Option<mpsc::UnboundedSender<Upward>>,
}

/// What a batch has become.
#[derive(Debug)]
pub(crate) struct Written {
    /// What was written, in order, with its numbers.
    pub(crate) entries: Vec<Entry>,
    /// Its entries of the metadata stream, if the batch had states.
    pub(crate) metadata: Option<Stretch>,
}

/// Entries of the metadata stream in a row.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// That of the stream which ends with them.
    pub(crate) fingerprint: Fingerprint,
}

impl Writer {
    pub(crate) fn new(
        deps: &ConversationDeps,
        conversation: ConversationId,
        promoter: Option<mpsc::UnboundedSender<Upward>>,
    ) -> Self {
        Self {
            conversation,
            log: Arc::clone(&deps.log),
            clock: Arc::clone(&deps.clock),
            staging: deps.staging.clone(),
            promoter,
        }
    }

    /// Writes a session's batch; when it returns all of it is on disk.
    ///
    /// With `promote` a conversation that is still in memory is moved to the real storage before this returns.
    pub(crate) async fn write(
        &self,
        session: SessionId,
        batch: Batch,
        promote: bool,
    ) -> Result<Written, Error> {
        let Batch { items, mut states } = batch;
        let mut entries = Vec::with_capacity(items.len() + states.len());
        let mut last_seq = None;
        if !items.is_empty() {
            let key = items_key(self.conversation, session)?;
            let time = self.clock.now().as_millis();
            let lines = items
                .iter()
                .map(|item| NewEntry::new(time, item.raw().to_owned()));
            let appended = self.log.append(&key, lines.collect()).await?;
            last_seq = Some(appended.last);
            entries.extend(items.into_iter().zip(appended.first..).map(|(item, seq)| {
                Entry::Item {
                    seq,
                    session_id: session,
                    item,
                }
            }));
        }
        for state in &mut states {
            if let (State::Turn(turn), Some(last_seq)) = (state, last_seq) {
                turn.last_seq = last_seq;
            }
        }
        let metadata = self.write_states(states, &mut entries).await?;
        if promote && self.staging.is_staged(self.conversation) {
            self.promote().await?;
        }
        Ok(Written { entries, metadata })
    }

    async fn write_states(
        &self,
        states: Vec<State>,
        entries: &mut Vec<Entry>,
    ) -> Result<Option<Stretch>, Error> {
        if states.is_empty() {
            return Ok(None);
        }
        let time = self.clock.now().as_millis();
        let mut lines = Vec::with_capacity(states.len());
        for state in &states {
            let data = state.to_raw().map_err(|source| Error::Backend {
                backend: "dao",
                source: Box::new(source),
            })?;
            lines.push(NewEntry::new(time, data));
        }
        let appended = self
            .log
            .append(&metadata_key(self.conversation)?, lines)
            .await?;
        let written = states.iter().zip(appended.first..);
        entries.extend(written.map(|(state, seq)| state.to_entry(seq)));
        Ok(Some(Stretch {
            first: appended.first,
            last: appended.last,
            fingerprint: appended.fingerprint,
        }))
    }

    async fn promote(&self) -> Result<(), Error> {
        let Some(promoter) = &self.promoter else {
            return Ok(());
        };
        let (reply, done) = oneshot::channel();
        if promoter.send(Upward::Promote(reply)).is_err() {
            return Err(Error::Closed);
        }
        done.await.unwrap_or(Err(Error::Closed))
    }
}

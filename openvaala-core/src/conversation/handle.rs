//! What embedders and the server do with a conversation.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use openvaala_protocol::approval::ApprovalMode;
use openvaala_protocol::content::{BlobRef, Content, ImageData};
use openvaala_protocol::conversation::{Conversation, Session, Turn};
use openvaala_protocol::event::{Entry, ResumeCursor};
use openvaala_protocol::id::{ConversationId, ItemId, SessionId, TurnId};
use openvaala_protocol::rpc::params::session::{InterruptScope, ItemsOrder, SendMode};
use openvaala_storage::{LogStorage, Order, ReadOptions};
use tokio::sync::{oneshot, watch};

use super::command::Command;
use super::feed::{FeedSender, Subscription};
use crate::dao::record::Sender;
use crate::dao::{blob, query};
use crate::environment::{IdSource, RandomIds};
use crate::error::RuntimeError;
use crate::mailbox::{self, NotTaken};
use crate::model::OutputSchema;
use crate::runtime::Definitions;

/// The most that one page of items may have.
const MAX_PAGE: usize = 1_000;
/// The most bytes that one read of a blob gives.
const MAX_BLOB_PIECE: usize = 1 << 20;
/// The most bytes of content that one input may have.
const MAX_INPUT: usize = 16 << 20;

/// An open conversation; clones are the same conversation.
///
/// It stays open for as long as a handle is held. See [`RuntimeBuilder::unload_after`](crate::RuntimeBuilder::unload_after) for what
/// comes after that.
///
/// All methods may be cancelled by dropping their future: what was asked for may then still happen.
#[derive(Clone, Debug)]
pub struct ConversationHandle {
    pub(super) id: ConversationId,
    pub(super) root: SessionId,
    pub(super) commands: mailbox::Sender<Command>,
    pub(super) feed: FeedSender,
    pub(super) log: Arc<dyn LogStorage>,
    pub(super) definitions: watch::Receiver<Arc<Definitions>>,
    pub(super) running: watch::Receiver<usize>,
}

/// Something said to a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Input {
    /// Which session; `None` means the root.
    pub session_id: Option<SessionId>,
    /// The id that it will have as an item; sent twice, it is taken once.
    pub item_id: ItemId,
    /// Text and images; at least one piece with something in it.
    pub content: Vec<Content>,
    /// What to do if a turn runs; queued by default.
    pub mode: SendMode,
    /// A JSON Schema that the last answer of the turn that it starts shall follow; `None` for free text.
    pub output_schema: Option<OutputSchema>,
    /// Which tool calls of the session run without a question from its next turn on; `None` leaves it as it is.
    pub approval_mode: Option<ApprovalMode>,
    /// The agent that says it; `None` for whoever uses the conversation.
    pub(crate) from: Option<Sender>,
}

impl Input {
    /// Some text for the root session, under a new id.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(
            ItemId::from_uuid(RandomIds.next()),
            vec![Content::text(text)],
        )
    }

    /// Content for the root session.
    #[must_use]
    pub const fn new(item_id: ItemId, content: Vec<Content>) -> Self {
        Self {
            session_id: None,
            item_id,
            content,
            mode: SendMode::Queue,
            output_schema: None,
            approval_mode: None,
            from: None,
        }
    }

    /// The same with a mode for the session from its next turn on.
    #[must_use]
    pub const fn with_approval_mode(mut self, mode: Option<ApprovalMode>) -> Self {
        self.approval_mode = mode;
        self
    }

    /// The same for another session.
    #[must_use]
    pub const fn to_session(mut self, session_id: Option<SessionId>) -> Self {
        self.session_id = session_id;
        self
    }

    /// The same with a JSON Schema for the answer.
    #[must_use]
    pub fn with_output_schema(mut self, schema: Option<OutputSchema>) -> Self {
        self.output_schema = schema;
        self
    }

    /// The same in another mode.
    #[must_use]
    pub const fn with_mode(mut self, mode: SendMode) -> Self {
        self.mode = mode;
        self
    }
}

/// An input that is on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// The session that took it.
    pub session_id: SessionId,
    /// Whether it had been taken before.
    pub duplicate: bool,
}

/// All states of a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Details {
    /// The conversation.
    pub conversation: Conversation,
    /// Its sessions, the root first.
    pub sessions: Vec<Session>,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// What of its states cannot be read and why, a line each.
    pub damaged: Vec<String>,
}

/// Which page of a session's log to read.
#[derive(Clone, Copy, Debug)]
pub struct ItemsQuery {
    /// Which session; `None` means the root.
    pub session_id: Option<SessionId>,
    /// In which direction.
    pub order: ItemsOrder,
    /// Strictly after this number in that direction; 0 begins at that end.
    pub cursor: u64,
    /// How many; 1 to 1,000.
    pub limit: usize,
}

impl Default for ItemsQuery {
    fn default() -> Self {
        Self {
            session_id: None,
            order: ItemsOrder::Descending,
            cursor: 0,
            limit: 100,
        }
    }
}

/// A page of a session's log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ItemsPage {
    /// Items and damaged lines, in the order that was asked for.
    pub items: Vec<Entry>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<u64>,
}

/// Which piece of a blob to read.
#[derive(Clone, Copy, Debug)]
pub struct BlobQuery {
    /// Which session; `None` means the root.
    pub session_id: Option<SessionId>,
    /// The reference as the item has it.
    pub blob: BlobRef,
    /// The first byte.
    pub offset: u64,
}

impl BlobQuery {
    /// The beginning of a blob of the root session.
    #[must_use]
    pub const fn new(blob: BlobRef) -> Self {
        Self {
            session_id: None,
            blob,
            offset: 0,
        }
    }

    /// The same from another byte on.
    #[must_use]
    pub const fn from(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }
}

/// A piece of a blob: at most 1 MiB.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BlobPiece {
    /// The offset of its first byte; behind what was asked for where bytes are not kept.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

impl ConversationHandle {
    /// The conversation's id.
    #[must_use]
    pub const fn id(&self) -> ConversationId {
        self.id
    }

    /// The session that its user talks to.
    #[must_use]
    pub const fn root(&self) -> SessionId {
        self.root
    }

    /// How many turns run in it right now.
    pub(crate) fn running_turns(&self) -> usize {
        *self.running.borrow()
    }

    /// Gives input to a session; it is on disk when this returns.
    ///
    /// # Errors
    /// [`RuntimeError::InvalidInput`] for no or too much content, [`RuntimeError::SessionBusy`] for
    /// [`SendMode::IdleOnly`] while a turn runs, [`RuntimeError::NotWritten`] if the storage did not take it.
    pub async fn send(&self, input: Input) -> Result<Sent, RuntimeError> {
        check(&input.content, Refs::Refused)?;
        let (reply, wait) = oneshot::channel();
        let session = input.session_id.unwrap_or(self.root);
        self.command(Command::Send {
            session,
            input,
            reply,
        })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }

    /// Interrupts the running turn of a session; gives it when its end is written down.
    ///
    /// # Errors
    /// [`RuntimeError::SessionNotFound`]; it is no error if nothing runs.
    pub async fn interrupt(
        &self,
        session: Option<SessionId>,
    ) -> Result<Option<TurnId>, RuntimeError> {
        self.interrupt_within(session, InterruptScope::Turn).await
    }

    /// Interrupts a session's turn with the agents that it waits for, or with the scope of the tree all agents below it.
    ///
    /// Gives the session's turn when all of that is written down.
    ///
    /// # Errors
    /// As [`interrupt`](Self::interrupt).
    pub async fn interrupt_within(
        &self,
        session: Option<SessionId>,
        scope: InterruptScope,
    ) -> Result<Option<TurnId>, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let session = session.unwrap_or(self.root);
        self.command(Command::Interrupt {
            session,
            scope,
            reply,
        })?;
        wait.await.map_err(|_| RuntimeError::Stopped)?
    }

    /// Gives the sessions as they are: the root first, and each before those that its agent has started.
    ///
    /// # Errors
    /// [`RuntimeError::Stopped`].
    pub async fn tree(&self) -> Result<Vec<Session>, RuntimeError> {
        let (reply, wait) = oneshot::channel();
        let asked = self.commands.send(Command::Tree { reply }).await;
        asked.map_err(|_| RuntimeError::Stopped)?;
        wait.await.map_err(|_| RuntimeError::Stopped)
    }

    /// Begins to watch: gives what there is, and all that comes after it.
    ///
    /// With the cursor of an earlier subscription exactly the missing entries are given, where that is less than a
    /// snapshot.
    ///
    /// # Errors
    /// [`RuntimeError::InvalidCursor`], or the storage's error if the log cannot be read.
    pub async fn subscribe(
        &self,
        cursor: Option<ResumeCursor>,
    ) -> Result<Subscription, RuntimeError> {
        self.feed.subscribe(cursor).await
    }

    /// Reads all states of the conversation from the log.
    ///
    /// # Errors
    /// The storage's error if the log cannot be read.
    pub async fn details(&self) -> Result<Details, RuntimeError> {
        let model = self.definitions.borrow().default_model.clone();
        let (state, states) = query::existing(&self.log, self.id, model).await?;
        let sessions = states.wire_sessions();
        let conversation = state.to_wire(&sessions);
        Ok(Details {
            conversation,
            sessions,
            turns: states.wire_turns(),
            damaged: states.damaged,
        })
    }

    /// Reads a page of a session's log.
    ///
    /// # Errors
    /// The storage's error if the log cannot be read. A session without items has an empty page.
    pub async fn items(&self, query: ItemsQuery) -> Result<ItemsPage, RuntimeError> {
        let order = match query.order {
            ItemsOrder::Ascending => Order::Ascending,
            ItemsOrder::Descending => Order::Descending,
        };
        let options = ReadOptions::default()
            .order(order)
            .cursor(query.cursor)
            .limit(query.limit.clamp(1, MAX_PAGE));
        let session = query.session_id.unwrap_or(self.root);
        let (items, next) = query::page(&self.log, self.id, session, options).await?;
        Ok(ItemsPage { items, next })
    }

    /// Reads a piece of a large text or attachment.
    ///
    /// # Errors
    /// The storage's error if the blob stream cannot be read.
    pub async fn blob(&self, query: BlobQuery) -> Result<BlobPiece, RuntimeError> {
        let BlobQuery {
            session_id,
            blob: reference,
            offset,
        } = query;
        let session = session_id.unwrap_or(self.root);
        let (offset, bytes) = blob::read(
            &self.log,
            self.id,
            session,
            reference,
            offset,
            MAX_BLOB_PIECE,
        )
        .await?;
        let end = offset + bytes.len() as u64;
        // One that was being written when its reference was made may be longer by now.
        let more = end < reference.bytes || reference.last == 0;
        let next = (more && !bytes.is_empty()).then_some(end);
        Ok(BlobPiece {
            offset,
            bytes,
            next,
        })
    }

    /// How many commands run in it right now; none once it has ended.
    pub(crate) async fn running_commands(&self) -> usize {
        let (reply, wait) = oneshot::channel();
        let asked = self.commands.send(Command::RunningCommands { reply }).await;
        match asked {
            Ok(()) => wait.await.unwrap_or(0),
            Err(_) => 0,
        }
    }

    /// Whether anybody has subscribed to it.
    pub(crate) async fn is_watched(&self) -> bool {
        self.feed.is_watched().await
    }

    /// Waits until what a start has found unfinished is written down as ended.
    pub(crate) async fn settle(&self) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(Command::Settle { done }).await.is_ok() {
            let _ = wait.await;
        }
    }

    /// Whether anybody besides the one who asks holds a handle.
    pub(crate) fn is_held(&self) -> bool {
        self.commands.strong_count() > 1
    }

    /// Ends it if nothing runs or waits in it and nobody watches; says whether it ends.
    pub(crate) async fn stop_if_idle(&self) -> bool {
        let (reply, wait) = oneshot::channel();
        let asked = self.commands.send(Command::StopIfIdle { reply }).await;
        asked.is_ok() && wait.await.unwrap_or(false)
    }

    pub(crate) async fn stop(&self) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(Command::Stop { done }).await.is_ok() {
            let _ = wait.await;
        }
    }

    /// Whether its loop is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.commands.is_closed()
    }

    /// Stops it and writes down that it is deleted; `None` if it had ended before.
    pub(crate) async fn delete(&self) -> Option<Result<(), openvaala_storage::Error>> {
        let (done, wait) = oneshot::channel();
        self.commands.send(Command::Delete { done }).await.ok()?;
        wait.await.ok()
    }

    pub(super) fn command(&self, command: Command) -> Result<(), RuntimeError> {
        self.commands
            .try_send(command)
            .map_err(|error| match error {
                NotTaken::Full(_) => RuntimeError::Overloaded,
                NotTaken::Closed(_) => RuntimeError::Stopped,
            })
    }
}

/// Whether images may be references to what is stored already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refs {
    Allowed,
    Refused,
}

pub(super) fn check(content: &[Content], refs: Refs) -> Result<(), RuntimeError> {
    let invalid = |message: String| Err(RuntimeError::InvalidInput { message });
    let empty = |piece: &Content| piece.as_text().is_some_and(|text| text.trim().is_empty());
    if content.iter().all(empty) {
        return invalid("the input is empty: give some text or an image".to_owned());
    }
    for piece in content {
        if let Content::Image { media_type, data } = piece {
            check_image(media_type, data, refs)?;
        }
    }
    let size: usize = content.iter().map(content_size).sum();
    if size > MAX_INPUT {
        let (size, limit) = (size >> 20, MAX_INPUT >> 20);
        return invalid(format!(
            "the input has {size} MiB, the limit is {limit} MiB: put it into a file and name that"
        ));
    }
    Ok(())
}

/// An image that no provider would take is refused here, where its sender can still be told.
fn check_image(media_type: &str, data: &ImageData, refs: Refs) -> Result<(), RuntimeError> {
    let invalid = |message: String| Err(RuntimeError::InvalidInput { message });
    if !matches!(
        media_type,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    ) {
        let message = "images may be image/png, image/jpeg, image/gif or image/webp";
        return invalid(format!("{message}, not {media_type:?}"));
    }
    match data {
        ImageData::Base64(data) if STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty()) => {
            Ok(())
        }
        ImageData::Base64(_) => {
            invalid("an image is no standard base64 with padding, or is empty".to_owned())
        }
        ImageData::Blob(_) if refs == Refs::Allowed => Ok(()),
        ImageData::Blob(_) => {
            invalid("an image in an input carries its bytes as base64".to_owned())
        }
    }
}

fn content_size(content: &Content) -> usize {
    match content {
        Content::Text { text } => text.len(),
        Content::Image {
            data: ImageData::Base64(data),
            ..
        } => data.len(),
        _ => 0,
    }
}

//! What subscribers are told: durable entries with numbers, and volatile live text.

use serde::{Deserialize, Serialize};

use crate::conversation::{Conversation, Session, Turn};
use crate::id::{ItemId, SessionId, TurnId};
use crate::item::{Item, ItemKind};
use crate::time::Timestamp;

/// Says up to where a client has seen a conversation.
///
/// Opaque to clients: made of the log's own sequence numbers, valid over restarts of the server.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(transparent)]
pub struct ResumeCursor(pub String);

/// Something that has been flushed to the log.
///
/// `seq` is the number in the stream that it lies in: the conversation's metadata, or the session's items.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// The newest state of the conversation.
    Conversation {
        /// Number in the metadata stream.
        #[cfg_attr(feature = "schema", ts(type = "number"))]
        seq: u64,
        /// The state.
        conversation: Conversation,
    },
    /// The newest state of a session.
    Session {
        /// Number in the metadata stream.
        #[cfg_attr(feature = "schema", ts(type = "number"))]
        seq: u64,
        /// The state.
        session: Session,
    },
    /// The newest state of a turn.
    Turn {
        /// Number in the metadata stream.
        #[cfg_attr(feature = "schema", ts(type = "number"))]
        seq: u64,
        /// The state.
        turn: Turn,
    },
    /// An item, final or cut.
    Item {
        /// Number in the session's item stream.
        #[cfg_attr(feature = "schema", ts(type = "number"))]
        seq: u64,
        /// The session that it belongs to.
        session_id: SessionId,
        /// The item.
        #[cfg_attr(feature = "schema", ts(as = "crate::item::ItemShape<'static>"))]
        item: Item,
    },
    /// A line of the log that can't be read: what lies there is lost, the rest is not.
    Damaged {
        /// Number in the session's item stream.
        #[cfg_attr(feature = "schema", ts(type = "number"))]
        seq: u64,
        /// The session whose log it is.
        session_id: SessionId,
        /// What is wrong with it, and where.
        message: String,
    },
}

/// Something that is shown at once and kept nowhere; the item that follows has all of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Live {
    /// An item has begun to appear.
    Started(PartialItem),
    /// More text of an item that has begun.
    Delta(Delta),
    /// An item that had begun will not come: its model response failed.
    Dropped {
        /// The session that it belonged to.
        session_id: SessionId,
        /// The item.
        item_id: ItemId,
    },
    /// A session's log could not be written: its turn has ended, and what was not acknowledged may be lost.
    ///
    /// What had been acknowledged is on disk. The next send tries again.
    Degraded {
        /// The session.
        session_id: SessionId,
        /// What the storage said.
        message: String,
    },
}

/// More text of an item that has begun.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Delta {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The item.
    pub item_id: ItemId,
    /// Where the text goes: bytes of UTF-8 before it. Behind the end of what came before, some was left out: the output
    /// of a tool can come faster than it is shown.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// An item that is still growing.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct PartialItem {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// The turn that it belongs to.
    pub turn_id: TurnId,
    /// The id that the finished item will have.
    pub item_id: ItemId,
    /// What it will be.
    pub kind: ItemKind,
    /// Its place in the session.
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub pos: u64,
    /// When it first appeared.
    pub started_at: Timestamp,
    /// For a tool call the tool's name, for a tool result the call's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Bytes of UTF-8 that came before `text` and are not kept (only the end of long output is).
    #[cfg_attr(feature = "schema", ts(type = "number"))]
    pub offset: u64,
    /// Its text so far: message text, reasoning, arguments, or output.
    pub text: String,
}

/// All that a client needs to show a conversation from here on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Snapshot {
    /// The conversation.
    pub conversation: Conversation,
    /// Its sessions, the root first.
    pub sessions: Vec<SessionSnapshot>,
}

/// One session within a snapshot.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct SessionSnapshot {
    /// The session.
    pub session: Session,
    /// Its running turn or, if none runs, its last one.
    pub turn: Option<Turn>,
    /// The last entries of its log, oldest first.
    pub items: Vec<Entry>,
    /// Where `session/items` goes on backwards; `None` if `items` has all.
    #[cfg_attr(feature = "schema", ts(type = "number | null"))]
    pub before: Option<u64>,
    /// The questions whether a tool call may run that nobody has answered, the oldest first: items of its log, which may lie
    /// before `items`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Vec<crate::item::ItemShape<'static>>"))]
    pub questions: Vec<Item>,
}

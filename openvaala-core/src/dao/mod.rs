//! Conversations, sessions, turns and items on top of the two storage traits.
//!
//! [`query`] is the read side, [`mutation`] the write side, [`index`] the disposable index for listing. The
//! order of every change: items, then states, then index.

pub(crate) mod blob;
pub(crate) mod check;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod index;
pub(crate) mod list;
pub(crate) mod mutation;
pub(crate) mod query;
pub(crate) mod record;
pub(crate) mod reindex;
pub(crate) mod salvage;
pub(crate) mod staging;
pub(crate) mod tail;
pub(crate) mod trash;

use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_storage::{Error, LogPath, StreamId, StreamKey};

/// The directory that holds all conversations.
pub(crate) const CONVERSATIONS: &str = "conversations";
/// The stream of states in a conversation's directory.
pub(crate) const METADATA: &str = "metadata";

pub(crate) fn conversations_path() -> Result<LogPath, Error> {
    CONVERSATIONS.parse()
}

pub(crate) fn conversation_path(id: ConversationId) -> Result<LogPath, Error> {
    format!("{CONVERSATIONS}/{id}").parse()
}

pub(crate) fn metadata_stream() -> Result<StreamId, Error> {
    METADATA.parse()
}

pub(crate) fn metadata_key(id: ConversationId) -> Result<StreamKey, Error> {
    Ok(StreamKey {
        path: conversation_path(id)?,
        stream: metadata_stream()?,
    })
}

pub(crate) fn items_key(id: ConversationId, session: SessionId) -> Result<StreamKey, Error> {
    Ok(StreamKey {
        path: conversation_path(id)?,
        stream: session.to_string().parse()?,
    })
}

pub(crate) fn blobs_key(id: ConversationId, session: SessionId) -> Result<StreamKey, Error> {
    Ok(StreamKey {
        path: conversation_path(id)?,
        stream: format!("{session}.blobs").parse()?,
    })
}

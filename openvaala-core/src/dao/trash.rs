//! The trash: where the directories of deleted conversations wait until somebody empties it.
//!
//! A deletion is an entry in the conversation's metadata; then its directory moves to `trash/<id>`, then its index row
//! goes. A restoration is an entry as well, written in the trash, and then the directory moves back. So the last entry
//! of either kind says where a directory belongs, and a start finishes what a crash has left half done.

use std::sync::Arc;

use futures::StreamExt;
use openvaala_protocol::id::ConversationId;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{EntryData, Error, LogPath, LogStorage, NewEntry, ReadOptions, StreamKey};

use super::record::{self, ReadState, State};
use super::{conversation_path, metadata_stream};

/// The directory that holds deleted conversations.
pub(crate) const TRASH: &str = "trash";
/// How many directories are looked at at the same time.
const AT_ONCE: usize = 32;
/// How many entries are read at a time, from the end backwards.
const PAGE: usize = 100;

/// A deleted conversation that can still be restored.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TrashedConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its title, if it had one that can be read.
    pub title: Option<String>,
    /// When it was deleted, as far as its log says.
    pub deleted_at: Option<Timestamp>,
}

/// Where a directory of the trash or of the conversations belongs, by the end of its metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    /// The last entry about it is a deletion.
    pub(crate) deleted: bool,
    /// The last entry about it is a restoration.
    pub(crate) restored: bool,
    pub(crate) deleted_at: Option<Timestamp>,
    pub(crate) title: Option<String>,
}

pub(crate) fn trash_path() -> Result<LogPath, Error> {
    TRASH.parse()
}

/// The directory of a conversation in the trash.
pub(crate) fn trashed_path(id: ConversationId) -> Result<LogPath, Error> {
    format!("{TRASH}/{id}").parse()
}

/// Reads the end of a conversation's metadata; `None` if there is none at that path.
pub(crate) async fn fate(log: &Arc<dyn LogStorage>, path: &LogPath) -> Result<Option<Fate>, Error> {
    let key = StreamKey::new(path.clone(), metadata_stream()?);
    let mut fate: Option<Fate> = None;
    let mut options = ReadOptions::descending().limit(PAGE);
    loop {
        let page = match log.read(&key, options).await {
            Ok(page) => page,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        for entry in &page.entries {
            let EntryData::Json(data) = &entry.data else {
                continue;
            };
            match ReadState::parse(data) {
                Ok(ReadState::Deleted { kind, at, .. }) if kind == record::CONVERSATION => {
                    fate.get_or_insert_with(|| Fate {
                        deleted: true,
                        deleted_at: at,
                        ..Fate::default()
                    });
                }
                Ok(ReadState::Restored) => {
                    fate.get_or_insert_with(|| Fate {
                        restored: true,
                        ..Fate::default()
                    });
                }
                Ok(ReadState::State(state)) => {
                    if let State::Conversation(state) = *state {
                        let mut fate = fate.unwrap_or_default();
                        fate.title = state.title;
                        return Ok(Some(fate));
                    }
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) => options.cursor = next,
            None => return Ok(Some(fate.unwrap_or_default())),
        }
    }
}

/// Writes that a conversation is deleted.
pub(crate) async fn mark_deleted(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    now: Timestamp,
) -> Result<(), Error> {
    append(log, conversation_path(id)?, record::deleted(id, now), now).await
}

/// Writes into the metadata of a conversation in the trash that it is restored.
pub(crate) async fn mark_restored(
    log: &Arc<dyn LogStorage>,
    id: ConversationId,
    now: Timestamp,
) -> Result<(), Error> {
    append(log, trashed_path(id)?, record::restored(id, now), now).await
}

async fn append(
    log: &Arc<dyn LogStorage>,
    path: LogPath,
    data: Result<Box<serde_json::value::RawValue>, serde_json::Error>,
    now: Timestamp,
) -> Result<(), Error> {
    let data = data.map_err(|source| Error::Encode { source })?;
    let key = StreamKey::new(path, metadata_stream()?);
    let entry = NewEntry::new(now.as_millis(), data);
    log.append(&key, vec![entry]).await?;
    Ok(())
}

/// Moves the directory of a deleted conversation to the trash; nothing if it is not there any more.
pub(crate) async fn move_in(log: &Arc<dyn LogStorage>, id: ConversationId) -> Result<(), Error> {
    log.rename_path(&conversation_path(id)?, &trashed_path(id)?)
        .await?;
    Ok(())
}

/// Moves the directory of a restored conversation back; nothing if it is not there any more.
pub(crate) async fn move_out(log: &Arc<dyn LogStorage>, id: ConversationId) -> Result<(), Error> {
    log.rename_path(&trashed_path(id)?, &conversation_path(id)?)
        .await?;
    Ok(())
}

/// The ids of all that is in the trash, in order.
pub(crate) async fn ids(log: &Arc<dyn LogStorage>) -> Result<Vec<ConversationId>, Error> {
    let listing = log.list(Some(&trash_path()?)).await?;
    let names = listing.paths.iter();
    let names = names.filter_map(|path| path.as_str().rsplit('/').next());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

/// All that is in the trash, the last deleted first; what cannot be read has neither title nor time.
pub(crate) async fn list(log: &Arc<dyn LogStorage>) -> Result<Vec<TrashedConversation>, Error> {
    let mut listed: Vec<TrashedConversation> = fates(log)
        .await?
        .into_iter()
        .map(|(id, fate)| TrashedConversation {
            id,
            title: fate.title,
            deleted_at: fate.deleted_at,
        })
        .collect();
    listed.sort_by_key(|it| std::cmp::Reverse((it.deleted_at, it.id)));
    Ok(listed)
}

/// Brings back what was restored before a crash and did not move yet; gives the ids.
pub(crate) async fn finish_restorations(
    log: &Arc<dyn LogStorage>,
) -> Result<Vec<ConversationId>, Error> {
    let mut finished = Vec::new();
    for (id, fate) in fates(log).await? {
        if !fate.restored {
            continue;
        }
        match move_out(log, id).await {
            Ok(()) => finished.push(id),
            Err(error) => {
                tracing::warn!(conversation = %id, %error, "it was restored and cannot leave the trash");
            }
        }
    }
    Ok(finished)
}

async fn fates(log: &Arc<dyn LogStorage>) -> Result<Vec<(ConversationId, Fate)>, Error> {
    let looks = ids(log).await?.into_iter().map(|id| async move {
        let fate = match trashed_path(id) {
            Ok(path) => fate(log, &path).await,
            Err(error) => Err(error),
        };
        let fate = fate.unwrap_or_else(|error| {
            tracing::warn!(conversation = %id, %error, "it lies in the trash and cannot be read");
            None
        });
        (id, fate.unwrap_or_default())
    });
    Ok(futures::stream::iter(looks)
        .buffered(AT_ONCE)
        .collect()
        .await)
}

//! Reads everything and says what is damaged, where and how much; repairs what can be repaired without losing a byte.

use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::id::{ConversationId, SessionId};
use openvaala_protocol::item::Item;
use openvaala_protocol::rpc::params::check::{CheckResult, Finding, FindingKind};
use openvaala_storage::{
    Damage, Entry, EntryData, Error, LogPath, LogStorage, ReadOptions, StreamKey,
};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::files::Files;
use super::index::Index;
use super::record::{CONVERSATION, ReadState, State};
use super::trash::{self, TRASH};
use super::{CONVERSATIONS, METADATA, conversation_path, query};
use crate::error::RuntimeError;
use crate::runtime::Progress;

/// How many entries are read at a time.
const PAGE: usize = 1_000;
/// How long an end of a stream that somebody else writes may be torn.
const GROWTH: Duration = Duration::from_millis(300);
/// Where directories without metadata are put.
const ASIDE: &str = "leftovers";

/// What is looked at, and with what.
pub(crate) struct Check<'a> {
    pub(crate) log: &'a Arc<dyn LogStorage>,
    pub(crate) files: &'a Files,
    /// The index to compare; `None` leaves it alone.
    pub(crate) index: Option<&'a Index>,
    pub(crate) only: Option<ConversationId>,
    pub(crate) repair: bool,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
}

/// What the metadata of a directory says.
#[derive(Default)]
struct Metadata {
    /// The id of the last state of the conversation.
    id: Option<ConversationId>,
    deleted: bool,
    restored: bool,
}

impl Check<'_> {
    /// Looks at everything; a stream that cannot be read at all is a finding, too.
    ///
    /// # Errors
    /// The storage's error if not even the directories can be listed.
    pub(crate) async fn run(&self) -> Result<CheckResult, Error> {
        let mut result = CheckResult::default();
        let mut places = Vec::new();
        for under in [CONVERSATIONS, TRASH] {
            let listing = self.log.list(Some(&under.parse()?)).await?;
            places.extend(listing.paths);
        }
        if let Some(id) = self.only {
            let name = id.to_string();
            places.retain(|place| name_of(place) == name);
        }
        let total = places.len() as u64;
        for (done, place) in places.iter().enumerate() {
            self.directory(place, &mut result).await?;
            if let Some(progress) = &self.progress {
                // Only the newest figure matters to who listens: a full channel may lose some.
                let done = done as u64 + 1;
                let _ = progress.try_send(Progress { done, total });
            }
        }
        self.compare_index(&mut result).await?;
        Ok(result)
    }

    async fn directory(&self, place: &LogPath, result: &mut CheckResult) -> Result<(), Error> {
        let listing = self.log.list(Some(place)).await?;
        if listing.streams.is_empty() {
            return Ok(());
        }
        result.conversations += 1;
        let mut metadata = None;
        for stream in listing.streams {
            let key = StreamKey::new(place.clone(), stream);
            let read = self.stream(&key, result).await;
            match read {
                Ok(read) if key.stream.as_str() == METADATA => metadata = Some(read),
                Ok(_) => {}
                // It went away while it was read.
                Err(Error::NotFound { .. }) => {}
                Err(error) => result.findings.push(Finding {
                    message: with_causes(&error),
                    ..finding(FindingKind::Unreadable, key.to_string(), NOTHING)
                }),
            }
        }
        match metadata {
            None if self.is_salvaged(place).await? => result.findings.push(Finding {
                message: "its metadata is lost; it is listed with what is left of it".to_owned(),
                ..finding(FindingKind::Unreadable, place.to_string(), NOTHING)
            }),
            None => self.half_copy(place, result).await,
            Some(metadata) => self.belongs(place, &metadata, result).await,
        }
        Ok(())
    }

    async fn stream(&self, key: &StreamKey, result: &mut CheckResult) -> Result<Metadata, Error> {
        let mut metadata = Metadata::default();
        let mut options = ReadOptions::ascending().limit(PAGE);
        result.streams += 1;
        loop {
            let page = self.log.read(key, options).await?;
            for entry in &page.entries {
                result.entries += 1;
                result.findings.extend(entry_finding(key, entry));
                if key.stream.as_str() == METADATA {
                    metadata.take(entry);
                }
            }
            match page.next {
                Some(next) => options.cursor = next,
                None => break,
            }
        }
        self.tail(key, result).await?;
        Ok(metadata)
    }

    /// Bytes behind the last entry: an append that is just being written is gone from there a moment later.
    async fn tail(&self, key: &StreamKey, result: &mut CheckResult) -> Result<(), Error> {
        let Some(torn) = self.files.torn_tail(key).await? else {
            return Ok(());
        };
        sleep(GROWTH).await;
        if self.files.torn_tail(key).await? != Some(torn) {
            return Ok(());
        }
        let (offset, length) = torn;
        let mut found = Finding {
            offset: Some(offset),
            length: Some(length),
            message: "the end is torn: these bytes are no whole entries and were never acknowledged, or a crash has cut them"
                .to_owned(),
            ..finding(
                FindingKind::TornTail,
                key.to_string(),
                "the bytes are cut and kept in a side file; so does the next use of the stream",
            )
        };
        if self.repair {
            found.settle(self.files.cut_torn_tail(key).await.map(drop));
        }
        result.findings.push(found);
        Ok(())
    }

    /// Whether a conversation without metadata is served by what is left of it.
    async fn is_salvaged(&self, place: &LogPath) -> Result<bool, Error> {
        let Ok(id) = name_of(place).parse() else {
            return Ok(false);
        };
        let is_served = conversation_path(id)? == *place;
        Ok(is_served && query::salvaged(self.log, id).await?.is_some())
    }

    async fn half_copy(&self, place: &LogPath, result: &mut CheckResult) {
        let mut found = Finding {
            message: "it has no metadata: a creation that did not finish, or metadata that somebody has removed".to_owned(),
            ..finding(
                FindingKind::HalfCopy,
                place.to_string(),
                "it is moved to the directory `leftovers`",
            )
        };
        if self.repair {
            found.settle(self.set_aside(place).await);
        }
        result.findings.push(found);
    }

    async fn set_aside(&self, place: &LogPath) -> Result<(), Error> {
        let aside = format!("{ASIDE}/{}", name_of(place)).parse()?;
        self.log.rename_path(place, &aside).await?;
        Ok(())
    }

    /// Whether a directory lies where it belongs, under the right name.
    async fn belongs(&self, place: &LogPath, metadata: &Metadata, result: &mut CheckResult) {
        let name = name_of(place);
        let Some(id) = metadata.id else {
            result.findings.push(Finding {
                message: "no state of the conversation itself can be read; it is listed with what is left of it"
                    .to_owned(),
                ..finding(FindingKind::Unreadable, place.to_string(), NOTHING)
            });
            return;
        };
        if name != id.to_string() {
            result.findings.push(Finding {
                message: format!("the conversation in it is {id}"),
                ..finding(
                    FindingKind::WrongName,
                    place.to_string(),
                    "a repair leaves it: rename the directory to that id if there is none of that name, else it is a copy",
                )
            });
            return;
        }
        let is_in_trash = place.as_str().starts_with(TRASH);
        let (kind, message, remedy) = match (is_in_trash, metadata) {
            (false, Metadata { deleted: true, .. }) => (
                FindingKind::InterruptedDeletion,
                "it is deleted and not in the trash yet",
                "it is moved to the trash, as the next start does",
            ),
            (true, Metadata { restored: true, .. }) => (
                FindingKind::InterruptedRestoration,
                "it is restored and still in the trash",
                "it is moved back, as the next start does",
            ),
            _ => return,
        };
        let mut found = Finding {
            message: message.to_owned(),
            ..finding(kind, place.to_string(), remedy)
        };
        if self.repair {
            found.settle(match kind {
                FindingKind::InterruptedDeletion => trash::move_in(self.log, id).await,
                _ => trash::move_out(self.log, id).await,
            });
        }
        result.findings.push(found);
    }

    async fn compare_index(&self, result: &mut CheckResult) -> Result<(), Error> {
        let (Some(index), None) = (self.index, self.only) else {
            return Ok(());
        };
        let stale = index.stale(self.log).await;
        let message = match stale {
            Ok(0) => None,
            Ok(count) => Some(format!("{count} rows are missing, too many or out of date")),
            Err(error) => Some(with_causes(&error)),
        };
        let Some(message) = message else {
            return Ok(());
        };
        let mut found = Finding {
            message,
            ..finding(
                FindingKind::StaleIndex,
                "metadata.db".to_owned(),
                "it is made anew from the logs, as `openvaala reindex` does",
            )
        };
        if self.repair {
            found.settle(match index.rebuild(None).await {
                Ok(_) => Ok(()),
                Err(RuntimeError::Storage(error)) => Err(error),
                Err(_) => Err(Error::Closed),
            });
        }
        result.findings.push(found);
        Ok(())
    }
}

const NOTHING: &str = "nothing: it stays as it is, and what lies around it is served";

impl Metadata {
    fn take(&mut self, entry: &Entry) {
        let EntryData::Json(data) = &entry.data else {
            return;
        };
        match ReadState::parse(data) {
            Ok(ReadState::State(state)) => {
                if let State::Conversation(state) = *state {
                    *self = Self {
                        id: Some(state.id),
                        ..Self::default()
                    };
                }
            }
            Ok(ReadState::Deleted { kind, .. }) if kind == CONVERSATION => {
                (self.deleted, self.restored) = (true, false);
            }
            Ok(ReadState::Restored) => (self.deleted, self.restored) = (false, true),
            _ => {}
        }
    }
}

trait Settle {
    fn settle(&mut self, result: Result<(), Error>);
}

impl Settle for Finding {
    /// Takes note of what a repair has come to.
    fn settle(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => self.repaired = true,
            Err(error) => {
                self.remedy = format!("it could not be repaired: {}", with_causes(&error));
            }
        }
    }
}

fn finding(kind: FindingKind, place: String, remedy: &str) -> Finding {
    Finding {
        kind,
        place,
        seq: None,
        offset: None,
        length: None,
        message: String::new(),
        remedy: remedy.to_owned(),
        repaired: false,
    }
}

/// What is wrong with one entry, if anything is.
fn entry_finding(key: &StreamKey, entry: &Entry) -> Option<Finding> {
    let stream = key.stream.as_str();
    let found = |kind, message| Finding {
        seq: Some(entry.seq),
        message,
        ..finding(kind, key.to_string(), NOTHING)
    };
    let data = match &entry.data {
        EntryData::Json(data) => data,
        EntryData::Damaged(Damage {
            offset,
            length,
            reason,
        }) => {
            return Some(Finding {
                offset: Some(*offset),
                length: Some(*length),
                ..found(FindingKind::DamagedEntry, reason.clone())
            });
        }
        _ => return None,
    };
    if stream == METADATA {
        return match ReadState::parse(data) {
            Ok(ReadState::Newer { format }) => Some(found(
                FindingKind::NewerFormat,
                format!("it has format {format}, which is newer than this version"),
            )),
            Ok(_) => None,
            Err(error) => Some(found(FindingKind::DamagedEntry, error.to_string())),
        };
    }
    if stream.parse::<SessionId>().is_err() {
        return None;
    }
    let error = Item::from_raw(data.clone()).err()?;
    Some(found(
        FindingKind::DamagedEntry,
        format!("no item: {error}"),
    ))
}

fn name_of(place: &LogPath) -> &str {
    place.segments().next_back().unwrap_or_default()
}

fn with_causes(error: &Error) -> String {
    crate::session::with_causes(error)
}

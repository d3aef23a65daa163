//! The work that is measured.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use openvaala_core::executor::local::{LocalExecutor, LocalOptions};
use openvaala_core::protocol::conversation::TurnStatus;
use openvaala_core::protocol::event::Entry;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogPath, LogStorage, NewEntry, StreamId, StreamKey};
use openvaala_core::{
    ConversationHandle, Definitions, FeedEvent, Input, NewConversation, Runtime, Subscription,
};
use serde_json::value::to_raw_value;
use tokio::sync::mpsc;

use crate::Failure;
use crate::floors::ENTRY;
use crate::script::Script;
use crate::turns::median;

const APPENDS: usize = 500;
/// The envelope around the text of an entry.
const ENVELOPE: usize = 64;

/// One entry of half a KiB, appended to a stream and flushed.
pub(crate) async fn append(root: &Path) -> Result<Duration, Failure> {
    let storage = FileStorage::open(FileOptions::new(root))?;
    let (path, stream) = ("bench".parse::<LogPath>()?, "entries".parse::<StreamId>()?);
    let key = StreamKey::new(path, stream);
    let data = to_raw_value(&"x".repeat(ENTRY - ENVELOPE))?;
    let mut times = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let batch = vec![NewEntry::new(0, data.clone())];
        let began = Instant::now();
        storage.append(&key, batch).await?;
        times.push(began.elapsed());
    }
    Ok(median(times))
}

/// A runtime on disk, with a model that answers at once.
#[derive(Debug)]
pub(crate) struct Bench {
    runtime: Runtime,
    asked: mpsc::UnboundedReceiver<Instant>,
}

impl Bench {
    pub(crate) async fn open(folder: &Path) -> Result<Self, Failure> {
        let (script, asked) = Script::new();
        let path = std::env::var("PATH")?;
        let options = LocalOptions::new([("PATH".to_owned(), path)]);
        let definitions = Definitions {
            step_limit: 1_000,
            // The steps are all the same.
            repeat_limit: 0,
            ..Definitions::default()
        };
        let runtime = Runtime::builder()
            .definitions(definitions)
            .data_dir(folder)
            .provider("script", script)
            .executor(Arc::new(LocalExecutor::new(options)))
            .build()
            .await?;
        Ok(Self { runtime, asked })
    }

    pub(crate) async fn close(self) {
        self.runtime.shutdown().await;
    }

    /// Turns without tools, each in a conversation of its own: from the sending to the turn's end on disk.
    pub(crate) async fn new_conversations(&self, count: usize) -> Result<Vec<Duration>, Failure> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let mut talk = self.talk().await?;
            times.push(talk.turn(0).await?);
        }
        Ok(times)
    }

    /// Turns without tools in one conversation.
    pub(crate) async fn turns(&self, count: usize) -> Result<Vec<Duration>, Failure> {
        let mut talk = self.talk().await?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            times.push(talk.turn(0).await?);
        }
        Ok(times)
    }

    /// The steps of one turn, each from one request to the next.
    pub(crate) async fn steps(&mut self, count: usize) -> Result<Vec<Duration>, Failure> {
        let mut talk = self.talk().await?;
        while self.asked.try_recv().is_ok() {}
        talk.turn(count).await?;
        let mut times = Vec::with_capacity(count);
        let mut before = self.asked.recv().await.ok_or("the model was not asked")?;
        while let Ok(asked) = self.asked.try_recv() {
            times.push(asked - before);
            before = asked;
        }
        if times.len() != count {
            return Err(format!("the turn took {} steps and not {count}", times.len()).into());
        }
        Ok(times)
    }

    /// Turns of some steps in many conversations at once, until the last has ended.
    pub(crate) async fn crowd(&self, sessions: usize, steps: usize) -> Result<Duration, Failure> {
        let talks = try_join_all((0..sessions).map(|_| self.talk())).await?;
        let began = Instant::now();
        let turns = talks
            .into_iter()
            .map(|mut talk| async move { talk.turn(steps).await });
        try_join_all(turns).await?;
        Ok(began.elapsed())
    }

    async fn talk(&self) -> Result<Talk, Failure> {
        let new = NewConversation::in_folder(std::env::current_dir()?);
        let conversation = self.runtime.create(new).await?;
        let events = conversation.subscribe(None).await?;
        Ok(Talk {
            conversation,
            events,
        })
    }
}

/// A conversation, and what it tells.
struct Talk {
    conversation: ConversationHandle,
    events: Subscription,
}

impl Talk {
    /// Runs a turn of that many commands to its end.
    async fn turn(&mut self, steps: usize) -> Result<Duration, Failure> {
        let began = Instant::now();
        self.conversation
            .send(Input::text(steps.to_string()))
            .await?;
        while let Some(event) = self.events.next().await {
            let entry = match event {
                FeedEvent::Entry { entry, .. } => entry,
                FeedEvent::Gap { reason } => return Err(reason.into()),
                _ => continue,
            };
            let Entry::Turn { turn, .. } = &*entry else {
                continue;
            };
            match turn.status {
                TurnStatus::Running => {}
                TurnStatus::Completed => return Ok(began.elapsed()),
                _ => return Err(format!("a turn did not complete: {turn:?}").into()),
            }
        }
        Err("the conversation has ended".into())
    }
}

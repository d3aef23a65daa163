//! Writes data directories of any size, the same ones for the same plan.

mod conversation;
mod plan;
mod unsynced;
pub(crate) mod words;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{TryStreamExt, stream};
use openvaala_core::dialect::demo::DemoProvider;
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::{LogStorage, NewEntry, StreamKey};
use openvaala_core::{Progress as Reindexed, Runtime, RuntimeBuilder};
use tokio::sync::mpsc;

pub(crate) use self::conversation::Author;
pub(crate) use self::plan::{At, Plan};
pub(crate) use self::unsynced::UnsyncedFs;
use crate::Failure;
use crate::arguments::Arguments;

/// Conversations that are written at the same time.
const AT_ONCE: usize = 16;
/// A batch has at most so many entries and ends once it has so many bytes.
const BATCH: (usize, usize) = (1_000, 4 << 20);
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// The command `generate`.
pub(crate) async fn run(mut arguments: Arguments) -> Result<(), Failure> {
    let folder = PathBuf::from(arguments.required("DIR")?);
    let plan = Plan::from_arguments(&mut arguments)?;
    let with_index = arguments.flag("index");
    arguments.finish()?;
    if folder.join("conversations").exists() {
        return Err(format!("{} holds conversations already", folder.display()).into());
    }
    write(&folder, &Author::new(plan)).await?;
    if with_index {
        index(&folder).await?;
    }
    Ok(())
}

/// Writes the logs of a plan.
pub(crate) async fn write(folder: &Path, author: &Author) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    let options = FileOptions::new(folder).fs(Arc::new(UnsyncedFs::default()));
    let storage = FileStorage::open(options)?;
    let progress = Progress::new("items", author.plan.items);
    stream::iter((0..author.plan.conversations).map(Ok))
        .try_for_each_concurrent(AT_ONCE, |conversation| {
            one(&storage, author, conversation, &progress)
        })
        .await
}

async fn one(
    storage: &FileStorage,
    author: &Author,
    conversation: u64,
    progress: &Progress,
) -> Result<(), Failure> {
    let plan = &author.plan;
    for session in 0..plan.sessions {
        let at = At {
            conversation,
            session,
        };
        let key = items_key(plan, at)?;
        let mut batch = Batch::default();
        for number in 1..=plan.items_of(at) {
            batch.add(author.item_entry(at, number)?);
            if batch.is_full() {
                batch.append(storage, &key, progress).await?;
            }
        }
        batch.append(storage, &key, progress).await?;
    }
    let path = format!("conversations/{}", plan.conversation_id(conversation));
    let key = StreamKey::new(path.parse()?, "metadata".parse()?);
    let mut states = author.states(conversation)?.into_iter();
    loop {
        let batch: Vec<NewEntry> = states.by_ref().take(BATCH.0).collect();
        if batch.is_empty() {
            return Ok(());
        }
        storage.append(&key, batch).await?;
    }
}

/// The stream of a session's items.
pub(crate) fn items_key(plan: &Plan, at: At) -> Result<StreamKey, Failure> {
    let path = format!("conversations/{}", plan.conversation_id(at.conversation));
    let stream = plan.session_id(at).to_string();
    Ok(StreamKey::new(path.parse()?, stream.parse()?))
}

/// Makes the index of a data directory.
pub(crate) async fn index(folder: &Path) -> Result<(), Failure> {
    let runtime = runtime(folder).index_only().build().await?;
    let (tell, mut hear) = mpsc::channel::<Reindexed>(16);
    let shown = async {
        let mut progress = Progress::new("conversations", 0);
        while let Some(heard) = hear.recv().await {
            progress.total = heard.total;
            progress.reached(heard.done);
        }
    };
    let (report, ()) = tokio::join!(runtime.reindex(tell), shown);
    runtime.shutdown().await;
    match report?.damaged.first() {
        Some(damaged) => Err(damaged.clone().into()),
        None => Ok(()),
    }
}

/// A runtime on a data directory, with a model that is never asked.
pub(crate) fn runtime(folder: &Path) -> RuntimeBuilder {
    Runtime::builder()
        .data_dir(folder)
        .provider("demo", Arc::new(DemoProvider::new()))
}

#[derive(Debug, Default)]
struct Batch {
    entries: Vec<NewEntry>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, entry: NewEntry) {
        self.bytes += entry.data.get().len();
        self.entries.push(entry);
    }

    const fn is_full(&self) -> bool {
        self.entries.len() >= BATCH.0 || self.bytes >= BATCH.1
    }

    async fn append(
        &mut self,
        storage: &FileStorage,
        key: &StreamKey,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let batch = std::mem::take(self).entries;
        if !batch.is_empty() {
            let count = batch.len() as u64;
            storage.append(key, batch).await?;
            progress.reached(progress.done.get() + count);
        }
        Ok(())
    }
}

/// Says on standard error how far something is, once a second.
#[derive(Debug)]
struct Progress {
    what: &'static str,
    total: u64,
    done: Cell<u64>,
    told: Cell<Instant>,
}

impl Progress {
    fn new(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            done: Cell::new(0),
            told: Cell::new(Instant::now()),
        }
    }

    fn reached(&self, done: u64) {
        self.done.set(done);
        if self.told.get().elapsed() >= TOLD_EVERY {
            self.told.set(Instant::now());
            eprintln!("{done} of {} {}", self.total, self.what);
        }
    }
}

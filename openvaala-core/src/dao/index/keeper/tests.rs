//! Which storage serves when, by a clock that stands still.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use openvaala_storage::sqlite::{SqliteDatabase, SqliteOptions};
use openvaala_storage::{
    Appended, Fingerprint, Listing, LogPath, NewEntry, Page, ReadOptions, StreamInfo, StreamKey,
};
use pretty_assertions::assert_eq;
use tokio::task::JoinSet;

use super::*;
use crate::dao::index::namespaces;
use crate::dao::index::place::OpenedIndex;

/// A place that can be opened only after some failures.
#[derive(Debug)]
struct Stubborn {
    failures: AtomicU32,
    tries: AtomicU32,
}

fn empty() -> Arc<dyn RecordStorage> {
    let options = SqliteOptions::in_memory().namespaces(namespaces());
    Arc::new(SqliteDatabase::open(options).unwrap().records())
}

#[async_trait]
impl Place for Stubborn {
    fn name(&self) -> String {
        "the place".to_owned()
    }

    async fn open(&self) -> Result<OpenedIndex, Error> {
        self.tries.fetch_add(1, Ordering::SeqCst);
        let failures = &self.failures;
        let left =
            failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1));
        match left {
            Ok(_) => Err(Error::ReadOnly),
            Err(_) => Ok(OpenedIndex {
                records: empty(),
                aside: None,
            }),
        }
    }

    async fn set_aside(&self) -> Result<Option<PathBuf>, Error> {
        Ok(None)
    }

    async fn beside(&self) -> Result<Arc<dyn RecordStorage>, Error> {
        Err(Error::ReadOnly)
    }

    async fn take_place(&self) -> Result<(), Error> {
        Err(Error::ReadOnly)
    }

    fn in_memory(&self) -> Result<Arc<dyn RecordStorage>, Error> {
        Ok(empty())
    }
}

/// A log with nothing in it.
#[derive(Debug)]
struct Nothing;

#[async_trait]
impl LogStorage for Nothing {
    async fn append(&self, _: &StreamKey, _: Vec<NewEntry>) -> Result<Appended, Error> {
        Err(Error::ReadOnly)
    }

    async fn read(&self, key: &StreamKey, _: ReadOptions) -> Result<Page, Error> {
        Err(Error::NotFound { key: key.clone() })
    }

    async fn fingerprint(&self, _: &StreamKey) -> Result<Option<Fingerprint>, Error> {
        Ok(None)
    }

    async fn info(&self, _: &StreamKey) -> Result<Option<StreamInfo>, Error> {
        Ok(None)
    }

    async fn list(&self, _: Option<&LogPath>) -> Result<Listing, Error> {
        Ok(Listing::default())
    }

    async fn delete(&self, _: &StreamKey) -> Result<bool, Error> {
        Err(Error::ReadOnly)
    }

    async fn delete_path(&self, _: &LogPath) -> Result<bool, Error> {
        Err(Error::ReadOnly)
    }

    async fn rename_path(&self, _: &LogPath, _: &LogPath) -> Result<bool, Error> {
        Err(Error::ReadOnly)
    }
}

/// An index with a place that fails so often, and the tasks behind it.
fn start(failures: u32) -> (Index, Arc<Stubborn>, JoinSet<()>) {
    let place = Arc::new(Stubborn {
        failures: AtomicU32::new(failures),
        tries: AtomicU32::new(0),
    });
    let origin = Origin::Place(Arc::clone(&place) as Arc<dyn Place>);
    let (left, _) = mpsc::unbounded_channel();
    let (index, writer, keeper) =
        Keeper::start(Arc::new(Nothing), Staging::default(), origin, Some(left));
    let mut tasks = JoinSet::new();
    tasks.spawn(writer);
    tasks.spawn(keeper);
    (index, place, tasks)
}

async fn generation(index: &Index, generation: u64) {
    let mut shelves = index.shelf.clone();
    let newer = |shelf: &Option<Arc<Shelf>>| {
        shelf
            .as_ref()
            .is_some_and(|shelf| shelf.generation >= generation)
    };
    shelves.wait_for(newer).await.unwrap();
}

async fn checked(index: &Index) {
    let mut standing = index.standing.clone();
    standing.wait_for(|it| it.is_checked).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rows_live_in_memory_until_the_place_can_be_opened_which_is_tried_ever_more_seldom() {
    let (index, place, _tasks) = start(3);
    let begin = Instant::now();
    checked(&index).await;
    let trouble = index.trouble();
    assert!(
        trouble.len() == 1 && trouble[0].contains("the place"),
        "{trouble:?}"
    );
    generation(&index, 2).await;
    // Tried at the start, after 5 seconds, 10 more and 20 more.
    assert_eq!(place.tries.load(Ordering::SeqCst), 4);
    assert!(begin.elapsed() >= FIRST_WAIT * 7, "{:?}", begin.elapsed());
    let mut standing = index.standing.clone();
    standing.wait_for(|it| it.trouble.is_none()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_damage_is_told_once_by_any_number_of_readers_and_replaced_once() {
    let (index, place, _tasks) = start(0);
    checked(&index).await;
    for _ in 0..5 {
        index.report(1, Fault::Damaged, &Error::Closed);
    }
    generation(&index, 2).await;
    checked(&index).await;
    // Answered after what was told before it.
    let error = index.rebuild(None).await;
    assert!(error.is_ok(), "{error:?}");
    assert_eq!(place.tries.load(Ordering::SeqCst), 2);
}

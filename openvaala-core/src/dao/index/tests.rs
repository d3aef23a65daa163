//! When rows are written, by a clock that stands still.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use openvaala_protocol::id::SessionId;
use openvaala_protocol::time::Timestamp;
use openvaala_storage::{Error, RecordPage};
use pretty_assertions::assert_eq;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::writer::{GATHER, RETRY, Writer};
use super::*;

/// Tells what is written and keeps nothing.
#[derive(Debug)]
struct Told {
    written: mpsc::UnboundedSender<Vec<String>>,
    failing: AtomicBool,
}

#[async_trait]
impl RecordStorage for Told {
    async fn set(&self, _: &str, _: Record) -> Result<(), Error> {
        Err(Error::Closed)
    }

    async fn mset(&self, records: Vec<(String, Record)>) -> Result<(), Error> {
        if self.failing.swap(false, Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        let titles = records
            .iter()
            .map(|(_, record)| Row::parse(record).unwrap().conversation.title.unwrap());
        self.written.send(titles.collect()).unwrap();
        Ok(())
    }

    async fn get(&self, _: &str, _: &str) -> Result<Option<Record>, Error> {
        Err(Error::Closed)
    }

    async fn mget(&self, _: &str, _: &[String]) -> Result<Vec<Option<Record>>, Error> {
        Err(Error::Closed)
    }

    async fn delete(&self, _: &str, _: &str) -> Result<bool, Error> {
        self.written.send(vec!["-".to_owned()]).unwrap();
        Ok(true)
    }

    async fn delete_range(&self, _: &str, _: Option<&str>, _: Option<&str>) -> Result<u64, Error> {
        Err(Error::Closed)
    }

    async fn list(&self, _: &str, _: ListOptions) -> Result<RecordPage, Error> {
        Err(Error::Closed)
    }
}

type Written = mpsc::UnboundedReceiver<Vec<String>>;

fn index(failing: bool) -> (Index, Written, JoinHandle<()>) {
    let (sender, written) = mpsc::unbounded_channel();
    let (shelf, _) = Shelf::new(
        Arc::new(Told {
            written: sender,
            failing: AtomicBool::new(failing),
        }),
        1,
    );
    let (to_writer, from_index) = mpsc::unbounded_channel();
    let (to_keeper, _) = mpsc::unbounded_channel();
    let (_, shelf) = watch::channel(Some(shelf));
    let (_, standing) = watch::channel(Standing::default());
    let (tell_trouble, trouble) = watch::channel(None);
    let writer = Writer::new(shelf.clone(), to_keeper.clone(), from_index, tell_trouble);
    let index = Index {
        writer: to_writer,
        keeper: to_keeper,
        shelf,
        standing,
        trouble,
        staging: Staging::default(),
    };
    (index, written, tokio::spawn(writer.run()))
}

fn id() -> ConversationId {
    ConversationId::from_uuid(Uuid::from_u128(1))
}

fn put(index: &Index, seq: u64) {
    let conversation = Conversation {
        id: id(),
        title: Some(seq.to_string()),
        status: ConversationStatus::Idle,
        root_session: SessionId::from_uuid(Uuid::from_u128(1)),
        executors: Vec::new(),
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        damaged: None,
        archived: false,
        forked_from: None,
    };
    index.put(seq, Row::new(conversation, false, &Fingerprint::new("x")));
}

async fn sleep(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn of_what_follows_within_a_moment_only_the_last_row_is_written() {
    let (index, mut written, _task) = index(false);
    let start = Instant::now();
    put(&index, 1);
    sleep(2).await;
    put(&index, 3);
    sleep(30).await;
    put(&index, 2);
    assert_eq!(written.recv().await.unwrap(), ["3"]);
    assert!(start.elapsed() >= GATHER && start.elapsed() < GATHER * 2);
    put(&index, 4);
    index.remove(id());
    assert_eq!(written.recv().await.unwrap(), ["-"]);
    assert!(written.is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_flushes_waits_for_no_moment() {
    let (index, mut written, _task) = index(false);
    let start = Instant::now();
    put(&index, 1);
    index.flush().await;
    assert_eq!(written.try_recv().unwrap(), ["1"]);
    index.flush().await;
    assert_eq!(
        (start.elapsed(), written.is_empty()),
        (Duration::ZERO, true)
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_leaves_nothing_unwritten() {
    let (index, mut written, task) = index(false);
    put(&index, 1);
    drop(index);
    task.await.unwrap();
    assert_eq!(written.recv().await.unwrap(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn rows_that_never_cease_are_written_all_the_same() {
    let (index, mut written, _task) = index(false);
    let start = Instant::now();
    let mut seq = 0;
    while written.is_empty() {
        seq += 1;
        put(&index, seq);
        sleep(5).await;
        assert!(start.elapsed() < GATHER * 2);
    }
    assert_eq!(written.recv().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rows_that_could_not_be_written_are_told_and_tried_again() {
    let (index, mut written, _task) = index(true);
    put(&index, 1);
    index.flush().await;
    assert!(!index.trouble().is_empty() && written.is_empty());
    let start = Instant::now();
    assert_eq!(written.recv().await.unwrap(), ["1"]);
    assert!(start.elapsed() >= RETRY && start.elapsed() < RETRY * 2);
    index.flush().await;
    assert_eq!(index.trouble(), Vec::<String>::new());
}

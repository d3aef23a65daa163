//! A thread that owns one connection and runs jobs on it in order.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::sqlite::database::Durability;

type Job = Box<dyn FnOnce(&mut Owner) + Send>;

/// What the thread owns.
pub(super) struct Owner {
    connection: Connection,
    durability: Option<Durability>,
}

impl Owner {
    /// Begins a transaction for a consistent look at the database.
    pub(super) fn read(&mut self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::begin(&mut self.connection, "BEGIN")
    }

    /// Begins a transaction that writes.
    pub(super) fn write(&mut self, durability: Durability) -> rusqlite::Result<Transaction<'_>> {
        if self.durability != Some(durability) {
            let level = match durability {
                Durability::Full => "FULL",
                Durability::Normal => "NORMAL",
            };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        Transaction::begin(&mut self.connection, "BEGIN IMMEDIATE")
    }
}

/// A transaction, rolled back unless it is committed; unlike the one of `rusqlite` it does not parse its statements each
/// time.
pub(super) struct Transaction<'a> {
    /// Lent whole, so that there is no transaction within a transaction.
    connection: &'a mut Connection,
}

impl<'a> Transaction<'a> {
    fn begin(connection: &'a mut Connection, begin: &str) -> rusqlite::Result<Self> {
        connection.prepare_cached(begin)?.execute([])?;
        Ok(Self { connection })
    }

    /// Makes what was written last; on an error nothing was.
    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Committed, or ended by SQLite because of an error.
        if self.connection.is_autocommit() {
            return;
        }
        let ended = self.connection.prepare_cached("ROLLBACK");
        if let Err(error) = ended.and_then(|mut rollback| rollback.execute([])) {
            tracing::warn!(%error, "a transaction could not be rolled back");
        }
    }
}

/// The handle of the thread; dropping it waits until the thread has run what waits and has ended.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Option<Sender<Job>>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(name: &str, connection: Connection) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&waiting);
        let owner = Owner {
            connection,
            durability: None,
        };
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(move || work(owner, &inbox, &counter))?;
        Ok(Self {
            jobs: Some(jobs),
            waiting,
            thread: Some(thread),
        })
    }

    /// Returns how many jobs wait or run.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs a job and returns its result; `None` when the thread is gone.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Owner) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, result) = oneshot::channel();
        let job: Job = Box::new(move |owner| {
            // The caller may have left: the job has happened all the same.
            let _ = reply.send(job(owner));
        });
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.as_ref()?.send(job).ok()?;
        result.await.ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn work(mut owner: Owner, inbox: &Receiver<Job>, waiting: &AtomicUsize) {
    for job in inbox {
        job(&mut owner);
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

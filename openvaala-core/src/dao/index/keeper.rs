//! The task that owns the storage of the rows: opens it, checks it, and replaces it when it is broken.
//!
//! Whatever happens to the storage, rows can be read and written again in the end: a damaged one is set aside and made
//! anew from the log; while none can be opened in its place the rows live in memory, and the place is tried again,
//! ever more seldom.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use openvaala_protocol::id::ConversationId;
use openvaala_storage::{Error, LogStorage, RecordStorage};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::place::Place;
use super::shelf::{Fault, Shelf, Standing};
use super::writer::{self, Writer};
use super::{Index, active};
use crate::dao::reindex::{Extent, Scan, Target, reindex};
use crate::dao::staging::Staging;
use crate::runtime::{Progress, ReindexReport};

/// How long to wait before something that failed is tried again; then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest of those waits.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How long readers of a storage that is replaced may take to their end.
const CLOSING: Duration = Duration::from_secs(10);
/// How many storages in a row may break before they have been checked; then the rows go to memory.
const BROKEN: u32 = 3;

/// What is asked of the keeper.
#[derive(Debug)]
pub(super) enum Ask {
    /// The storage of that generation is broken.
    Fault {
        generation: u64,
        fault: Fault,
        message: String,
    },
    /// Make all rows anew.
    Rebuild {
        progress: Option<mpsc::Sender<Progress>>,
        reply: oneshot::Sender<Result<ReindexReport, Error>>,
    },
}

/// Where the rows are to lie.
#[derive(Debug)]
pub(crate) enum Origin {
    /// In a storage that somebody else cares for.
    Given(Arc<dyn RecordStorage>),
    /// In a place where a storage can be made anew.
    #[cfg_attr(not(all(feature = "file", feature = "sqlite")), allow(dead_code))]
    Place(Arc<dyn Place>),
}

/// What was left at work when the runtime ended the last time.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Left {
    /// That conversation.
    Conversation(ConversationId),
    /// All has been told.
    All,
}

/// A time to try again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    wait: Duration,
}

impl Retry {
    fn after(earlier: Option<Self>) -> Self {
        let wait = earlier.map_or(FIRST_WAIT, |earlier| (earlier.wait * 2).min(LONGEST_WAIT));
        Self {
            at: Instant::now() + wait,
            wait,
        }
    }
}

/// The owner of the storage of the rows.
pub(crate) struct Keeper {
    log: Arc<dyn LogStorage>,
    index: Index,
    origin: Origin,
    asks: mpsc::UnboundedReceiver<Ask>,
    /// What was asked while a check ran.
    deferred: VecDeque<Ask>,
    shelf: watch::Sender<Option<Arc<Shelf>>>,
    standing: watch::Sender<Standing>,
    /// Whom to tell what was left at work; `None` leaves it alone and checks nothing.
    left: Option<mpsc::UnboundedSender<Left>>,
    told: HashSet<ConversationId>,
    generation: u64,
    closed: Option<oneshot::Receiver<Infallible>>,
    /// How many storages broke since the last check.
    broken: u32,
    /// When the place is tried again; `Some` while the rows live in memory.
    place_retry: Option<Retry>,
    check_retry: Option<Retry>,
}

impl Keeper {
    /// Makes an index and the tasks behind it: one that writes, one that keeps the storage. Both run until they are dropped.
    ///
    /// Nothing happens before they run. With `left` the index is brought in step with the log first of all.
    pub(crate) fn start(
        log: Arc<dyn LogStorage>,
        staging: Staging,
        origin: Origin,
        left: Option<mpsc::UnboundedSender<Left>>,
    ) -> (
        Index,
        impl Future<Output = ()> + Send,
        impl Future<Output = ()> + Send,
    ) {
        let (to_writer, from_index) = mpsc::unbounded_channel();
        let (to_keeper, asks) = mpsc::unbounded_channel();
        let (tell_shelf, shelf) = watch::channel(None);
        let (tell_standing, standing) = watch::channel(Standing::default());
        let (tell_trouble, trouble) = watch::channel(None);
        let writer = Writer::new(shelf.clone(), to_keeper.clone(), from_index, tell_trouble);
        let index = Index {
            writer: to_writer,
            keeper: to_keeper,
            shelf,
            standing,
            trouble,
            staging,
        };
        let keeper = Self {
            log,
            index: index.clone(),
            origin,
            asks,
            deferred: VecDeque::new(),
            shelf: tell_shelf,
            standing: tell_standing,
            left,
            told: HashSet::new(),
            generation: 0,
            closed: None,
            broken: 0,
            place_retry: None,
            check_retry: None,
        };
        (index, writer.run(), keeper.run())
    }

    async fn run(mut self) {
        self.open().await;
        if self.left.is_some() {
            self.tell_what_was_left().await;
            self.check().await;
        }
        self.tell(Left::All);
        loop {
            if let Some(ask) = self.deferred.pop_front() {
                self.answer(ask).await;
                continue;
            }
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.answer(ask).await,
                    None => return,
                },
                () = until(self.place_retry) => self.return_to_place().await,
                () = until(self.check_retry) => self.check().await,
            }
        }
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Fault {
                generation,
                fault,
                message,
            } => {
                if generation == self.generation && self.replace(fault, &message).await {
                    self.check().await;
                }
            }
            Ask::Rebuild { progress, reply } => {
                let _ = reply.send(self.rebuild(progress).await);
            }
        }
    }

    /// Opens the storage; rows live in memory if that cannot be done.
    async fn open(&mut self) {
        let place = match &self.origin {
            Origin::Given(records) => return self.publish(Arc::clone(records)),
            Origin::Place(place) => Arc::clone(place),
        };
        match place.open().await {
            Ok(opened) => {
                if let Some(aside) = &opened.aside {
                    tracing::warn!(path = %aside.display(), "the index could not be read and was set aside");
                }
                self.place_retry = None;
                self.set_trouble(None);
                self.publish(opened.records);
            }
            Err(error) => self.go_to_memory(&*place, &describe(&error)),
        }
    }

    fn go_to_memory(&mut self, place: &dyn Place, why: &str) {
        let trouble = format!(
            "the index lives in memory until {} can be used: {why}",
            place.name()
        );
        tracing::warn!("{trouble}");
        self.set_trouble(Some(trouble));
        self.place_retry = Some(Retry::after(self.place_retry));
        match place.in_memory() {
            Ok(records) => self.publish(records),
            Err(error) => tracing::error!(%error, "there is no index at all"),
        }
    }

    fn publish(&mut self, records: Arc<dyn RecordStorage>) {
        self.generation += 1;
        let (shelf, closed) = Shelf::new(records, self.generation);
        self.closed = Some(closed);
        self.shelf.send_replace(Some(shelf));
    }

    /// Takes the storage away from readers and writer, and waits until it is closed.
    async fn close(&mut self) {
        if let Some(shelf) = self.shelf.send_replace(None) {
            drop_elsewhere(shelf).await;
        }
        if let Some(closed) = self.closed.take()
            && timeout(CLOSING, closed).await.is_err()
        {
            tracing::warn!("somebody still reads the index that is replaced");
        }
    }

    /// Opens another storage in place of a broken one; says whether there is a new one that has to be checked.
    async fn replace(&mut self, fault: Fault, message: &str) -> bool {
        let Origin::Place(place) = &self.origin else {
            return false;
        };
        let place = Arc::clone(place);
        tracing::warn!("the index is replaced: {message}");
        self.set_checked(false);
        self.close().await;
        self.broken += 1;
        if self.broken > BROKEN {
            self.go_to_memory(&*place, message);
            return true;
        }
        // In memory there is nothing to set aside.
        if fault == Fault::Damaged && self.place_retry.is_none() {
            match place.set_aside().await {
                Ok(Some(aside)) => {
                    tracing::warn!(path = %aside.display(), "the damaged index was set aside");
                }
                Ok(None) => {}
                Err(error) => {
                    self.go_to_memory(&*place, &describe(&error));
                    return true;
                }
            }
        }
        self.open().await;
        true
    }

    /// Brings the index in step with the log, in whatever storage that succeeds.
    async fn check(&mut self) {
        loop {
            let result = match self.scan().await {
                Ok(scan) => Ok(scan),
                Err(Stopped::Broken(fault, message)) => {
                    if self.replace(fault, &message).await {
                        continue;
                    }
                    Err(message)
                }
                Err(Stopped::Failed(error)) => Err(describe(&error)),
            };
            match result {
                Ok(scan) => {
                    for damaged in &scan.report.damaged {
                        tracing::warn!("{damaged}");
                    }
                    self.checked(scan);
                }
                Err(message) => {
                    tracing::warn!("the index could not be checked: {message}");
                    if self.place_retry.is_none() {
                        let trouble = format!("the index could not be checked: {message}");
                        self.set_trouble(Some(trouble));
                    }
                    self.check_retry = Some(Retry::after(self.check_retry));
                }
            }
            return;
        }
    }

    fn checked(&mut self, scan: Scan) {
        self.check_retry = None;
        self.broken = 0;
        if self.place_retry.is_none() {
            self.set_trouble(None);
        }
        self.set_checked(true);
        for id in scan.active {
            self.tell_of(id);
        }
    }

    /// Looks at every conversation; ends early when the storage turns out to be broken.
    async fn scan(&mut self) -> Result<Scan, Stopped> {
        let Some(shelf) = self.shelf.borrow().clone() else {
            return Err(Stopped::Failed(Error::Closed));
        };
        let (log, index) = (Arc::clone(&self.log), self.index.clone());
        let target = Target::Serving(&index, &*shelf.records);
        let scan = reindex(&log, &self.index.staging, target, Extent::Changed, None);
        tokio::pin!(scan);
        loop {
            tokio::select! {
                result = &mut scan => return result.map_err(|error| {
                    match Fault::of_read(&error).filter(|_| is_of_index(&error)) {
                        Some(fault) => Stopped::Broken(fault, describe(&error)),
                        None => Stopped::Failed(error),
                    }
                }),
                ask = self.asks.recv() => match ask {
                    Some(Ask::Fault { generation, fault, message }) => {
                        if generation == self.generation {
                            return Err(Stopped::Broken(fault, message));
                        }
                    }
                    Some(ask) => self.deferred.push_back(ask),
                    None => return Err(Stopped::Failed(Error::Closed)),
                },
            }
        }
    }

    /// Makes all rows anew, in a new storage that then takes the place of the old one.
    async fn rebuild(
        &mut self,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<ReindexReport, Error> {
        let beside = match &self.origin {
            Origin::Given(_) => None,
            Origin::Place(place) => match place.beside().await {
                Ok(records) => Some((Arc::clone(place), records)),
                Err(error) => {
                    tracing::warn!(%error, "the index is made anew where it is: there can be none beside it");
                    None
                }
            },
        };
        let Some((place, records)) = beside else {
            return self.rebuild_in_place(progress).await;
        };
        let scan = self.fill(&records, Extent::All, progress).await;
        let scan = match scan {
            Ok(scan) => scan,
            Err(error) => {
                drop_elsewhere(records).await;
                return Err(error);
            }
        };
        drop_elsewhere(records).await;
        if let Err(error) = place.take_place().await {
            self.open().await;
            self.check().await;
            return Err(error);
        }
        self.open().await;
        let report = scan.report.clone();
        if self.place_retry.is_some() {
            self.set_checked(false);
            self.check().await;
        } else {
            self.checked(scan);
        }
        Ok(report)
    }

    async fn rebuild_in_place(
        &mut self,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<ReindexReport, Error> {
        let shelf = self.shelf.borrow().clone().ok_or(Error::Closed)?;
        let (log, index) = (Arc::clone(&self.log), self.index.clone());
        let target = Target::Serving(&index, &*shelf.records);
        let scan = reindex(&log, &self.index.staging, target, Extent::All, progress).await?;
        let report = scan.report.clone();
        self.checked(scan);
        Ok(report)
    }

    /// Fills a storage that does not serve yet. When it is full, the old one is closed and nothing is written meanwhile.
    async fn fill(
        &mut self,
        records: &Arc<dyn RecordStorage>,
        extent: Extent,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<Scan, Error> {
        // What changes meanwhile goes to the old storage, and in the end to the new one as well.
        self.index.mirror();
        let scan = reindex(
            &self.log,
            &self.index.staging,
            Target::Beside(&**records),
            extent,
            progress,
        )
        .await;
        let scan = match scan {
            Ok(scan) => scan,
            Err(error) => {
                self.index.take_mirror().await;
                return Err(error);
            }
        };
        self.close().await;
        let changed = self.index.take_mirror().await;
        if let Err(error) = writer::write(&**records, &changed).await {
            self.open().await;
            return Err(error);
        }
        Ok(scan)
    }

    /// Tries the place again while the rows live in memory.
    async fn return_to_place(&mut self) {
        let Origin::Place(place) = &self.origin else {
            return;
        };
        let opened = match Arc::clone(place).open().await {
            Ok(opened) => opened,
            Err(error) => {
                tracing::debug!(%error, "the index stays in memory");
                self.place_retry = Some(Retry::after(self.place_retry));
                return;
            }
        };
        match self.fill(&opened.records, Extent::Changed, None).await {
            Ok(scan) => {
                self.place_retry = None;
                self.publish(opened.records);
                self.checked(scan);
                tracing::info!("the index lies in its place again");
            }
            Err(error) => {
                tracing::debug!(%error, "the index stays in memory");
                drop_elsewhere(opened.records).await;
                self.place_retry = Some(Retry::after(self.place_retry));
            }
        }
    }

    async fn tell_what_was_left(&mut self) {
        let Some(shelf) = self.shelf.borrow().clone() else {
            return;
        };
        match active(&*shelf.records).await {
            Ok(ids) => ids.into_iter().for_each(|id| self.tell_of(id)),
            // The check finds them as well.
            Err(error) => tracing::warn!(%error, "the index cannot tell what was left at work"),
        }
    }

    fn tell_of(&mut self, id: ConversationId) {
        if self.told.insert(id) {
            self.tell(Left::Conversation(id));
        }
    }

    fn tell(&self, left: Left) {
        if let Some(sender) = &self.left {
            let _ = sender.send(left);
        }
    }

    fn set_checked(&self, is_checked: bool) {
        self.standing
            .send_modify(|standing| standing.is_checked = is_checked);
    }

    fn set_trouble(&self, trouble: Option<String>) {
        self.standing
            .send_modify(|standing| standing.trouble = trouble);
    }
}

/// Why a scan has no result.
enum Stopped {
    Broken(Fault, String),
    Failed(Error),
}

/// Whether an error comes from the records and not from the log.
fn is_of_index(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. } | Error::Backend { .. } | Error::Closed
    )
}

/// What went wrong, causes and all.
pub(crate) fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

async fn until(retry: Option<Retry>) {
    match retry {
        Some(retry) => sleep_until(retry.at).await,
        None => std::future::pending().await,
    }
}

/// Drops what may wait for a thread to end.
async fn drop_elsewhere<T: Send + 'static>(value: T) {
    let _ = tokio::task::spawn_blocking(move || drop(value)).await;
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests;

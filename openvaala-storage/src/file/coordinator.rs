//! The owner of the table of streams: it decides who may do what when, and leaves the work to threads.

mod glance;
mod places;
mod removal;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::file::commit::{Batch, Commit, Committed, Disk, Stream};
use crate::file::coordinator::glance::Glance;
use crate::file::coordinator::places::Places;
use crate::file::coordinator::removal::Removal;
use crate::file::layout::{Layout, present};
use crate::file::lock::Lock;
use crate::file::look::{self, Look, ReadPage, Seen};
use crate::file::pool::{Outcome, Pool};
use crate::file::remove::{self, Target};
use crate::file::view::{Mark, Marks, View};
use crate::file::{FileOptions, Health, Report};
use crate::log::{Listing, LogPath, StreamKey};

const READ_THREADS: usize = 4;
const MAX_REPORTS: usize = 1000;
const MAX_SLOTS: usize = 8192;

/// What the coordinator is told.
pub(super) enum Message {
    Request(Request),
    Done {
        pool: Work,
        thread: usize,
        event: Event,
    },
    Stop,
}

/// What callers want.
pub(super) enum Request {
    Announce(String, Sender<Result<()>>),
    Append(StreamKey, Batch),
    Glance(Vec<StreamKey>, oneshot::Sender<Vec<Seen>>),
    Health(oneshot::Sender<Health>),
    List(Option<LogPath>, oneshot::Sender<Result<Listing>>),
    Look(StreamKey, Look),
    Remove(Target, oneshot::Sender<Result<bool>>),
    Reports(Sender<Vec<Report>>),
}

/// The two kinds of threads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Flush,
    Read,
}

/// What threads have done.
pub(super) enum Event {
    Committed {
        key: StreamKey,
        committed: Box<Committed>,
    },
    Glanced(Glance),
    Inspected {
        key: StreamKey,
        view: Result<Option<View>>,
    },
    Placed {
        key: StreamKey,
        inode: u64,
        hints: Option<Arc<[Mark]>>,
    },
    Nothing,
    Read {
        key: StreamKey,
        inode: u64,
        /// What was learned on the way.
        marks: Marks,
    },
    Removed {
        removal: u64,
    },
}

/// What the coordinator keeps of a stream.
#[derive(Default)]
struct Slot {
    /// A thread commits or inspects the stream.
    busy: bool,
    /// Away while a thread commits.
    stream: Stream,
    /// What readers see while `stream` is away.
    published: Option<View>,
    /// Batches for the next commit.
    appends: Vec<Batch>,
    /// Questions that can't be answered before the thread is back.
    waiting: Vec<Look>,
    /// The place in the order of use, when the file is open.
    used: Option<u64>,
    /// The end of the stream when its places were last looked for; `None` = not yet.
    placed: Option<u64>,
}

pub(super) struct Coordinator {
    layout: Layout,
    flushers: Pool<Event>,
    readers: Pool<Event>,
    slots: HashMap<StreamKey, Slot>,
    removals: VecDeque<Removal>,
    /// How many pages of a stream are being read: until then its file stays where it is.
    reading: HashMap<StreamKey, usize>,
    places: Places,
    /// Directories whose entries were flushed since the storage was opened.
    durable: HashSet<LogPath>,
    /// Open files that nobody uses, the least recently used first.
    open: BTreeMap<u64, StreamKey>,
    open_limit: usize,
    reports: VecDeque<Report>,
    /// Where the disk was full, until an append works.
    full: Option<StreamKey>,
    counter: u64,
    /// `None` = for reading only. The last field: it is given back when no thread writes any more.
    lock: Option<Lock>,
}

impl Coordinator {
    pub(super) fn new(
        layout: Layout,
        options: &FileOptions,
        lock: Option<Lock>,
        inbox: &Sender<Message>,
    ) -> io::Result<Self> {
        let pool = |work: Work, name, limit: usize| {
            let inbox = inbox.clone();
            let report = Box::new(move |thread| -> Box<dyn Fn(Event) + Send> {
                let inbox = inbox.clone();
                Box::new(move |event| {
                    // Nobody listens any more while the storage stops.
                    let _ = inbox.send(Message::Done {
                        pool: work,
                        thread,
                        event,
                    });
                })
            });
            Pool::new(name, limit.max(1), report)
        };
        let mut flushers = pool(Work::Flush, "openvaala-flush", options.flush_threads)?;
        let readers = pool(Work::Read, "openvaala-read", READ_THREADS)?;
        let mut counter = 0;
        if lock.is_some() {
            let trash = layout.leftovers()?;
            if !trash.is_empty() {
                counter = removal::trash_number(&trash);
                let layout = layout.clone();
                flushers.run(Box::new(move || {
                    remove::finish(&layout, &trash);
                    Outcome::new(Event::Nothing, || {})
                }));
            }
        }
        Ok(Self {
            layout,
            flushers,
            readers,
            slots: HashMap::new(),
            removals: VecDeque::new(),
            reading: HashMap::new(),
            places: Places::default(),
            durable: HashSet::new(),
            open: BTreeMap::new(),
            open_limit: options.open_files,
            reports: VecDeque::new(),
            full: None,
            counter,
            lock,
        })
    }

    /// Runs until it is told to stop; what threads have begun is finished when the coordinator is dropped.
    pub(super) fn run(&mut self, inbox: &Receiver<Message>) {
        for message in inbox {
            match message {
                Message::Request(request) => self.on_request(request),
                Message::Done {
                    pool,
                    thread,
                    event,
                } => {
                    match pool {
                        Work::Flush => self.flushers.finished(thread),
                        Work::Read => self.readers.finished(thread),
                    }
                    self.on_event(event);
                }
                Message::Stop => {
                    self.places.cancel();
                    return;
                }
            }
        }
    }

    fn on_request(&mut self, request: Request) {
        // Whoever left before the answer is ignored, here and below.
        match request {
            Request::Announce(address, reply) => {
                let lock = self.lock.as_mut().ok_or(Error::ReadOnly);
                let _ = reply.send(lock.and_then(|lock| lock.announce(address)));
            }
            Request::Append(key, batch) => self.append(key, batch),
            Request::Glance(keys, reply) => self.glance(keys, reply),
            Request::Health(reply) => drop(reply.send(self.health())),
            Request::List(path, reply) => self.list(path, reply),
            Request::Look(key, look) => self.look(key, look),
            Request::Remove(target, reply) => self.remove(target, reply),
            Request::Reports(reply) => {
                let _ = reply.send(self.reports.iter().cloned().collect());
            }
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Committed { key, committed } => {
                match committed.disk {
                    Disk::Writable => self.full = None,
                    Disk::Full => self.full = Some(key.clone()),
                    Disk::Unknown => {}
                }
                self.committed(key, *committed);
            }
            Event::Glanced(glance) => self.glanced(glance),
            Event::Inspected { key, view } => self.inspected(key, view),
            Event::Placed { key, inode, hints } => self.placed(&key, inode, hints),
            Event::Nothing => {}
            Event::Read { key, inode, marks } => self.has_read(&key, inode, marks),
            Event::Removed { removal } => {
                self.removals.retain(|other| other.id != removal);
                self.start_removals();
            }
        }
    }

    fn health(&self) -> Health {
        let spoiled = self.slots.iter().filter(|(_, slot)| slot.stream.spoiled);
        let mut poisoned: Vec<StreamKey> = spoiled.map(|(key, _)| key.clone()).collect();
        poisoned.sort();
        Health {
            cuts: self.reports.iter().cloned().collect(),
            poisoned,
            full: self.full.clone(),
        }
    }

    fn append(&mut self, key: StreamKey, batch: Batch) {
        if self.lock.is_none() {
            let _ = batch.reply.send(Err(Error::ReadOnly));
            return;
        }
        if self.is_being_removed(&key) {
            let _ = batch.reply.send(Err(Error::Deleted { key }));
            return;
        }
        let slot = self.slots.entry(key.clone()).or_default();
        slot.appends.push(batch);
        self.commit(key);
    }

    /// Gives all batches that wait for a stream to a thread, unless one has the stream.
    fn commit(&mut self, key: StreamKey) {
        let durable = self.durable_segments(&key.path);
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if slot.busy || slot.appends.is_empty() {
            return;
        }
        slot.busy = true;
        slot.published = slot.stream.view.clone();
        self.open.remove(&slot.used.take().unwrap_or_default());
        let commit = Commit::new(
            self.layout.clone(),
            key.clone(),
            mem::take(&mut slot.stream),
            durable,
            mem::take(&mut slot.appends),
        );
        self.flushers.run(Box::new(move || {
            let mut committed = Box::new(commit.run());
            let replies = mem::take(&mut committed.replies);
            let event = Event::Committed { key, committed };
            Outcome::new(event, || replies.into_iter().for_each(|reply| reply.send()))
        }));
    }

    fn committed(&mut self, key: StreamKey, committed: Committed) {
        let Committed {
            stream,
            marks,
            is_new,
            report,
            ..
        } = committed;
        if stream.rooted {
            self.durable.extend(key.path.ancestors());
        }
        if let Some(report) = report {
            if self.reports.len() == MAX_REPORTS {
                self.reports.pop_front();
            }
            self.reports.push_back(report);
        }
        self.counter += 1;
        let slot = self.slots.entry(key.clone()).or_default();
        slot.busy = false;
        slot.stream = stream;
        let published = slot.published.take();
        if !is_new && let (Some(view), Some(published)) = (&mut slot.stream.view, published) {
            // What readers have learned in the meantime.
            view.marks = published.marks;
        }
        if let (Some(view), false) = (&mut slot.stream.view, marks.is_empty()) {
            Arc::make_mut(&mut view.marks).merge(marks);
        }
        if slot.stream.handle.is_some() {
            slot.used = Some(self.counter);
            self.open.insert(self.counter, key.clone());
        }
        let (view, waiting) = (slot.stream.view.clone(), mem::take(&mut slot.waiting));
        if is_new {
            self.forget_places(&key);
        }
        self.answer_all(&key, view.as_ref(), waiting);
        self.look_for_places(&key);
        self.released(key);
    }

    fn inspected(&mut self, key: StreamKey, view: Result<Option<View>>) {
        let slot = self.slots.entry(key.clone()).or_default();
        slot.busy = false;
        let waiting = mem::take(&mut slot.waiting);
        // The file is not the one that was left: the next append opens it anew.
        slot.stream = Stream::default();
        if let Some(used) = slot.used.take() {
            self.open.remove(&used);
        }
        slot.placed = None;
        match view {
            Ok(view) => {
                slot.stream.view.clone_from(&view);
                self.answer_all(&key, view.as_ref(), waiting);
                self.look_for_places(&key);
            }
            Err(error) => {
                tracing::warn!(stream = %key, %error, "a stream can't be read");
                let path = self.layout.file(&key);
                for look in waiting {
                    look.fail(again(&error, &path));
                }
            }
        }
        self.released(key);
    }

    /// Goes on with what waited for a stream.
    fn released(&mut self, key: StreamKey) {
        if !self.removals.is_empty() {
            self.start_removals();
        }
        self.commit(key);
        self.tidy();
    }

    fn has_read(&mut self, key: &StreamKey, inode: u64, marks: Marks) {
        if let Some(readers) = self.reading.get_mut(key) {
            *readers -= 1;
            if *readers == 0 {
                self.reading.remove(key);
            }
        }
        if !marks.is_empty() {
            self.learn(key, inode, marks);
        }
        if !self.removals.is_empty() {
            self.start_removals();
        }
    }

    fn learn(&mut self, key: &StreamKey, inode: u64, marks: Marks) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        for view in [&mut slot.stream.view, &mut slot.published]
            .into_iter()
            .flatten()
        {
            if view.stamp.inode == inode {
                Arc::make_mut(&mut view.marks).merge(marks.clone());
            }
        }
        if marks.has_refuted_hints() {
            slot.placed = None;
            self.places.distrust(key);
            self.look_for_places(key);
        }
    }

    fn look(&mut self, key: StreamKey, look: Look) {
        if self.is_being_removed(&key) {
            return look.absent(&key);
        }
        if let Some(slot) = self.slots.get_mut(&key) {
            if slot.busy {
                match slot.published.clone() {
                    Some(view) => self.answer(&key, &view, look),
                    None => slot.waiting.push(look),
                }
                return;
            }
            // What lies behind the view was never acknowledged.
            if let Some(view) = slot.stream.view.clone().filter(|_| slot.stream.spoiled) {
                return self.answer(&key, &view, look);
            }
        }
        let path = self.layout.file(&key);
        let stamp = match present(self.layout.fs.metadata(&path)) {
            Ok(Some(stamp)) if !stamp.is_dir => stamp,
            Ok(_) => {
                self.forget(&key);
                return look.absent(&key);
            }
            Err(source) => return look.fail(Error::io("look at", path, source)),
        };
        let Some(look) = look.answer_by_stamp(&stamp) else {
            return;
        };
        let slot = self.slots.entry(key.clone()).or_default();
        match slot.stream.view.clone().filter(|view| view.stamp == stamp) {
            Some(view) => {
                self.answer(&key, &view, look);
                self.look_for_places(&key);
            }
            None => {
                slot.busy = true;
                slot.waiting.push(look);
                let layout = self.layout.clone();
                self.readers.run(Box::new(move || {
                    let view = look::inspect(&layout, &key);
                    Outcome::new(Event::Inspected { key, view }, || {})
                }));
            }
        }
    }

    fn answer_all(&mut self, key: &StreamKey, view: Option<&View>, waiting: Vec<Look>) {
        for look in waiting {
            match view {
                Some(view) => self.answer(key, view, look),
                None => look.absent(key),
            }
        }
    }

    fn answer(&mut self, key: &StreamKey, view: &View, look: Look) {
        let Some(ReadPage {
            view,
            options,
            reply,
        }) = look.answer_by_view(view)
        else {
            return;
        };
        let (layout, key) = (self.layout.clone(), key.clone());
        *self.reading.entry(key.clone()).or_default() += 1;
        self.readers.run(Box::new(move || {
            let inode = view.stamp.inode;
            let read = look::read_page(&layout, &key, &view, options);
            // Gone before the coordinator adds to the marks, which are copied if somebody else holds them.
            drop(view);
            let (marks, result) = match read {
                Ok((page, marks)) => (marks, Ok(page)),
                Err(error) => (Marks::default(), Err(error)),
            };
            let event = Event::Read { key, inode, marks };
            Outcome::new(event, || drop(reply.send(result)))
        }));
    }

    fn list(&mut self, path: Option<LogPath>, reply: oneshot::Sender<Result<Listing>>) {
        let layout = self.layout.clone();
        self.readers.run(Box::new(move || {
            let listing = layout.list(path.as_ref());
            Outcome::new(Event::Nothing, || drop(reply.send(listing)))
        }));
    }

    fn durable_segments(&self, path: &LogPath) -> usize {
        path.ancestors()
            .take_while(|path| self.durable.contains(path))
            .count()
    }

    fn forget(&mut self, key: &StreamKey) {
        if let Some(used) = self.slots.remove(key).and_then(|slot| slot.used) {
            self.open.remove(&used);
        }
    }

    /// Keeps the number of open files and of known streams within bounds.
    fn tidy(&mut self) {
        while self.open.len() > self.open_limit {
            let Some((_, key)) = self.open.pop_first() else {
                return;
            };
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.used = None;
                slot.stream.handle = None;
            }
        }
        if self.slots.len() > MAX_SLOTS {
            self.slots
                .retain(|_, slot| slot.busy || slot.used.is_some() || slot.stream.spoiled);
        }
    }
}

/// Makes the same error for one more caller.
fn again(error: &Error, path: &Path) -> Error {
    let source = match error {
        Error::Io { source, .. } => source,
        other => return Error::io("read", path, io::Error::other(other.to_string())),
    };
    let source = match source.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(source.kind(), source.to_string()),
    };
    Error::io("read", path, source)
}

//! Threads that run tasks for the coordinator: at most so many, started when they are needed.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};

/// A task returns what the coordinator has to know and what is to be done once it knows.
pub(super) type Task<E> = Box<dyn FnOnce() -> Outcome<E> + Send>;

/// The result of a task.
pub(super) struct Outcome<E> {
    pub(super) event: E,
    /// Answers to callers: sent after the event, so that what they ask next comes after it.
    pub(super) after: Box<dyn FnOnce() + Send>,
}

impl<E> Outcome<E> {
    pub(super) fn new(event: E, after: impl FnOnce() + Send + 'static) -> Self {
        Self {
            event,
            after: Box::new(after),
        }
    }
}

/// The threads; dropping them waits for the tasks that have begun.
pub(super) struct Pool<E> {
    name: &'static str,
    limit: usize,
    threads: Vec<Thread<E>>,
    idle: Vec<usize>,
    waiting: VecDeque<Task<E>>,
    /// Makes the message by which a thread says that it is done.
    report: Report<E>,
}

type Report<E> = Box<dyn Fn(usize) -> Box<dyn Fn(E) + Send> + Send>;

struct Thread<E> {
    tasks: Option<Sender<Task<E>>>,
    handle: Option<JoinHandle<()>>,
}

impl<E: 'static> Pool<E> {
    /// Starts the first thread.
    pub(super) fn new(name: &'static str, limit: usize, report: Report<E>) -> io::Result<Self> {
        let mut pool = Self {
            name,
            limit,
            threads: Vec::new(),
            idle: Vec::new(),
            waiting: VecDeque::new(),
            report,
        };
        let first = pool.start()?;
        pool.idle.push(first);
        Ok(pool)
    }

    /// Runs a task now or when a thread is free.
    pub(super) fn run(&mut self, task: Task<E>) {
        if let Some(index) = self.idle.pop() {
            return self.give(index, task);
        }
        if self.threads.len() < self.limit {
            match self.start() {
                Ok(index) => return self.give(index, task),
                // Those that run will get to it.
                Err(error) => tracing::warn!(%error, "one more storage thread can't be started"),
            }
        }
        self.waiting.push_back(task);
    }

    /// Takes back a thread that has finished its task.
    pub(super) fn finished(&mut self, index: usize) {
        match self.waiting.pop_front() {
            Some(task) => self.give(index, task),
            None => self.idle.push(index),
        }
    }

    fn start(&mut self) -> io::Result<usize> {
        let index = self.threads.len();
        let (tasks, inbox) = mpsc::channel();
        let report = (self.report)(index);
        let handle = Builder::new()
            .name(format!("{}-{index}", self.name))
            .spawn(move || work(&inbox, &report))?;
        self.threads.push(Thread {
            tasks: Some(tasks),
            handle: Some(handle),
        });
        Ok(index)
    }

    fn give(&self, index: usize, task: Task<E>) {
        if let Some(tasks) = &self.threads[index].tasks {
            // A thread ends only when its sender is gone.
            let _ = tasks.send(task);
        }
    }
}

impl<E> Drop for Pool<E> {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            thread.tasks = None;
        }
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                // A thread that panicked has nothing left to wait for.
                let _ = handle.join();
            }
        }
    }
}

fn work<E>(inbox: &Receiver<Task<E>>, report: &dyn Fn(E)) {
    for task in inbox {
        let outcome = task();
        report(outcome.event);
        (outcome.after)();
    }
}

//! Faults of single system calls, by strace on the unmodified binary.
//!
//! strace counts the calls of each thread apart: `when` 3 is the third call of whichever thread gets there first. The
//! file storage takes the thread that was idle last, so the work of one conversation is done by one thread.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::notice::{not_run, works};
use crate::wait;

/// How long strace may take to let go.
const LETTING_GO: Duration = Duration::from_millis(500);

/// One fault: which calls, what happens to them, and to which.
#[derive(Clone, Debug)]
pub struct Fault {
    calls: String,
    effect: String,
    when: Option<String>,
    paths: Vec<PathBuf>,
}

impl Fault {
    /// The process is killed in the call, before it does anything.
    #[must_use]
    pub fn kill(calls: &str) -> Self {
        Self::new(calls, "signal=KILL".to_owned())
    }

    /// The call fails with an error, such as `EIO`, and does nothing.
    #[must_use]
    pub fn error(calls: &str, name: &str) -> Self {
        Self::new(calls, format!("error={name}"))
    }

    /// The call returns a number and does nothing.
    #[must_use]
    pub fn returns(calls: &str, value: i64) -> Self {
        Self::new(calls, format!("retval={value}"))
    }

    /// The call is done, and returns that many microseconds later.
    #[must_use]
    pub fn delay(calls: &str, micros: u64) -> Self {
        Self::new(calls, format!("delay_exit={micros}"))
    }

    fn new(calls: &str, effect: String) -> Self {
        Self {
            calls: calls.to_owned(),
            effect,
            when: None,
            paths: Vec::new(),
        }
    }

    /// Only to the n-th call of a thread, from 1. Default: to every call.
    #[must_use]
    pub fn nth(self, n: u32) -> Self {
        self.when(&n.to_string())
    }

    /// Only to the calls that strace's expression names, such as `3+` or `1..2`.
    #[must_use]
    pub fn when(mut self, expression: &str) -> Self {
        self.when = Some(expression.to_owned());
        self
    }

    /// Only to calls on that file. Several are named by several calls of this.
    #[must_use]
    pub fn on(mut self, path: &Path) -> Self {
        self.paths.push(path.to_owned());
        self
    }

    /// The words before a command that make it suffer; its process id stays the one of the process that is started.
    #[must_use]
    pub fn wrapper(&self, log: &Path) -> Vec<String> {
        let mut words = vec!["strace".to_owned(), "-D".to_owned()];
        words.extend(self.arguments(log));
        words
    }

    fn arguments(&self, log: &Path) -> Vec<String> {
        // Not with --seccomp-bpf, which is quicker and loses signals that are to be injected.
        let mut words: Vec<String> = ["-f", "-q", "-o"].map(str::to_owned).to_vec();
        words.push(log.display().to_string());
        for path in &self.paths {
            words.extend(["-P".to_owned(), path.display().to_string()]);
        }
        let when = self.when.as_ref();
        let when = when.map_or_else(String::new, |when| format!(":when={when}"));
        words.extend(["-e".to_owned(), format!("trace={}", self.calls)]);
        words.extend([
            "-e".to_owned(),
            format!("inject={}:{}{when}", self.calls, self.effect),
        ]);
        words
    }
}

/// An strace that was attached to a running process; it lets go when this is dropped.
#[derive(Debug)]
pub struct Attached {
    tracer: Child,
    log: PathBuf,
}

impl Attached {
    /// Attaches to a process and all its threads, and waits until it has.
    ///
    /// # Panics
    /// If it cannot.
    #[must_use]
    pub fn to(pid: u32, fault: &Fault, log: &Path) -> Self {
        let mut command = Command::new("strace");
        command
            .args(fault.arguments(log))
            .args(["-p", &pid.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let tracer = command.stderr(Stdio::null()).spawn();
        let mut attached = Self {
            tracer: tracer.expect("strace can be started"),
            log: log.to_owned(),
        };
        let tracer = attached.tracer.id().to_string();
        wait::until("strace to attach to all threads", || {
            if let Ok(Some(status)) = attached.tracer.try_wait() {
                assert!(status.success(), "strace ended by itself: {status}");
                // The process is dead already: it has met its fault at once.
                return Ok(());
            }
            let tracers = tracers_of(pid);
            let all = tracers.iter().all(|of_thread| *of_thread == tracer);
            (all && !tracers.is_empty())
                .then_some(())
                .ok_or_else(|| format!("{tracers:?}, not {tracer}"))
        });
        attached
    }

    /// How many calls have been met by the fault so far.
    #[must_use]
    pub fn injected(&self) -> usize {
        injected(&self.log)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Asked to end, it lets go of all threads in good order; it may not hear that when they have all been killed.
        let pid = i32::try_from(self.tracer.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begin = Instant::now();
        while begin.elapsed() < LETTING_GO && matches!(self.tracer.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(2));
        }
        let _ = self.tracer.kill();
        let _ = self.tracer.wait();
    }
}

/// How many calls a log of strace says to have met with the fault.
#[must_use]
pub fn injected(log: &Path) -> usize {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.matches("(INJECTED").count() + text.matches("(DELAYED)").count()
}

/// Whether strace can be used here; says so if not.
#[must_use]
pub fn available(what: &str) -> bool {
    let works = works("strace", &["-qq", "-f", "-o", "/dev/null", "true"]);
    if !works {
        not_run(what, "strace is not installed or may not trace here");
    }
    works
}

fn tracers_of(pid: u32) -> Vec<String> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let statuses =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok());
    let tracer = |status: String| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        line.unwrap_or_default().trim().to_owned()
    };
    statuses.map(tracer).collect()
}

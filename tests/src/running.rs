//! A started command: its output as it comes, and its end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{self, DEADLINE};

/// How long the pipes of an ended command may stay open.
const PIPES_LIMIT: Duration = Duration::from_secs(10);

/// A command that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    line: String,
    child: Child,
    chunks: Receiver<Chunk>,
    taken: Taken,
}

/// What a command had said and how it ended.
#[derive(Debug)]
pub struct Outcome {
    /// The command line.
    pub line: String,
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
    /// In how many pieces the standard output came, as far as they could be told apart.
    pub stdout_pieces: usize,
}

#[derive(Debug)]
enum Chunk {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

#[derive(Debug, Default)]
struct Taken {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    stdout_pieces: usize,
}

impl Running {
    /// Starts a command with its standard input closed and its output taken.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let line = format!("{command:?}");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        let (sender, chunks) = channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        read(
            stdout.expect("stdout is piped"),
            sender.clone(),
            Chunk::Stdout,
        );
        read(stderr.expect("stderr is piped"), sender, Chunk::Stderr);
        Self {
            line,
            child,
            chunks,
            taken: Taken::default(),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal; one that has ended already is no error.
    pub fn signal(&self, signal: Signal) {
        // The child has not been waited for, so its number is still its own.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it and waits for its end.
    pub fn kill(mut self) {
        self.kill_now();
    }

    fn kill_now(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until its standard output has a text.
    ///
    /// # Panics
    /// After the deadline, or when it has ended without.
    #[track_caller]
    pub fn wait_for_stdout(&mut self, text: &str) {
        self.wait_for(text, |taken| &taken.stdout);
    }

    /// Waits until its standard error has a text.
    ///
    /// # Panics
    /// After the deadline, or when it has ended without.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) {
        self.wait_for(text, |taken| &taken.stderr);
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str, stream: impl Fn(&Taken) -> &Vec<u8>) {
        let begin = Instant::now();
        while !String::from_utf8_lossy(stream(&self.taken)).contains(text) {
            let left = DEADLINE.saturating_sub(begin.elapsed());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.taken.add(chunk),
                Err(error) => {
                    let why = match error {
                        RecvTimeoutError::Timeout => "did not say in time",
                        RecvTimeoutError::Disconnected => "ended without saying",
                    };
                    panic!(
                        "{} {why} {text:?}; it said:\n{}",
                        self.line,
                        self.taken.shown()
                    );
                }
            }
        }
    }

    /// Whether it has ended, and how.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// After the deadline, or when another process holds its output open after its end.
    #[track_caller]
    pub fn finish(self) -> Outcome {
        self.finish_within(DEADLINE)
    }

    /// As [`Self::finish`], with a deadline of its own.
    ///
    /// # Panics
    /// After that time, or when another process holds its output open after its end.
    #[track_caller]
    pub fn finish_within(mut self, limit: Duration) -> Outcome {
        let (line, child) = (&self.line, &mut self.child);
        let (taken, chunks) = (&mut self.taken, &self.chunks);
        let status = wait::within(limit, &format!("the end of {line}"), || {
            // A full pipe would keep it from ending.
            chunks.try_iter().for_each(|chunk| taken.add(chunk));
            match child.try_wait() {
                Ok(Some(status)) => Ok(status),
                Ok(None) => Err(format!("it still runs and said:\n{}", taken.shown())),
                Err(error) => Err(error.to_string()),
            }
        });
        loop {
            match self.chunks.recv_timeout(PIPES_LIMIT) {
                Ok(chunk) => self.taken.add(chunk),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!(
                    "{} has ended ({status}), but somebody else holds its output open; it said:\n{}",
                    self.line,
                    self.taken.shown()
                ),
            }
        }
        Outcome {
            line: self.line.clone(),
            code: status.code(),
            stdout: String::from_utf8_lossy(&self.taken.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&self.taken.stderr).into_owned(),
            stdout_pieces: self.taken.stdout_pieces,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_now();
    }
}

impl Outcome {
    /// Checks the exit code.
    ///
    /// # Panics
    /// With all that the command said, if it is another one.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "{}\nstdout:\n{}\nstderr:\n{}",
            self.line,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that the standard error has all of these texts.
    ///
    /// # Panics
    /// With all that the command said, if one is missing.
    #[track_caller]
    pub fn expect_stderr(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.stderr.contains(text),
                "{}\nmissing on stderr: {text:?}\nstdout:\n{}\nstderr:\n{}",
                self.line,
                self.stdout,
                self.stderr
            );
        }
        self
    }
}

impl Taken {
    fn add(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Stdout(bytes) => {
                self.stdout.extend(bytes);
                self.stdout_pieces += 1;
            }
            Chunk::Stderr(bytes) => self.stderr.extend(bytes),
        }
    }

    fn shown(&self) -> String {
        let (out, err) = (
            String::from_utf8_lossy(&self.stdout),
            String::from_utf8_lossy(&self.stderr),
        );
        format!("stdout:\n{out}\nstderr:\n{err}")
    }
}

/// Reads a pipe to its end in a thread of its own, which ends with the pipe.
fn read(
    mut pipe: impl Read + Send + 'static,
    sender: Sender<Chunk>,
    wrap: impl Fn(Vec<u8>) -> Chunk + Send + 'static,
) {
    thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.send(wrap(buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
}

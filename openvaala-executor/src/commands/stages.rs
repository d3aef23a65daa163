//! From the exit of a shell to the end of the last of its group.

use std::time::Duration;

use tokio::time::Instant;

/// After the shell has exited, this much silence means that nobody writes any more.
const SILENCE: Duration = Duration::from_millis(200);

/// After the shell has exited, output is waited for no longer than this.
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// How often a group that should vanish is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often a group that goes on by itself is looked at, at the rarest.
const LOOK_RARELY: Duration = Duration::from_secs(2);

/// A pipe can't hold more than this for a group that is gone.
const PIPE: usize = 1 << 20;

/// What a look at the group leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// All is over and read.
    Finish,
    /// What is left goes on by itself.
    Settle,
    Wait,
}

/// What is known at a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Instant,
    /// All output was given out.
    pub(super) closed: bool,
    /// Some output is still on its way to the sink.
    pub(super) writing: bool,
    /// The group was asked to end.
    pub(super) stopping: bool,
}

/// What remains after a shell: output in the pipe, and processes in its group.
///
/// A child in the background may hold the output open for ever, and one that writes elsewhere,
/// such as the end of `>(gzip >file)`, may need a moment.
#[derive(Debug)]
pub(super) struct Remains {
    longest: Instant,
    drain_until: Instant,
    vanish_until: Option<Instant>,
    settled: bool,
    look_at: Instant,
    look_every: Duration,
    /// Nobody of the group is left.
    gone: bool,
    /// How much those who are gone may have left in the pipe.
    rest: usize,
}

impl Remains {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            longest: now + LONGEST_DRAIN,
            drain_until: now + SILENCE,
            vanish_until: None,
            settled: false,
            look_at: now,
            look_every: LOOK_EVERY,
            gone: false,
            rest: PIPE,
        }
    }

    /// When the next look is due.
    pub(super) const fn wake(&self) -> Instant {
        self.look_at
    }

    /// Some output came, or was taken by the sink.
    pub(super) fn heard(&mut self, now: Instant, bytes: usize) {
        self.drain_until = now + SILENCE;
        if self.gone {
            self.rest = self.rest.saturating_sub(bytes);
        }
    }

    /// The output was closed, or the group was asked to end: it is looked at soon.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.look_at = now;
        self.look_every = LOOK_EVERY;
    }

    /// Decides what comes next; `alive` looks whether somebody of the group runs.
    pub(super) fn step(&mut self, look: Look, alive: impl FnOnce() -> bool) -> Step {
        let now = look.now;
        let quiet = look.closed || now >= self.drain_until.min(self.longest);
        if !self.gone && (quiet || look.stopping || self.settled) && !alive() {
            self.gone = true;
            // What was written last may not have been read.
            self.drain_until = now + SILENCE;
        }
        self.plan(now);
        if self.gone {
            let read = look.closed || self.rest == 0 || now >= self.drain_until;
            return if read && !look.writing {
                Step::Finish
            } else {
                Step::Wait
            };
        }
        if self.settled || look.stopping || !quiet {
            return Step::Wait;
        }
        let vanish_until = *self.vanish_until.get_or_insert(now + SILENCE);
        if now < vanish_until {
            return Step::Wait;
        }
        self.settled = true;
        Step::Settle
    }

    /// A group that goes on by itself is looked at less and less often.
    fn plan(&mut self, now: Instant) {
        self.look_at = now + self.look_every;
        if self.settled && !self.gone {
            self.look_every = (self.look_every * 2).min(LOOK_RARELY);
        } else {
            self.look_every = LOOK_EVERY;
        }
    }
}

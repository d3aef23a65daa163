//! Who waits for which agents, and what they have got so far.

use std::collections::BTreeSet;

use openvaala_protocol::id::{SessionId, TurnId};

use crate::dao::record::Report;

/// Names something that waits.
pub(crate) type WaiterId = u64;

/// All that wait; `R` is the way to tell them.
#[derive(Debug)]
pub(crate) struct Waits<R> {
    waiters: Vec<Waiter<R>>,
    last: WaiterId,
}

/// An agent that waits for others, and what it has got.
#[derive(Debug, PartialEq)]
pub(crate) struct Waiter<R> {
    id: WaiterId,
    session: SessionId,
    /// The turn whose call waits.
    turn: Option<TurnId>,
    /// Those that have not ended yet.
    pub(crate) open: BTreeSet<SessionId>,
    /// Whether all of them have to end.
    all: bool,
    pub(crate) reports: Vec<(SessionId, Report)>,
    pub(crate) reply: R,
}

/// What has become of a report.
#[derive(Debug, PartialEq)]
pub(crate) enum Taken<R> {
    /// Nobody waits for it.
    No(Report),
    /// Somebody has it and waits for more.
    Kept,
    /// Somebody has got all that was waited for.
    Over(Waiter<R>),
}

impl<R> Waits<R> {
    pub(crate) const fn new() -> Self {
        Self {
            waiters: Vec::new(),
            last: 0,
        }
    }

    /// Begins to wait for one of those sessions, or for all of them.
    pub(crate) fn add(
        &mut self,
        session: SessionId,
        turn: Option<TurnId>,
        open: BTreeSet<SessionId>,
        all: bool,
        reply: R,
    ) -> WaiterId {
        self.last += 1;
        self.waiters.push(Waiter {
            id: self.last,
            session,
            turn,
            open,
            all,
            reports: Vec::new(),
            reply,
        });
        self.last
    }

    /// Gives a report of a session to the one that waits for it.
    pub(crate) fn report(&mut self, of: SessionId, report: Report) -> Taken<R> {
        let waits = |waiter: &Waiter<R>| waiter.open.contains(&of);
        let Some(at) = self.waiters.iter().position(waits) else {
            return Taken::No(report);
        };
        let waiter = &mut self.waiters[at];
        waiter.open.remove(&of);
        waiter.reports.push((of, report));
        if waiter.all && !waiter.open.is_empty() {
            return Taken::Kept;
        }
        Taken::Over(self.waiters.remove(at))
    }

    /// Nothing more comes from a session; gives those that have nothing left to wait for.
    pub(crate) fn gone(&mut self, session: SessionId) -> Vec<Waiter<R>> {
        for waiter in &mut self.waiters {
            waiter.open.remove(&session);
        }
        let is_over = |waiter: &mut Waiter<R>| waiter.open.is_empty();
        self.waiters.extract_if(.., is_over).collect()
    }

    /// Ends all waiting of a session.
    pub(crate) fn wake(&mut self, session: SessionId) -> Vec<Waiter<R>> {
        let is_of = |waiter: &mut Waiter<R>| waiter.session == session;
        self.waiters.extract_if(.., is_of).collect()
    }

    /// Forgets what calls of other turns of a session have waited for than the one that runs.
    pub(crate) fn over(&mut self, session: SessionId, active: Option<TurnId>) {
        let is_over = |waiter: &Waiter<R>| waiter.session == session && waiter.turn != active;
        self.waiters.retain(|waiter| !is_over(waiter));
    }

    /// Ends one waiting, if it still is.
    pub(crate) fn time_out(&mut self, id: WaiterId) -> Option<Waiter<R>> {
        let at = self.waiters.iter().position(|waiter| waiter.id == id)?;
        Some(self.waiters.remove(at))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }
}

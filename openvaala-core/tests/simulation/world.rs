//! What outlives the runtimes of one seed: the disk, the dice, and what was promised.
#![allow(
    clippy::disallowed_types,
    reason = "models, tools and clients of one thread look at one dice; the runtime under test has no lock"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use openvaala_core::environment::{Clock, IdSource};
use openvaala_core::protocol::id::{ConversationId, ItemId};
use openvaala_core::protocol::time::Timestamp;
use openvaala_core::storage::sim::{Effect, Fault, Op, Random, SimFs};
use uuid::{Builder, Uuid};

use super::checks::check_log;
use super::clients::Seen;
use super::life::{End, Plan, live};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// All that one seed decides and all that is known of it.
pub(crate) struct World {
    disk: SimFs,
    shared: Arc<Shared>,
}

/// What models, tools and clients share.
#[derive(Debug)]
pub(crate) struct Shared {
    dice: Mutex<Random>,
    pub(crate) known: Mutex<Known>,
}

/// What was promised and seen so far, over all lives.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Whether models and tools do as they are told.
    pub(crate) is_calm: bool,
    pub(crate) conversations: BTreeSet<ConversationId>,
    pub(crate) acknowledged: BTreeSet<(ConversationId, ItemId)>,
    pub(crate) seen: BTreeMap<ConversationId, Vec<Seen>>,
    /// The numbers of the calls that were ever started.
    pub(crate) started: BTreeSet<u64>,
    pub(crate) calls: u64,
    /// How many tools run right now.
    pub(crate) running: u64,
    /// Whether a life has ended with a power cut.
    pub(crate) power_was_cut: bool,
    /// What models and tools found wrong; a panic there would be taken for a fault of theirs.
    pub(crate) wrong: Vec<String>,
    millis: i64,
}

impl Shared {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.dice.lock().unwrap().below(bound)
    }

    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.dice.lock().unwrap().percent(percent)
    }

    fn draw(&self) -> u64 {
        self.dice.lock().unwrap().draw()
    }
}

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        let mut known = self.known();
        known.millis += 1;
        Timestamp::from_millis(1_700_000_000_000 + known.millis)
    }
}

impl IdSource for Shared {
    fn next(&self) -> Uuid {
        let millis = self.now().as_millis().unsigned_abs();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.draw().to_le_bytes());
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            disk: SimFs::new(),
            shared: Arc::new(Shared {
                dice: Mutex::new(Random::new(seed)),
                known: Mutex::default(),
            }),
        }
    }

    /// Lives through it all and looks at what is left; gives how many reports of agents there were.
    pub(crate) fn run(mut self) -> u64 {
        for life in 0..1 + self.shared.below(3) {
            let plan = self.plan(life == 0);
            if let Some(fault) = self.fault() {
                self.disk.inject(fault);
            }
            self.disk = live(&self.disk, &self.shared, plan);
        }
        self.shared.known().is_calm = true;
        let plan = Plan {
            clients: 0,
            end: End::Settled,
            new: 0,
        };
        self.disk = live(&self.disk, &self.shared, plan);
        let known = self.shared.known();
        assert_eq!(known.wrong, Vec::<String>::new());
        check_log(&self.disk, &known)
    }

    fn plan(&self, is_first: bool) -> Plan {
        let new = if is_first { 1 } else { 0 };
        let end = match self.shared.below(3) {
            0 => End::Shutdown,
            1 => End::Killed,
            _ => End::PowerCut(self.shared.draw()),
        };
        Plan {
            clients: 1 + self.shared.below(3),
            end,
            new: new + self.shared.below(2),
        }
    }

    /// What goes wrong with the disk in a life, if anything does.
    fn fault(&self) -> Option<Fault> {
        let nth = 1 + self.shared.below(250);
        let fault = |effect| Some(Fault::at(nth, effect));
        match self.shared.below(10) {
            0 => fault(Effect::PowerCut),
            1 => Some(Fault::at(1 + nth / 4, Effect::Error(ENOSPC)).of(&[Op::Write])),
            2 => Some(Fault::at(1 + nth / 4, Effect::Short)),
            3 => Some(Fault::at(1 + nth / 4, Effect::SyncLoses(EIO))),
            _ => None,
        }
    }
}

//! Changes of directories that were not flushed, in the order in which they happened.

use std::collections::{BTreeMap, HashMap};

use crate::sim::random::Random;

/// The number by which the simulation knows a file or directory.
pub(super) type Id = u64;

/// The entries of a directory.
pub(super) type Entries = BTreeMap<String, Id>;

/// One change of one or two names, which happens as a whole.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    /// Directory, name, and what is there from then on.
    pub(super) names: Vec<(Id, String, Option<Id>)>,
    /// A directory that is gone by this: what happened in it has to come before.
    pub(super) removed: Option<Id>,
}

impl NameChange {
    fn touches(&self, directory: Id) -> bool {
        self.names.iter().any(|(at, _, _)| *at == directory)
    }

    /// Tells whether this one can't be durable without an earlier one.
    fn needs(&self, earlier: &Self) -> bool {
        let shared = |(at, name, _): &(Id, String, Option<Id>)| {
            let mut names = earlier.names.iter();
            names.any(|(other, other_name, _)| at == other && name == other_name)
        };
        self.removed.is_some_and(|gone| earlier.touches(gone)) || self.names.iter().any(shared)
    }

    fn apply(&self, directories: &mut HashMap<Id, Entries>) {
        for (directory, name, id) in &self.names {
            let entries = directories.entry(*directory).or_default();
            match id {
                Some(id) => entries.insert(name.clone(), *id),
                None => entries.remove(name),
            };
        }
    }
}

/// The entries that were flushed, and the changes since.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    durable: HashMap<Id, Entries>,
    changes: Vec<NameChange>,
}

impl Journal {
    pub(super) fn push(&mut self, change: NameChange) {
        self.changes.push(change);
    }

    /// Makes durable what happened in a directory, and what that needs.
    pub(super) fn flush(&mut self, directory: Id) {
        let mut wanted = vec![false; self.changes.len()];
        for at in (0..self.changes.len()).rev() {
            let later = (at + 1..self.changes.len()).filter(|later| wanted[*later]);
            let mut later = later.map(|later| &self.changes[later]);
            wanted[at] = self.changes[at].touches(directory)
                || later.any(|later| later.needs(&self.changes[at]));
        }
        let mut wanted = wanted.into_iter();
        self.changes.retain(|change| {
            let flush = wanted.next() == Some(true);
            if flush {
                change.apply(&mut self.durable);
            }
            !flush
        });
    }

    /// Returns the entries of each directory after a power cut.
    pub(super) fn after_power_cut(&self, random: &mut Random) -> HashMap<Id, Entries> {
        let mut found = self.durable.clone();
        let luck = random.below(5) * 25;
        let mut lost: Vec<&NameChange> = Vec::new();
        for change in &self.changes {
            if random.percent(luck) && !lost.iter().any(|earlier| change.needs(earlier)) {
                change.apply(&mut found);
            } else {
                lost.push(change);
            }
        }
        found
    }

    /// Starts anew with what was found after a power cut.
    pub(super) fn of(durable: HashMap<Id, Entries>) -> Self {
        Self {
            durable,
            changes: Vec::new(),
        }
    }
}

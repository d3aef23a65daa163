//! Which inputs a session has taken, so that one that is sent again is taken once.

use std::collections::HashSet;

use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{Item, ItemKind, ToolResult};
use openvaala_protocol::time::Timestamp;

/// The ids of the inputs that were taken, as far as they are known.
///
/// A session that was read from the end of its log knows the last ones only. An id carries the time at which it was
/// made, so one that is younger than all that were ever taken is new; any other has to be looked up once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inputs {
    known: HashSet<ItemId>,
    /// Those that were accepted and then withdrawn: no turn takes them, and they are not accepted again.
    withdrawn: HashSet<ItemId>,
    /// Whether there are no others.
    is_whole: bool,
    /// The latest time in an id of all that were taken; `None` while that is not known.
    newest: Option<Timestamp>,
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    Taken,
    Withdrawn,
    New,
    /// Only the log can tell.
    Unknown,
}

impl Inputs {
    /// Begins with all that were ever taken.
    pub(crate) fn whole(known: HashSet<ItemId>) -> Self {
        let mut inputs = Self::default();
        inputs.complete(known, std::iter::empty());
        inputs
    }

    /// Begins with some of those that were taken, and the latest time in the ids of all of them.
    pub(crate) fn latest(known: HashSet<ItemId>, newest: Option<Timestamp>) -> Self {
        // A turn that has taken an input may be on disk without the session's state that belongs to it.
        let latest = known.iter().filter_map(time_of).max();
        let newest = newest.map(|newest| latest.map_or(newest, |latest| newest.max(latest)));
        Self {
            known,
            withdrawn: HashSet::new(),
            is_whole: false,
            newest,
        }
    }

    /// The latest time in an id of all that were taken; `None` while that is not known.
    pub(crate) const fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    pub(crate) fn contains(&self, id: ItemId) -> bool {
        self.known.contains(&id)
    }

    pub(crate) fn look_up(&self, id: ItemId) -> Known {
        if self.known.contains(&id) {
            return Known::Taken;
        }
        if self.withdrawn.contains(&id) {
            return Known::Withdrawn;
        }
        let is_younger = || Some(time_of(&id)? > self.newest?);
        if self.is_whole || is_younger() == Some(true) {
            Known::New
        } else {
            Known::Unknown
        }
    }

    /// Takes note that an input was accepted: no other has to be younger to be new.
    pub(crate) fn accept(&mut self, id: ItemId) {
        // As long as nothing is known of the others the time of this one says nothing.
        self.newest = self
            .newest
            .map(|newest| newest.max(time_of(&id).unwrap_or(newest)));
    }

    /// Takes note that an input was taken.
    pub(crate) fn take(&mut self, id: ItemId) {
        self.known.insert(id);
        self.accept(id);
    }

    /// Takes note that an input was withdrawn, unless a turn has taken it.
    pub(crate) fn withdraw(&mut self, id: ItemId) {
        if !self.known.contains(&id) {
            self.withdrawn.insert(id);
            self.accept(id);
        }
    }

    /// Takes in all that the log has; `waiting` are those that are still in the queue.
    pub(crate) fn complete(
        &mut self,
        taken: HashSet<ItemId>,
        waiting: impl Iterator<Item = ItemId>,
    ) {
        self.known.extend(taken);
        self.is_whole = true;
        let times = self.known.iter().copied().chain(waiting);
        let times = times.filter_map(|id| time_of(&id));
        // Without any with a time, whatever has one is younger.
        self.newest = self.newest.max(times.max()).or(Some(Timestamp::EPOCH));
    }
}

/// The inputs that an item shows as taken: itself as a message, and those that a result hands on.
pub(crate) fn taken_by(item: &Item) -> Vec<ItemId> {
    match item.head().kind {
        ItemKind::UserMessage | ItemKind::AgentMessage => vec![item.head().id],
        ItemKind::ToolResult => match item.body::<ToolResult>() {
            Some(Ok(result)) => result.messages,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The time at which an id was made, if it says so.
fn time_of(id: &ItemId) -> Option<Timestamp> {
    let uuid = id.as_uuid();
    if uuid.get_version_num() != 7 {
        return None;
    }
    let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
    let millis = i64::try_from(seconds).ok()?.checked_mul(1_000)?;
    Some(Timestamp::from_millis(
        millis + i64::from(nanos / 1_000_000),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::{Builder, Uuid};

    use super::*;

    fn id(millis: u64, random: u8) -> ItemId {
        let builder = Builder::from_unix_timestamp_millis(millis, &[random; 10]);
        ItemId::from_uuid(builder.into_uuid())
    }

    #[test]
    fn an_id_that_says_no_time_or_too_old_a_time_is_looked_up() {
        let newest = Some(Timestamp::from_millis(1_000));
        let inputs = Inputs::latest([id(1_000, 1)].into(), newest);
        let known = [
            id(1_000, 1),
            id(1_000, 2),
            id(999, 1),
            id(1_001, 1),
            ItemId::from_uuid(Uuid::from_u128(7)),
        ];
        let known = known.map(|id| inputs.look_up(id));
        use Known::{New, Taken, Unknown};
        assert_eq!(known, [Taken, Unknown, Unknown, New, Unknown]);
    }

    proptest! {
        /// However clocks of clients differ, and wherever the session was opened anew.
        #[test]
        fn what_was_taken_is_never_called_new(
            sent in proptest::collection::vec((0u64..50, 0u8..4, any::<bool>(), 0usize..6), 1..60),
        ) {
            let mut all = HashSet::new();
            let mut inputs = Inputs::whole(HashSet::new());
            for (millis, random, has_time, reopened) in sent {
                if reopened == 0 {
                    let some = all.iter().copied().take(3).collect();
                    inputs = Inputs::latest(some, inputs.newest());
                }
                let id = if has_time {
                    id(millis, random)
                } else {
                    ItemId::from_uuid(Uuid::from_u128(u128::from(millis)))
                };
                let known = match inputs.look_up(id) {
                    Known::Unknown => {
                        inputs.complete(all.clone(), std::iter::empty());
                        inputs.look_up(id)
                    }
                    known => known,
                };
                let expected = if all.contains(&id) { Known::Taken } else { Known::New };
                prop_assert_eq!(known, expected);
                inputs.take(id);
                all.insert(id);
            }
        }
    }
}

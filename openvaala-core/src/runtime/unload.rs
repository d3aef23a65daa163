//! When a conversation that nobody uses is closed.

use std::collections::HashMap;
use std::time::Duration;

use openvaala_protocol::id::ConversationId;
use tokio::time::Instant;

/// How often conversations are looked at in the time after which one is closed.
const LOOKS: u32 = 10;
/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);
/// The longest time between two looks, so that a shorter time that is set later counts soon.
const LONGEST: Duration = Duration::from_secs(60);

/// Since when conversations are not in use.
#[derive(Debug, Default)]
pub(super) struct Unused(HashMap<ConversationId, Instant>);

impl Unused {
    /// Takes note that a conversation is in use, or is not open any more.
    pub(super) fn used(&mut self, id: ConversationId) {
        self.0.remove(&id);
    }

    /// Takes note that a conversation was seen without use; says whether it has been so for that long.
    pub(super) fn is_over(&mut self, id: ConversationId, now: Instant, after: Duration) -> bool {
        let since = self.0.entry(id).or_insert(now);
        now.duration_since(*since) >= after
    }
}

/// How long to wait until the next look.
pub(super) fn until_next_look(after: Option<Duration>) -> Duration {
    after.map_or(LONGEST, |after| (after / LOOKS).clamp(SHORTEST, LONGEST))
}

//! Where time and ids come from.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use openvaala_protocol::time::Timestamp;
use uuid::Uuid;

/// Tells the time of day.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now. May go back when the system's clock is set; nothing in the runtime relies on it going forward.
    fn now(&self) -> Timestamp;
}

/// Makes ids.
pub trait IdSource: fmt::Debug + Send + Sync + 'static {
    /// A UUID that nobody has had before; version 7, so that later ones sort later.
    fn next(&self) -> Uuid;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |m| -m),
        };
        Timestamp::from_millis(millis)
    }
}

/// UUIDs of version 7 from the system's clock and random numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}

//! How many requests of a client are taken in a time.

use std::time::Duration;

use tokio::time::Instant;

/// How much of its time a client may use at once after it was silent.
const BURST: Duration = Duration::from_secs(1);

/// Spaces out the requests of a client: each takes its share of a second.
#[derive(Debug)]
pub(super) struct Rate {
    share: Duration,
    /// When all that was taken is paid for.
    paid_at: Instant,
}

impl Rate {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self {
            share: BURST / per_second.max(1),
            paid_at: now,
        }
    }

    /// Takes one request, or says how long to wait before the next try.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let paid_at = self.paid_at.max(now) + self.share;
        match paid_at.duration_since(now).checked_sub(BURST) {
            Some(early) if !early.is_zero() => Err(early),
            _ => {
                self.paid_at = paid_at;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn s_139_a_second_of_requests_is_taken_at_once_and_then_as_many_as_time_passes() {
        let begin = Instant::now();
        let mut rate = Rate::new(10, begin);
        for _ in 0..10 {
            assert_eq!(rate.take(begin), Ok(()));
        }
        let share = Duration::from_millis(100);
        assert_eq!(rate.take(begin), Err(share));
        // A refused one costs nothing.
        assert_eq!(rate.take(begin + share / 2), Err(share / 2));
        assert_eq!(rate.take(begin + share), Ok(()));
        assert_eq!(rate.take(begin + share), Err(share));
        let later = begin + Duration::from_secs(60);
        let taken = (0..100).filter(|_| rate.take(later).is_ok()).count();
        assert_eq!(taken, 10, "silence is not saved up");
    }
}

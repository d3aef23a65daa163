//! Slows down whoever tries one wrong token after the other, and nobody who has a right one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// How many wrong tokens of a source are answered at once.
const FREE: u32 = 5;
/// The wait after the first one beyond that; it doubles from one to the next.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// After how long without a wrong token a source begins anew.
const FORGET: Duration = Duration::from_secs(60);
/// How many sources are told apart; beyond that the quietest is forgotten.
const MAX_SOURCES: usize = 1_000;

/// The wrong tokens of each source.
#[derive(Debug, Default)]
pub(crate) struct Throttle(HashMap<IpAddr, Source>);

#[derive(Debug)]
struct Source {
    refused: u32,
    last: Instant,
}

/// What to do about a wrong token.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Verdict {
    /// How long to wait before it is answered.
    pub(crate) wait: Duration,
    /// How many there were, if that is worth a line in the log: the first ones, then ever fewer.
    pub(crate) log: Option<u32>,
}

impl Throttle {
    /// Counts a wrong token from there.
    pub(crate) fn refused(&mut self, from: IpAddr, now: Instant) -> Verdict {
        self.make_room(from, now);
        let source = self.0.entry(from).or_insert(Source {
            refused: 0,
            last: now,
        });
        if now.duration_since(source.last) > FORGET {
            source.refused = 0;
        }
        source.refused = source.refused.saturating_add(1);
        source.last = now;
        let doublings = source.refused.saturating_sub(FREE);
        let wait = match doublings {
            0 => Duration::ZERO,
            _ => FIRST_WAIT
                .saturating_mul(1 << (doublings - 1).min(10))
                .min(LONGEST_WAIT),
        };
        let counts = source.refused <= FREE || source.refused.is_power_of_two();
        Verdict {
            wait,
            log: counts.then_some(source.refused),
        }
    }

    fn make_room(&mut self, from: IpAddr, now: Instant) {
        if self.0.len() < MAX_SOURCES || self.0.contains_key(&from) {
            return;
        }
        self.0
            .retain(|_, source| now.duration_since(source.last) <= FORGET);
        let quietest = self.0.iter().min_by_key(|(_, source)| source.last);
        if self.0.len() >= MAX_SOURCES
            && let Some(address) = quietest.map(|(address, _)| *address)
        {
            self.0.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use pretty_assertions::assert_eq;

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    #[test]
    fn s_23_a_thousand_wrong_tokens_take_most_of_an_hour_and_few_lines() {
        let (mut throttle, mut now) = (Throttle::default(), Instant::now());
        let (start, mut lines) = (now, 0);
        for number in 1..=1_000 {
            let verdict = throttle.refused(address(1), now);
            assert_eq!(verdict.wait.is_zero(), number <= FREE, "{number}");
            lines += u32::from(verdict.log.is_some());
            now += verdict.wait;
        }
        assert!(
            now - start > Duration::from_secs(45 * 60),
            "{:?}",
            now - start
        );
        assert!(lines < 20, "{lines}");
    }

    #[test]
    fn s_23_each_source_waits_for_itself_and_begins_anew_after_a_minute() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..100 {
            throttle.refused(address(1), now);
        }
        assert_eq!(throttle.refused(address(2), now).wait, Duration::ZERO);
        assert_eq!(throttle.refused(address(1), now).wait, LONGEST_WAIT);
        let later = now + FORGET + Duration::from_secs(1);
        assert_eq!(throttle.refused(address(1), later).wait, Duration::ZERO);
    }

    #[test]
    fn a_flood_of_sources_is_bounded() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        for number in 0..10_000 {
            throttle.refused(
                address(number),
                now + Duration::from_millis(u64::from(number)),
            );
        }
        assert_eq!(throttle.0.len(), MAX_SOURCES);
        assert!(throttle.0.contains_key(&address(9_999)));
    }
}

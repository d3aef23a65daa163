//! Deltas that are told together: a frame and a write for each token would be most of the work of a fast model.

use openvaala_protocol::event::Delta;
use tokio::time::{Duration, Instant};

/// A delta is told at once if none was told for this long; what comes sooner is told together.
const PAUSE: Duration = Duration::from_millis(8);
/// Text of this many bytes does not wait.
const ENOUGH: usize = 4 << 10;

/// The deltas of a conversation that wait.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Each item's text in order.
    deltas: Vec<Delta>,
    bytes: usize,
    last: Option<Instant>,
}

impl Together {
    /// Takes a delta; gives all that wait if they are to be told now.
    pub(super) fn push(&mut self, delta: Delta, now: Instant) -> Vec<Delta> {
        self.bytes += delta.text.len();
        let of_item = self
            .deltas
            .iter_mut()
            .rfind(|waiting| waiting.item_id == delta.item_id);
        match of_item {
            Some(waiting) if waiting.offset + waiting.text.len() as u64 == delta.offset => {
                waiting.text.push_str(&delta.text);
            }
            _ => self.deltas.push(delta),
        }
        let is_due = self.last.is_none_or(|last| now >= last + PAUSE);
        if is_due || self.bytes >= ENOUGH {
            self.take(now)
        } else {
            Vec::new()
        }
    }

    /// When what waits is to be told; `None` if nothing does.
    pub(super) fn due(&self) -> Option<Instant> {
        let waits = !self.deltas.is_empty();
        self.last.filter(|_| waits).map(|last| last + PAUSE)
    }

    /// Gives all that waits.
    pub(super) fn take(&mut self, now: Instant) -> Vec<Delta> {
        if !self.deltas.is_empty() {
            self.last = Some(now);
        }
        self.bytes = 0;
        std::mem::take(&mut self.deltas)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use openvaala_protocol::id::{ItemId, SessionId};
    use pretty_assertions::assert_eq;
    use uuid::Uuid;

    use super::*;

    fn delta(item: u128, offset: u64, text: &str) -> Delta {
        let id = |n: u128| {
            format!(
                "{}",
                Uuid::from_u128(0x0192_d3f5_0000_7000_8000_0000_0000_0000 + n)
            )
        };
        Delta {
            session_id: id(0).parse::<SessionId>().unwrap(),
            item_id: id(item).parse::<ItemId>().unwrap(),
            offset,
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_first_is_told_at_once_and_what_follows_soon_together() {
        let (mut together, begin) = (Together::default(), Instant::now());
        assert_eq!(together.push(delta(1, 0, "a"), begin), [delta(1, 0, "a")]);
        assert_eq!(together.due(), None);
        let soon = begin + PAUSE / 2;
        assert_eq!(together.push(delta(1, 1, "b"), soon), []);
        assert_eq!(together.push(delta(2, 0, "x"), soon), []);
        assert_eq!(together.push(delta(1, 2, "c"), soon), []);
        assert_eq!(together.due(), Some(begin + PAUSE));
        let told = together.take(begin + PAUSE);
        assert_eq!(told, [delta(1, 1, "bc"), delta(2, 0, "x")]);
        // The time counts from what was told last.
        assert_eq!(together.push(delta(1, 3, "d"), begin + PAUSE), []);
        assert_eq!(together.due(), Some(begin + 2 * PAUSE));
        let late = begin + 2 * PAUSE;
        assert_eq!(together.push(delta(1, 4, "e"), late), [delta(1, 3, "de")]);
    }

    #[test]
    fn much_text_does_not_wait() {
        let (mut together, now) = (Together::default(), Instant::now());
        together.push(delta(1, 0, "a"), now);
        let half = "h".repeat(ENOUGH / 2);
        assert_eq!(together.push(delta(1, 1, &half), now), []);
        let offset = 1 + half.len() as u64;
        let told = together.push(delta(1, offset, &half), now);
        assert_eq!(told, [delta(1, 1, &"h".repeat(ENOUGH))]);
        assert!(together.is_empty());
    }

    #[test]
    fn what_does_not_join_stays_apart() {
        let (mut together, now) = (Together::default(), Instant::now());
        together.push(delta(1, 0, "a"), now);
        together.push(delta(1, 1, "b"), now);
        // Some of a fast output was left out.
        together.push(delta(1, 9, "c"), now);
        together.push(delta(1, 10, "d"), now);
        assert_eq!(together.take(now), [delta(1, 1, "b"), delta(1, 9, "cd")]);
    }
}

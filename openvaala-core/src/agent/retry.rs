//! When a failed model request is asked again.

use std::time::Duration;

use uuid::Uuid;

use crate::model::ModelErrorKind;

/// How often and after what time a failed model request is asked again.
///
/// Only failures that may pass are: no connection or a broken one, an overloaded provider (HTTP 408, 409, 5xx), too
/// many requests (HTTP 429). The wait doubles from try to try, a quarter more or less by chance so that many sessions
/// do not come back at once; what the provider asks for (`Retry-After`) is waited for at least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How many times a request is sent at most, the first time included; 5 unless set.
    pub attempts: u32,
    /// The wait after the first failure; half a second unless set.
    pub first_wait: Duration,
    /// The longest wait; one minute unless set. A provider that asks for more is not asked again.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Sets how many times a request is sent at most; 0 counts as 1.
    #[must_use]
    pub const fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the wait after the first failure.
    #[must_use]
    pub const fn with_first_wait(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// Sets the longest wait.
    #[must_use]
    pub const fn with_longest_wait(mut self, wait: Duration) -> Self {
        self.longest_wait = wait;
        self
    }

    /// How long to wait after the failure of that attempt (from 1); `None` if that was the last one.
    pub(crate) fn wait(
        &self,
        kind: ModelErrorKind,
        attempt: u32,
        asked_for: Option<Duration>,
        chance: Uuid,
    ) -> Option<Duration> {
        let may_pass = matches!(
            kind,
            ModelErrorKind::Connection | ModelErrorKind::Unavailable | ModelErrorKind::RateLimited
        );
        let too_long = asked_for.is_some_and(|wait| wait > self.longest_wait);
        if !may_pass || too_long || attempt >= self.attempts {
            return None;
        }
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let wait = self
            .first_wait
            .saturating_mul(doubled)
            .min(self.longest_wait);
        // The last bits of an id are random; 192 to 319 256ths.
        let share = 192 + u32::from(chance.as_bytes()[15] & 127);
        let wait = (wait * share / 256).min(self.longest_wait);
        Some(wait.max(asked_for.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn waits(policy: RetryPolicy, kind: ModelErrorKind, last_byte: u128) -> Vec<Option<u128>> {
        let chance = Uuid::from_u128(last_byte);
        (1..=5)
            .map(|attempt| policy.wait(kind, attempt, None, chance))
            .map(|wait| wait.map(|wait| wait.as_millis()))
            .collect()
    }

    #[test]
    fn the_wait_doubles_and_the_last_attempt_has_none() {
        let kind = ModelErrorKind::Unavailable;
        let policy = RetryPolicy::default();
        let wanted = vec![Some(500), Some(1_000), Some(2_000), Some(4_000), None];
        assert_eq!(waits(policy, kind, 64), wanted);
        let least = vec![Some(375), Some(750), Some(1_500), Some(3_000), None];
        assert_eq!(waits(policy, kind, 0), least);
    }

    #[test]
    fn the_wait_has_a_limit() {
        let policy = RetryPolicy::default().with_longest_wait(Duration::from_millis(1_200));
        let wanted = vec![Some(500), Some(1_000), Some(1_200), Some(1_200), None];
        assert_eq!(waits(policy, ModelErrorKind::Connection, 64), wanted);
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_for_unless_it_is_too_long() {
        let wait = |seconds| {
            let asked_for = Some(Duration::from_secs(seconds));
            RetryPolicy::default().wait(ModelErrorKind::RateLimited, 1, asked_for, Uuid::nil())
        };
        assert_eq!(wait(7), Some(Duration::from_secs(7)));
        assert_eq!(wait(0), Some(Duration::from_millis(375)));
        assert_eq!(wait(3_600), None);
    }

    #[test]
    fn what_will_not_pass_is_not_asked_again() {
        for kind in [
            ModelErrorKind::Certificate,
            ModelErrorKind::Unauthorized,
            ModelErrorKind::Quota,
            ModelErrorKind::NotFound,
            ModelErrorKind::ContextTooLong,
            ModelErrorKind::BadRequest,
            ModelErrorKind::Refused,
            ModelErrorKind::BadAnswer,
        ] {
            assert_eq!(
                waits(RetryPolicy::default(), kind, 9),
                vec![None; 5],
                "{kind:?}"
            );
        }
        let once = RetryPolicy::default().with_attempts(0);
        assert_eq!(waits(once, ModelErrorKind::Connection, 9), vec![None; 5]);
    }
}

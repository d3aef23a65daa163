//! How long a provider asks to wait, in the many ways that it says so.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// The words before the time in the messages of OpenAI and others.
const IN_WORDS: &str = "try again in ";

/// Reads the time from the headers, or else from the message of the error.
///
/// A date is compared with the provider's own clock (its `Date` header), so neither ours nor a difference
/// between the two matters. What makes no sense, or lies in the past, counts as not said.
pub(super) fn retry_after(headers: &HeaderMap, message: &str) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok();
    let millis = || Some(seconds(text(&RETRY_AFTER_MS)?)? / 1000);
    let plain = || seconds(text(&RETRY_AFTER)?);
    let date = || between(text(&DATE)?, text(&RETRY_AFTER)?);
    millis()
        .or_else(plain)
        .or_else(date)
        .or_else(|| in_words(message))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn between(now: &str, then: &str) -> Option<Duration> {
    const PARSER: DateTimeParser = DateTimeParser::new();
    let now = PARSER.parse_timestamp(now.trim()).ok()?;
    let then = PARSER.parse_timestamp(then.trim()).ok()?;
    Duration::try_from(then.duration_since(now)).ok()
}

/// Reads times such as `20ms`, `1.3s` and `6m0s`.
fn in_words(message: &str) -> Option<Duration> {
    let start = message.find(IN_WORDS)? + IN_WORDS.len();
    let mut rest = message.get(start..)?;
    let mut sum = None;
    while rest.starts_with(|first: char| first.is_ascii_digit()) {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = rest.find(|c| !is_number(c))?;
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let factor = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "second" | "seconds" => 1.0,
            "m" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).checked_add(part)?);
        rest = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const NOW: &str = "Wed, 02 Dec 2026 04:22:41 GMT";

    fn read(headers: &[(&'static str, &'static str)], message: &str) -> Option<u64> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        let after = retry_after(&pairs.collect(), message)?;
        Some(u64::try_from(after.as_millis()).unwrap())
    }

    #[test]
    fn m_06_every_form_of_a_time_is_read() {
        let later = "Wed, 02 Dec 2026 04:23:11 GMT";
        assert_eq!(read(&[("retry-after", "2")], ""), Some(2_000));
        assert_eq!(read(&[("retry-after", " 1.5 ")], ""), Some(1_500));
        assert_eq!(
            read(&[("retry-after-ms", "250"), ("retry-after", "9")], ""),
            Some(250)
        );
        assert_eq!(
            read(&[("retry-after", later), ("date", NOW)], ""),
            Some(30_000)
        );
        assert_eq!(read(&[], "Please try again in 1.3s. Visit …"), Some(1_300));
        assert_eq!(read(&[], "try again in 20ms"), Some(20));
        assert_eq!(read(&[], "try again in 6m0.5s."), Some(360_500));
        assert_eq!(read(&[], "try again in 10 seconds"), Some(10_000));
        assert_eq!(read(&[("retry-after", "86400")], ""), Some(86_400_000));
    }

    #[test]
    fn m_06_a_time_without_sense_counts_as_not_said() {
        let earlier = "Wed, 02 Dec 2026 04:22:11 GMT";
        for headers in [
            &[("retry-after", "-3")][..],
            &[("retry-after", "soon")],
            &[("retry-after", "NaN")],
            &[("retry-after", "1e300")],
            &[("retry-after", earlier), ("date", NOW)],
            &[("retry-after", earlier)],
            &[("retry-after-ms", "")],
        ] {
            assert_eq!(read(headers, ""), None, "{headers:?}");
        }
        for message in [
            "try again in a while",
            "try again in 5",
            "try again in 5 parsecs",
            "later",
        ] {
            assert_eq!(read(&[], message), None, "{message}");
        }
    }

    #[test]
    fn m_06_garbage_in_a_header_does_not_hide_the_message() {
        assert_eq!(
            read(&[("retry-after", "soon")], "try again in 1s"),
            Some(1_000)
        );
    }
}

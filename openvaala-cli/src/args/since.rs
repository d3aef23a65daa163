//! Points in time as people say them: so long ago, or a day.

use std::time::Duration;

use openvaala_protocol::time::Timestamp;

/// The longest time ago, in minutes: ten thousand years.
const MOST: i64 = 10_000 * 366 * 24 * 60;

/// Since when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Since {
    /// That many minutes ago.
    Ago(i64),
    /// A point in time.
    At(Timestamp),
}

impl Since {
    /// The point in time, seen from now.
    pub(crate) fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(minutes) => Timestamp::from_millis(now.as_millis() - minutes * 60_000),
            Self::At(time) => time,
        }
    }
}

/// Reads `30m`, `12h`, `7d`, a day, or a time in RFC 3339.
pub(super) fn parse(text: &str) -> Result<Since, String> {
    if let Some(minutes) = ago(text) {
        return Ok(Since::Ago(minutes));
    }
    let midnight = format!("{text}T00:00:00Z");
    let time = text.parse().or_else(|_| midnight.parse());
    time.map(Since::At).map_err(|_| {
        "write 30m, 12h or 7d, a day such as 2026-12-01, or a time such as 2026-12-01T08:00:00Z"
            .to_owned()
    })
}

/// Reads an age: `30m`, `12h` or `7d`.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let minutes = ago(text).and_then(|minutes| u64::try_from(minutes).ok());
    minutes
        .map(|minutes| Duration::from_secs(minutes * 60))
        .ok_or_else(|| "write 30m, 12h or 7d".to_owned())
}

/// How many minutes ago.
fn ago(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return None,
    };
    let count: u32 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    Some(i64::from(count).saturating_mul(minutes).min(MOST))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_time_is_so_long_ago_or_a_day_or_written_in_full() {
        let now = at("2026-12-02T05:00:00.000Z");
        for (text, then) in [
            ("90m", "2026-12-02T03:30:00.000Z"),
            ("0h", "2026-12-02T05:00:00.000Z"),
            ("7d", "2026-11-25T05:00:00.000Z"),
            ("2026-12-01", "2026-12-01T00:00:00.000Z"),
            ("2026-12-01T08:00:00+02:00", "2026-12-01T06:00:00.000Z"),
        ] {
            assert_eq!(parse(text).unwrap().timestamp(now), at(then), "{text}");
        }
        // Longer ago than there are years is since ever.
        let ever = parse("4294967295d").unwrap().timestamp(now);
        assert_eq!(ever, Timestamp::from_millis(i64::MIN));
    }

    #[test]
    fn what_is_no_time_is_told_what_one_looks_like() {
        for text in [
            "",
            "d",
            "7",
            "7w",
            "-7d",
            "7 d",
            "yesterday",
            "2026-13-01",
            "7ü",
        ] {
            let said = parse(text).unwrap_err();
            assert!(
                said.contains("7d") && said.contains("2026-12-01"),
                "{text}: {said}"
            );
        }
    }
}

//! Points in time: milliseconds inside, RFC 3339 text outside.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time with millisecond precision, written as `2026-12-02T04:22:41.123Z`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "schema", derive(ts_rs::TS), ts(type = "string"))]
pub struct Timestamp(i64);

/// 9999-12-30T22:00:00Z: RFC 3339 ends with that year, and the time library some hours before it does.
const MAX: i64 = 253_402_207_200_000;
/// The first millisecond of the year 0000.
const MIN: i64 = -62_167_219_200_000;

/// A text that is no point in time.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{value:?} is no time: expected RFC 3339 such as 2026-12-02T04:22:41.123Z")]
#[non_exhaustive]
pub struct InvalidTimestamp {
    /// The text as it was given, at most 80 characters of it.
    pub value: String,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The point that many milliseconds after 1970-01-01T00:00:00Z, clamped to what can be written: from the
    /// beginning of the year 0 to 9999-12-30T22:00:00Z.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(MIN, MAX))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{time:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self::from_millis(time.as_millisecond()))
            .map_err(|_| InvalidTimestamp {
                value: text.chars().take(80).collect(),
            })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

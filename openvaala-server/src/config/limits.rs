//! What clients may cost: `limits` in `openvaala.yaml`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::schema::{from_number, given};

/// What one client, and all of them together, may cost the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// How many connections there may be; 1,024 by default.
    pub connections: usize,
    /// How many of them may be without proof, beyond which the oldest of these goes; 64 by default.
    pub waiting_connections: usize,
    /// How long a connection may take to become a WebSocket; 10 seconds by default.
    pub handshake: Duration,
    /// The largest message that is taken, in bytes; 16 MiB by default.
    pub message_bytes: usize,
    /// How deep the parameters of a request may be nested; 127 by default.
    pub message_depth: usize,
    /// How many things a page has at most; 1,000 by default.
    pub page_items: u32,
    /// How many requests a client may send in a second; 1,000 by default.
    pub requests_per_second: u32,
    /// How many requests of a client are worked on at once; 64 by default.
    pub requests_in_flight: usize,
    /// How many bytes may wait to be sent to a client; 8 MiB by default.
    pub queue_bytes: usize,
    /// How long a client for which something waits may read nothing; 30 seconds by default.
    pub unread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            waiting_connections: 64,
            handshake: Duration::from_secs(10),
            message_bytes: 16 << 20,
            message_depth: 127,
            page_items: 1_000,
            requests_per_second: 1_000,
            requests_in_flight: 64,
            queue_bytes: 8 << 20,
            unread: Duration::from_secs(30),
        }
    }
}

/// `limits` as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "limits, each as `name: number`"
)]
pub(super) struct LimitsSection {
    #[serde(deserialize_with = "given")]
    connections: Option<Within<1, 65_536>>,
    #[serde(deserialize_with = "given")]
    waiting_connections: Option<Within<1, 4_096>>,
    #[serde(deserialize_with = "given")]
    handshake_seconds: Option<Within<1, 60>>,
    #[serde(deserialize_with = "given")]
    message_kib: Option<Within<64, 65_536>>,
    #[serde(deserialize_with = "given")]
    message_depth: Option<Within<16, 127>>,
    #[serde(deserialize_with = "given")]
    page_items: Option<Within<1, 10_000>>,
    #[serde(deserialize_with = "given")]
    requests_per_second: Option<Within<1, 1_000_000>>,
    #[serde(deserialize_with = "given")]
    requests_in_flight: Option<Within<1, 4_096>>,
    #[serde(deserialize_with = "given")]
    queue_kib: Option<Within<64, 1_048_576>>,
    #[serde(deserialize_with = "given")]
    unread_seconds: Option<Within<1, 3_600>>,
}

/// A number between two others, both of which it may be.
#[derive(Clone, Copy, Debug)]
struct Within<const LEAST: u32, const MOST: u32>(u32);

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Within<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number(deserializer, "a number", |number| {
            match u32::try_from(number) {
                Ok(number) if (LEAST..=MOST).contains(&number) => Ok(Self(number)),
                _ => Err(format!(
                    "{number} is out of range: expected {LEAST} to {MOST}"
                )),
            }
        })
    }
}

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    /// The number in `unit`s.
    const fn times(self, unit: usize) -> usize {
        (self.0 as usize).saturating_mul(unit)
    }

    const fn seconds(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// The limits that the main file describes.
pub(super) fn limits(section: &LimitsSection) -> Limits {
    let all = Limits::default();
    let kib = 1 << 10;
    Limits {
        connections: section.connections.map_or(all.connections, |n| n.times(1)),
        waiting_connections: section
            .waiting_connections
            .map_or(all.waiting_connections, |n| n.times(1)),
        handshake: section
            .handshake_seconds
            .map_or(all.handshake, Within::seconds),
        message_bytes: section
            .message_kib
            .map_or(all.message_bytes, |n| n.times(kib)),
        message_depth: section
            .message_depth
            .map_or(all.message_depth, |n| n.times(1)),
        page_items: section.page_items.map_or(all.page_items, |n| n.0),
        requests_per_second: section
            .requests_per_second
            .map_or(all.requests_per_second, |n| n.0),
        requests_in_flight: section
            .requests_in_flight
            .map_or(all.requests_in_flight, |n| n.times(1)),
        queue_bytes: section.queue_kib.map_or(all.queue_bytes, |n| n.times(kib)),
        unread: section.unread_seconds.map_or(all.unread, Within::seconds),
    }
}

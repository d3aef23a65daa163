//! Seeded choices, so that a failure can be had again.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A stream of numbers that follows from its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Starts from `OPENVAALA_SEED`, or else from the time, and prints the seed.
    #[must_use]
    pub fn from_environment(test: &str) -> Self {
        let given = env::var("OPENVAALA_SEED").ok();
        let seed = given.map_or_else(time_seed, |text| {
            text.parse().expect("OPENVAALA_SEED must be a number")
        });
        println!("{test}: OPENVAALA_SEED={seed}");
        Self::new(seed)
    }

    /// Starts from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// A number below `end`, which must not be 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn time_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs())
}

//! Random starts, kills and closes.

use std::sync::Arc;
use std::time::Duration;

use openvaala_executor::commands::CommandsOptions;
use openvaala_executor::tool::{Cancel, NoOutput};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::session::Session;

const LINES: [&str; 8] = [
    "true",
    "echo hi; exit 3",
    "sleep 1000",
    "sleep 1000 & exit 0",
    "trap '' TERM; sleep 1000 & sleep 1000; sleep 1000",
    "yes",
    "(sleep 0.1; echo later) & (sleep 1000 >/dev/null 2>&1 &) ; echo now",
    "cat",
];

/// Numbers that look random, the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

/// Does random things to a session, then ends it in a random way.
async fn round(seed: u64) {
    let mut random = Random(seed);
    let session = Session::with(CommandsOptions::default().with_max_running(8)).await;
    for _ in 0..=random.below(4) {
        let args = json!({
            "command": LINES[random.below(LINES.len())],
            "yield_ms": 250 + random.below(50),
            "input": random.below(2) == 0,
        });
        let (handle, cancel) = Cancel::new();
        let call = session.call_with("bash", args, cancel, Arc::new(NoOutput));
        match random.below(4) {
            // Dropped at some point.
            0 => {
                let time = Duration::from_millis(random.below(30) as u64);
                drop(timeout(time, call).await);
            }
            1 => {
                let time = Duration::from_millis(random.below(30) as u64);
                let cancelling = async {
                    sleep(time).await;
                    handle.cancel();
                };
                drop(futures::join!(call, cancelling).0);
            }
            _ => drop(call.await),
        }
        let commands = session.commands.list().await;
        if let (Some(info), 0) = (commands.last(), random.below(2)) {
            let signal = if random.below(2) == 0 { "KILL" } else { "TERM" };
            let args = json!({ "id": info.id.get(), "signal": signal });
            session.call("bash_kill", args).await.unwrap();
        }
    }
    match random.below(3) {
        0 => session.task.abort(),
        1 => session.place.workspace.close().await,
        _ => session.commands.close().await,
    }
    session.assert_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_started_killed_and_closed_nothing_is_left() {
    let long = std::env::var_os("OPENVAALA_LONG").is_some();
    let seeds: Vec<u64> = (0..if long { 200 } else { 40 }).collect();
    for some in seeds.chunks(8) {
        let rounds = some
            .iter()
            .map(|seed| timeout(Duration::from_secs(60), round(*seed)));
        for result in futures::future::join_all(rounds).await {
            result.expect("a round hangs");
        }
    }
}

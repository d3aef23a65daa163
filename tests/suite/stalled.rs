//! Clients that stop reading while much is told: they slow nobody, cost little, and miss nothing once they read again.
//!
//! Two hundred MiB with `OPENVAALA_LONG`, else a part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use openvaala_protocol::conversation::TurnStatus;
use openvaala_tests::fake_model::{Answer, FakeModel};
use openvaala_tests::notice::is_long;
use openvaala_tests::raw_client::{RawClient, RawMessage};
use openvaala_tests::sandbox::Sandbox;
use openvaala_tests::watcher::Watcher;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::memory::peak;
use crate::support::stop;

/// How many clients stop reading.
const STALLED: usize = 50;
/// How many pieces an answer has, of four thousand bytes each.
const PIECES: usize = 1_000;
/// How much more memory, in KiB, the server may take for all of them at its peak: without a bound it would be 50 times what is told.
///
/// The peaks of two runs without them differ by 17 MiB, so this is twice the bar that `docs/performance.md` measures.
const MOST: u64 = 64 << 10;

/// What it took to tell much.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Duration,
    /// In KiB.
    memory: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_137_fifty_clients_that_stop_reading_slow_nobody_and_miss_nothing() {
    let quiet = tell(0).await;
    let with_stalled = tell(STALLED).await;
    println!(
        "{:?} and {} KiB alone, {:?} and {} KiB with {STALLED} clients that do not read",
        quiet.time, quiet.memory, with_stalled.time, with_stalled.memory
    );
    assert!(
        with_stalled.memory < quiet.memory + MOST,
        "{quiet:?} {with_stalled:?}"
    );
}

async fn tell(stalled: usize) -> Cost {
    let turns = if is_long() { 50 } else { 4 };
    let piece = "word ".repeat(800);
    let mut model = FakeModel::start(move |_| {
        let begin = Answer::stream();
        (0..PIECES)
            .fold(begin, |answer, _| answer.say(&piece))
            .end()
    });
    let sandbox = Sandbox::new();
    sandbox.use_model_with(&model.base_url(), "limits: {unread_seconds: 3600}\n");
    let server = sandbox.serve();
    let mut watcher = Watcher::connect(&server.discovery).await;
    let conversation = watcher.create(&sandbox.project()).await;
    let watch = json!({ "conversation_id": conversation });
    let mut clients: Vec<Stalled> = (0..stalled)
        .map(|_| Stalled::watch(&server.discovery.address, &server.discovery.token(), &watch))
        .collect();
    let begin = Instant::now();
    for turn in 0..turns {
        let ended = watcher.ask(conversation, &format!("turn {turn}")).await;
        assert_eq!(ended.status, TurnStatus::Completed, "{ended:?}");
        model.forget();
    }
    let cost = Cost {
        time: begin.elapsed(),
        memory: peak(server.pid()),
    };
    let items = watcher.items(conversation).await;
    let all: Vec<String> = items
        .iter()
        .map(|item| item.head().id.to_string())
        .collect();
    assert_eq!(all.len(), 2 * turns);
    // What each has in its queue is the same: one of them stands for all.
    if let Some(client) = clients.first_mut() {
        client.read_on(&watch, all.len());
        assert_eq!(client.items, all);
        assert!(client.gaps > 0, "it was told all of it");
    }
    drop(clients);
    stop(server).await;
    cost
}

/// A client that watches a conversation and does not read.
struct Stalled {
    client: RawClient,
    cursor: Value,
    /// The items that it was told, in order.
    items: Vec<String>,
    /// The lengths of texts that are still growing.
    growing: BTreeMap<String, u64>,
    gaps: usize,
}

impl Stalled {
    fn watch(address: &str, token: &openvaala_protocol::handshake::Token, watch: &Value) -> Self {
        let mut client = RawClient::initialized(address, token);
        let answer = client.call("conversation/subscribe", watch);
        Self {
            client,
            cursor: answer["result"]["cursor"].clone(),
            items: Vec::new(),
            growing: BTreeMap::new(),
            gaps: 0,
        }
    }

    /// Reads what waited, and subscribes again as often as it is told of a gap, until it has that many items.
    fn read_on(&mut self, watch: &Value, items: usize) {
        while self.items.len() < items {
            let RawMessage::Text(text) = self.client.read_message() else {
                panic!("the connection has ended");
            };
            let message: Value = serde_json::from_str(&text).expect("it is JSON");
            let params = &message["params"];
            match message["method"].as_str().unwrap_or_default() {
                "conversation/entry" => {
                    self.cursor = params["cursor"].clone();
                    self.entry(&params["entry"]);
                }
                "conversation/live" => self.live(&params["live"]),
                "conversation/gap" => {
                    self.gaps += 1;
                    self.resume(watch);
                }
                method => panic!("{method}"),
            }
        }
    }

    fn resume(&mut self, watch: &Value) {
        let mut params = watch.clone();
        params["cursor"] = self.cursor.clone();
        let answer = self.client.call("conversation/subscribe", &params);
        let result = &answer["result"];
        assert!(result["snapshot"].is_null(), "so little was missed");
        for entry in result["entries"].as_array().expect("it is a list") {
            self.entry(entry);
        }
        self.cursor = result["cursor"].clone();
    }

    fn entry(&mut self, entry: &Value) {
        if let Some(id) = entry["item"]["item"]["id"].as_str() {
            self.growing.remove(id);
            self.items.push(id.to_owned());
        }
    }

    fn live(&mut self, live: &Value) {
        let known: BTreeSet<&str> = self.items.iter().map(String::as_str).collect();
        let length = |text: &Value| text.as_str().expect("it is a text").len() as u64;
        if let Some(begun) = live.get("started") {
            let id = begun["item_id"].as_str().expect("it has an id");
            assert!(!known.contains(id), "an item goes on after its end");
            let end = begun["offset"].as_u64().unwrap_or(0) + length(&begun["text"]);
            self.growing.insert(id.to_owned(), end);
        }
        if let Some(delta) = live.get("delta") {
            let id = delta["item_id"].as_str().expect("it has an id");
            assert!(!known.contains(id), "a delta comes after its item");
            let end = self.growing.get_mut(id).expect("it has begun");
            assert_eq!(
                delta["offset"].as_u64(),
                Some(*end),
                "a delta does not join"
            );
            *end += length(&delta["text"]);
        }
    }
}

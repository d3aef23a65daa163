//! What the logs say in the end, against all that was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::executor::block_on;
use openvaala_core::protocol::id::{ConversationId, ItemId};
use openvaala_core::protocol::item::{Item, ItemKind, ToolResult};
use openvaala_core::storage::file::{FileOptions, FileStorage};
use openvaala_core::storage::sim::SimFs;
use openvaala_core::storage::{EntryData, LogPath, LogStorage, LogStorageExt, StreamKey};
use serde_json::Value;
use serde_json::value::RawValue;

use super::agents::Agents;
use super::life::ROOT;
use super::world::Known;

/// Looks at all conversations; gives how many reports of agents there were.
pub(crate) fn check_log(disk: &SimFs, known: &Known) -> u64 {
    let mut reports = 0;
    let options = FileOptions::new(ROOT).fs(Arc::new(disk.clone()));
    let storage = FileStorage::open(options).unwrap();
    for id in &known.conversations {
        let path: LogPath = format!("conversations/{id}").parse().unwrap();
        let listing = block_on(storage.list(Some(&path))).unwrap();
        let mut items = BTreeMap::new();
        let mut taken = BTreeSet::new();
        let mut agents = Agents::default();
        for stream in listing.streams {
            let name = stream.as_str().to_owned();
            let key = StreamKey::new(path.clone(), stream);
            let lines = block_on(storage.read_all(&key)).unwrap();
            let lines = lines.into_iter().map(|entry| (entry.seq, entry.data));
            if name == "metadata" {
                let lines: Vec<_> = lines.collect();
                agents = Agents::read(lines.iter().map(|(_, data)| data.clone()), known);
                taken = check_turns(lines.into_iter(), known);
            } else if !name.ends_with(".blobs") {
                let lines: BTreeMap<u64, Item> = lines
                    .filter_map(|(seq, data)| Some((seq, item(data, known)?)))
                    .collect();
                check_items(lines.values());
                items.insert(name, lines);
            }
        }
        check_inputs(*id, known, &items, &taken);
        reports += agents.check_reports(&items);
        for seen in known.seen.get(id).into_iter().flatten() {
            let line = items
                .get(&seen.session.to_string())
                .and_then(|lines| lines.get(&seen.seq));
            let line = line.map(|item| item.raw().get());
            assert_eq!(
                line,
                Some(seen.json.as_str()),
                "I-3: a client was told something else"
            );
        }
    }
    reports
}

pub(super) type Items = BTreeMap<String, BTreeMap<u64, Item>>;

/// What an entry has; damaged ones are there only where the power was cut, and of what was not acknowledged.
pub(super) fn json(data: EntryData, known: &Known) -> Option<Box<RawValue>> {
    match data {
        EntryData::Json(raw) => Some(raw),
        _ if known.power_was_cut => None,
        other => panic!("I-1: there is damage: {other:?}"),
    }
}

fn item(data: EntryData, known: &Known) -> Option<Item> {
    json(data, known).map(|raw| Item::from_raw(raw).unwrap())
}

/// One turn of a session at a time, each with an end; gives the inputs that they took.
fn check_turns(lines: impl Iterator<Item = (u64, EntryData)>, known: &Known) -> BTreeSet<String> {
    let (mut running, mut taken) = (BTreeMap::<String, String>::new(), BTreeMap::new());
    for raw in lines.filter_map(|(_, data)| json(data, known)) {
        let entry: Value = serde_json::from_str(raw.get()).unwrap();
        if entry["kind"] != "turn" {
            continue;
        }
        let state = &entry["state"];
        let text = |name: &str| state[name].as_str().unwrap().to_owned();
        let (id, session) = (text("id"), text("session_id"));
        if state["ended_at"].is_null() {
            let other = running.insert(session, id.clone());
            assert!(
                other.is_none_or(|other| other == id),
                "{id} begins while another turn runs"
            );
        } else {
            running.remove(&session);
        }
        let inputs = state["inputs"].as_array().unwrap().iter();
        for input in inputs.map(|input| input.as_str().unwrap().to_owned()) {
            let turn = taken.entry(input.clone()).or_insert_with(|| id.clone());
            assert_eq!(*turn, id, "I-1: {input} is taken by two turns");
        }
    }
    assert_eq!(running, BTreeMap::new(), "I-7: every turn has an end");
    taken.into_keys().collect()
}

/// Each place and each id once, and each call with one result.
fn check_items<'a>(items: impl Iterator<Item = &'a Item>) {
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    let (mut calls, mut results) = (BTreeSet::new(), BTreeSet::new());
    let mut plans = BTreeMap::new();
    for item in items {
        let head = item.head();
        // A plan is written again where it stands.
        if head.kind == ItemKind::Plan && plans.insert(head.id, head.pos) == Some(head.pos) {
            continue;
        }
        assert!(ids.insert(head.id), "{} is written twice", head.id);
        assert!(places.insert(head.pos), "place {} is taken twice", head.pos);
        if head.kind == ItemKind::ToolCall {
            calls.insert(head.id);
        }
        if let Some(result) = item.body::<ToolResult>() {
            let call = result.unwrap().call;
            assert!(results.insert(call), "{call} has two results");
        }
    }
    assert_eq!(calls, results, "every call has its result");
}

/// What was acknowledged was said once, and a turn took it.
fn check_inputs(id: ConversationId, known: &Known, items: &Items, taken: &BTreeSet<String>) {
    let said: BTreeSet<ItemId> = items
        .values()
        .flat_map(BTreeMap::values)
        .filter(|item| item.head().kind == ItemKind::UserMessage)
        .map(|item| item.head().id)
        .collect();
    for (_, input) in known.acknowledged.iter().filter(|(of, _)| *of == id) {
        assert!(
            said.contains(input),
            "I-1: {input} was acknowledged and is not there"
        );
        assert!(
            taken.contains(&input.to_string()),
            "I-1: no turn took {input}"
        );
    }
}

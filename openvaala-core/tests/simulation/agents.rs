//! What the logs say of agents: each end of a turn is told to the one that has started it, once.

use std::collections::{BTreeMap, BTreeSet};

use openvaala_core::protocol::id::ItemId;
use openvaala_core::protocol::item::{ItemKind, ToolResult};
use openvaala_core::storage::EntryData;
use serde_json::Value;

use super::checks::{Items, json};
use super::world::Known;

/// What the states of a conversation say of agents.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// The last state of each session, by its id.
    sessions: BTreeMap<String, Value>,
    /// The sessions of all reports there ever were.
    reports: BTreeMap<String, String>,
    /// The turns of each session that have ended.
    ended: BTreeMap<String, BTreeSet<String>>,
}

impl Agents {
    pub(super) fn read(states: impl Iterator<Item = EntryData>, known: &Known) -> Self {
        let mut agents = Self::default();
        for raw in states.filter_map(|data| json(data, known)) {
            let entry: Value = serde_json::from_str(raw.get()).unwrap();
            let state = entry["state"].clone();
            if entry["kind"] == "turn" && !state["ended_at"].is_null() {
                let ended = agents.ended.entry(text(&state["session_id"]));
                ended.or_default().insert(text(&state["id"]));
            }
            if entry["kind"] != "session" {
                continue;
            }
            let id = text(&state["id"]);
            for report in state["child"]["reports"].as_array().into_iter().flatten() {
                agents.reports.insert(text(&report["item_id"]), id.clone());
            }
            agents.sessions.insert(id, state);
        }
        agents
    }

    /// Each report is where it belongs once, unless one of the two agents was closed; gives how many there were.
    pub(super) fn check_reports(&self, items: &Items) -> u64 {
        for (report, child) in &self.reports {
            let parent = text(&self.sessions[child]["parent"]);
            let told = self.times_told(report, &parent, items);
            let is_closed = |id: &String| self.sessions[id]["child"]["closed"] == true;
            let is_over = is_closed(child) || self.is_closed_above(child);
            let least = usize::from(!is_over);
            assert!(
                (least..=1).contains(&told),
                "report {report} of {child} was told {told} times to {parent}"
            );
        }
        self.check_ends();
        self.reports.len() as u64
    }

    /// No turn of an agent has ended without a report.
    fn check_ends(&self) {
        let none = BTreeSet::new();
        for (id, state) in &self.sessions {
            if !state["child"].is_object() || state["child"]["closed"] == true {
                continue;
            }
            let ended = self.ended.get(id).unwrap_or(&none).len();
            let reported = self.reports.values().filter(|child| *child == id).count();
            assert!(
                reported >= ended,
                "{id} has reported {reported} of {ended} ends"
            );
        }
    }

    fn is_closed_above(&self, child: &str) -> bool {
        let mut at = child.to_owned();
        while let Some(parent) = self.sessions[&at]["parent"].as_str() {
            if self.sessions[parent]["child"]["closed"] == true {
                return true;
            }
            at = parent.to_owned();
        }
        false
    }

    fn times_told(&self, report: &str, parent: &str, items: &Items) -> usize {
        let id: ItemId = report.parse().unwrap();
        let items = items.get(parent).into_iter().flat_map(BTreeMap::values);
        let said = items.map(|item| {
            let is_message = item.head().kind == ItemKind::AgentMessage && item.head().id == id;
            let result = item.body::<ToolResult>().and_then(Result::ok);
            let of_result = result.map_or(0, |result| {
                let messages = result.messages.iter();
                messages.filter(|message| **message == id).count()
            });
            usize::from(is_message) + of_result
        });
        let queue = self.sessions[parent]["queue"].as_array();
        let waiting = queue.into_iter().flatten();
        let waiting = waiting.filter(|input| input["item_id"] == report).count();
        said.sum::<usize>() + waiting
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

//! What the log of a conversation says of its agents: turns, inputs and reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use openvaala_protocol::id::ItemId;
use pretty_assertions::assert_eq;
use serde_json::Value;

/// What a conversation has on disk.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// All states of turns, in order.
    turns: Vec<Value>,
    /// The last state of each session, by its id.
    sessions: BTreeMap<String, Value>,
    /// The sessions of all reports that a state ever had, by the report's id.
    reports: BTreeMap<String, String>,
    /// The items of each session, by its id.
    items: BTreeMap<String, Vec<Value>>,
}

impl Log {
    /// Reads the directory of a conversation; half a line at the end is one that is just being written.
    pub(super) fn read(folder: &Path) -> Self {
        let mut log = Self::default();
        for entry in fs::read_dir(folder).expect("the conversation is on disk") {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match name.strip_suffix(".jsonl") {
                Some("metadata") => lines(&path).into_iter().for_each(|frame| log.note(frame)),
                Some(session) if !session.ends_with(".blobs") => {
                    log.items.insert(session.to_owned(), lines(&path));
                }
                _ => {}
            }
        }
        log
    }

    fn note(&mut self, mut frame: Value) {
        let state = frame["state"].take();
        if frame["kind"] == "turn" {
            self.turns.push(state);
        } else if frame["kind"] == "session" {
            let id = text(&state["id"]);
            for report in state["child"]["reports"].as_array().into_iter().flatten() {
                self.reports.insert(text(&report["item_id"]), id.clone());
            }
            self.sessions.insert(id, state);
        }
    }

    /// The reports that a session still keeps, since its starter does not have them on disk.
    pub(super) fn kept_reports(&self) -> Vec<&Value> {
        let lists = self.sessions.values();
        let lists = lists.filter_map(|state| state["child"]["reports"].as_array());
        lists.flatten().collect()
    }

    /// How many agents there were, how many reports, and how many turns that a crash has ended.
    pub(super) fn counts(&self) -> Counts {
        let items = self.items.values().flatten();
        let crashes =
            items.filter(|item| item["kind"] == "interruption" && item["body"]["cause"] == "crash");
        Counts {
            agents: self.sessions.len() - 1,
            reports: self.reports.len(),
            crashed_turns: crashes.count(),
        }
    }

    /// One turn of a session at a time, each with an end, and each input in one turn: those that were acknowledged in one
    /// that there is.
    pub(super) fn check_turns(&self, acknowledged: &BTreeSet<ItemId>) {
        let mut running: BTreeMap<String, String> = BTreeMap::new();
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        for turn in &self.turns {
            let (id, session) = (text(&turn["id"]), text(&turn["session_id"]));
            if turn["ended_at"].is_null() {
                let other = running.insert(session, id.clone());
                assert!(
                    other.as_ref().is_none_or(|other| *other == id),
                    "{id} begins while {other:?} runs"
                );
            } else {
                running.remove(&session);
            }
            for input in turn["inputs"].as_array().into_iter().flatten() {
                let first = taken.entry(text(input)).or_insert_with(|| id.clone());
                assert_eq!(*first, id, "I-8: {input} is taken by two turns");
            }
        }
        assert_eq!(running, BTreeMap::new(), "I-7: every turn has an end");
        for input in acknowledged {
            let input = input.to_string();
            assert!(taken.contains_key(&input), "I-1: no turn took {input}");
        }
    }

    /// Each report is told to the one that has started its agent once, unless the agent or one above it was closed.
    pub(super) fn check_reports(&self) {
        for (report, child) in &self.reports {
            let parent = text(&self.sessions[child]["parent"]);
            let told = self.times_told(report, &parent);
            let least = usize::from(!self.is_closed(child));
            assert!(
                (least..=1).contains(&told),
                "the report {report} of {child} was told {told} times to {parent}"
            );
        }
    }

    fn is_closed(&self, session: &str) -> bool {
        let state = &self.sessions[session];
        let is_above_closed = || {
            state["parent"]
                .as_str()
                .is_some_and(|above| self.is_closed(above))
        };
        state["child"]["closed"] == true || is_above_closed()
    }

    fn times_told(&self, report: &str, parent: &str) -> usize {
        let of_item = |item: &Value| {
            let is_message = item["kind"] == "agent_message" && item["id"] == report;
            let in_result = item["body"]["messages"].as_array().into_iter().flatten();
            usize::from(is_message) + in_result.filter(|message| *message == report).count()
        };
        let items = self.items.get(parent).into_iter().flatten();
        items.map(of_item).sum()
    }
}

/// What there was to look at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) agents: usize,
    pub(super) reports: usize,
    pub(super) crashed_turns: usize,
}

fn lines(stream: &Path) -> Vec<Value> {
    let text = fs::read_to_string(stream).expect("the stream can be read");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a whole line is JSON");
        line["data"].clone()
    };
    whole.lines().map(read).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("it is a text").to_owned()
}

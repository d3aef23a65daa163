//! Checks a data directory against what a client was told, by reading its bytes.
//!
//! It knows the format from its description alone and shares no code with the storage, so that a fault in the
//! reader cannot hide a fault in the writer. Messages begin with the invariant that is broken:
//!
//! | | |
//! | --- | --- |
//! | I-1 | what was acknowledged is there: same stream, same number, same bytes |
//! | I-2 | the numbers of a stream are 1 to n in the order of the file |
//! | I-3 | nothing is there that nobody submitted |
//! | I-4 | no bytes are lost in silence: every line is whole and its checksum is right |
//! | I-5 | one conversation's directory names no other conversation |
//! | I-7 | nothing runs for ever: no turn is left running |
//! | I-8 | a tool call has exactly one result |
//!
//! I-6 (the index follows from the logs) is checked by the tests that rebuild it.

mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use openvaala_protocol::id::ConversationId;
use serde_json::Value;

use self::line::{Unsound, read_stream};
use crate::journal::{Acknowledged, Journal};

/// One entry of a stream.
#[derive(Debug)]
struct Line {
    seq: u64,
    data: String,
}

/// Whether turns may still run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum When {
    /// A server has opened the directory since the last crash, and works on nothing.
    Settled,
    /// The server has just been killed.
    Crashed,
}

/// Checks a data directory and returns all that is wrong with it.
#[must_use]
pub fn violations(data: &Path, journal: &Journal, when: When) -> Vec<String> {
    let mut found = Vec::new();
    let nothing = Acknowledged::default();
    let on_disk = conversations(data);
    for (id, known) in &journal.conversations {
        if known.is_promised() && !on_disk.contains(id) {
            found.push(format!(
                "I-1: conversation {id} was acknowledged and is not on disk"
            ));
        }
    }
    for id in on_disk {
        let known = journal.conversations.get(&id).unwrap_or(&nothing);
        let mut check = Check {
            data,
            id,
            known,
            when,
            power_was_cut: journal.power_was_cut,
            found: &mut found,
        };
        check.conversation();
    }
    found
}

/// Checks a data directory.
///
/// # Panics
/// With all that is wrong with it.
#[track_caller]
pub fn check(data: &Path, journal: &Journal, when: When) {
    let found = violations(data, journal, when);
    assert!(
        found.is_empty(),
        "{} is not sound:\n{}",
        data.display(),
        found.join("\n")
    );
}

fn conversations(data: &Path) -> BTreeSet<ConversationId> {
    let Ok(entries) = fs::read_dir(data.join("conversations")) else {
        return BTreeSet::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

struct Check<'a> {
    data: &'a Path,
    id: ConversationId,
    known: &'a Acknowledged,
    when: When,
    power_was_cut: bool,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn conversation(&mut self) {
        let folder = self.data.join("conversations").join(self.id.to_string());
        let mut streams = BTreeMap::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(stream) = name.strip_suffix(".jsonl") else {
                continue;
            };
            let allowed = if self.power_was_cut {
                Unsound::Lines
            } else if self.when == When::Crashed || stream.ends_with(".blobs") {
                Unsound::HalfLine
            } else {
                Unsound::Nothing
            };
            match read_stream(&entry.path(), allowed) {
                Ok(lines) => drop(streams.insert(stream.to_owned(), lines)),
                Err(why) => self.say(&why),
            }
        }
        let empty = Vec::new();
        let metadata = streams.get("metadata").unwrap_or(&empty);
        // A first copy that a crash has cut short has none; nobody was told of it, and nobody takes it for a conversation.
        let may_be_half = !self.known.is_promised();
        if metadata.is_empty() && !may_be_half {
            self.say("I-1: there is no metadata.jsonl, or it is empty");
        }
        self.states(metadata);
        self.acknowledged_items(&streams);
        self.inputs(&streams, metadata);
        let sessions = streams.iter().filter(|(name, _)| is_session(name));
        for (name, lines) in sessions {
            self.items(name, lines);
        }
    }

    fn states(&mut self, metadata: &[Line]) {
        // Before its first input a conversation is in memory alone, and its states are told nevertheless.
        let promised = self.known.states.iter();
        let promised = promised.filter(|_| self.known.is_promised());
        for (seq, (kind, wire)) in promised {
            let Some(line) = metadata.iter().find(|line| line.seq == *seq) else {
                self.say(&format!(
                    "I-1: state {seq} ({kind}) was told and is not on disk"
                ));
                continue;
            };
            let frame: Value = serde_json::from_str(&line.data).unwrap_or_default();
            if let Some(why) = difference(kind, wire, &frame) {
                self.say(&format!("I-1: state {seq}: {why}"));
            }
        }
        if self.when == When::Crashed {
            return;
        }
        for (id, frame) in last_states(metadata) {
            if frame["state"]["status"] == "running" {
                self.say(&format!("I-7: turn {id} is still running"));
            }
            if frame["kind"] == "session" && !frame["state"]["active_turn"].is_null() {
                self.say(&format!("I-7: session {id} still has an active turn"));
            }
        }
    }

    fn acknowledged_items(&mut self, streams: &BTreeMap<String, Vec<Line>>) {
        for ((session, seq), text) in &self.known.items {
            let lines = streams.get(&session.to_string());
            let line = lines.and_then(|lines| lines.iter().find(|line| line.seq == *seq));
            match line {
                None => self.say(&format!(
                    "I-1: item {seq} was told and is not on disk: {text}"
                )),
                Some(line) if line.data != *text => {
                    let data = &line.data;
                    self.say(&format!("I-1: item {seq} is {data} and was told as {text}"));
                }
                Some(_) => {}
            }
        }
    }

    /// Every acknowledged input is an item or waits in the queue, and is so once.
    fn inputs(&mut self, streams: &BTreeMap<String, Vec<Line>>, metadata: &[Line]) {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (_, lines) in streams.iter().filter(|(name, _)| is_session(name)) {
            for item in lines.iter().filter_map(|line| parse(&line.data)) {
                if item["kind"] == "user_message" {
                    *places.entry(id_of(&item)).or_default() += 1;
                }
            }
        }
        for frame in last_states(metadata).values() {
            let queue = frame["state"]["queue"].as_array().into_iter().flatten();
            // What agents say to each other was submitted by no client.
            for waiting in queue.filter(|waiting| waiting["from"].is_null()) {
                let id = waiting["item_id"].as_str().unwrap_or_default().to_owned();
                *places.entry(id).or_default() += 1;
            }
        }
        let twice_allowed = self.when == When::Crashed;
        for input in &self.known.inputs {
            match places.get(&input.to_string()).copied().unwrap_or(0) {
                0 => self.say(&format!(
                    "I-1: the input {input} was acknowledged and is lost"
                )),
                1 => {}
                // A crash between item and state leaves it in the queue, too; recovery drops it there.
                _ if twice_allowed => {}
                n => self.say(&format!("I-8: the input {input} is there {n} times")),
            }
        }
        for input in &self.known.withdrawn {
            if places.contains_key(&input.to_string()) {
                self.say(&format!(
                    "I-8: the input {input} was withdrawn and is there"
                ));
            }
        }
        let submitted: BTreeSet<String> = self
            .known
            .submitted
            .iter()
            .map(ToString::to_string)
            .collect();
        for id in places.keys().filter(|id| !submitted.contains(*id)) {
            if !submitted.is_empty() {
                self.say(&format!("I-3: the input {id} was submitted by nobody"));
            }
        }
    }

    /// Calls and results, places, and no trace of another conversation.
    fn items(&mut self, session: &str, lines: &[Line]) {
        let items: Vec<Value> = lines.iter().filter_map(|line| parse(&line.data)).collect();
        if items.len() != lines.len() {
            self.say(&format!(
                "I-4: session {session} has payloads that are no JSON"
            ));
        }
        let mut results: BTreeMap<String, usize> = BTreeMap::new();
        for item in items.iter().filter(|item| item["kind"] == "tool_result") {
            let call = item["body"]["call"].as_str().unwrap_or_default();
            *results.entry(call.to_owned()).or_default() += 1;
        }
        let calls = items.iter().filter(|item| item["kind"] == "tool_call");
        let calls: BTreeSet<String> = calls.map(id_of).collect();
        for call in results.keys().filter(|call| !calls.contains(*call)) {
            self.say(&format!(
                "I-8: a result answers the call {call}, which is not there"
            ));
        }
        for call in calls {
            match results.get(&call).copied().unwrap_or(0) {
                1 => {}
                0 if self.when == When::Crashed => {}
                n => self.say(&format!("I-8: the call {call} has {n} results")),
            }
        }
        let mut ids = BTreeSet::new();
        for item in &items {
            let may_come_again = matches!(
                item["kind"].as_str(),
                Some("approval" | "plan" | "retry_notice")
            );
            if !ids.insert(id_of(item)) && !may_come_again {
                self.say(&format!("I-2: the item {} is written twice", id_of(item)));
            }
        }
    }

    fn say(&mut self, what: &str) {
        self.found.push(format!("conversation {}: {what}", self.id));
    }
}

fn is_session(stream: &str) -> bool {
    stream != "metadata" && !stream.ends_with(".blobs")
}

fn parse(data: &str) -> Option<Value> {
    serde_json::from_str(data).ok()
}

fn id_of(item: &Value) -> String {
    item["id"].as_str().unwrap_or_default().to_owned()
}

/// The last state of everything, by id.
fn last_states(metadata: &[Line]) -> BTreeMap<String, Value> {
    let frames = metadata.iter().filter_map(|line| parse(&line.data));
    frames.map(|frame| (id_of(&frame), frame)).collect()
}

/// What a state as it was told has other than on disk, where both have it.
fn difference(kind: &str, wire: &Value, frame: &Value) -> Option<String> {
    if frame["kind"] != kind {
        return Some(format!(
            "it is a {} and was told as a {kind}",
            frame["kind"]
        ));
    }
    let on_disk = frame["state"].as_object()?;
    for (name, value) in on_disk {
        // A conversation is told with the time of its newest session.
        let derived = kind == "conversation" && name == "updated_at";
        let told = wire.get(name).filter(|told| *told != value && !derived);
        if let Some(told) = told {
            return Some(format!("{kind}.{name} is {value} and was told as {told}"));
        }
    }
    let queue = |value: &Value| -> Vec<Value> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|input| input["item_id"].clone())
            .collect()
    };
    let (disk, told) = (queue(&frame["state"]["queue"]), queue(&wire["pending"]));
    (disk != told).then(|| format!("the queue is {disk:?} and was told as {told:?}"))
}

#[cfg(test)]
mod tests;

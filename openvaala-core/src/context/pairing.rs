//! Keeps calls and results in pairs, whatever the log holds. Providers answer 400 to anything else, and would do
//! so for ever, since the log is never rewritten.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use openvaala_protocol::id::ItemId;
use openvaala_protocol::item::{ToolCall, ToolResult};
use serde_json::value::RawValue;

use super::wording::{BAD_ARGUMENTS, CUT_ARGUMENTS};
use crate::model::{AssistantPart, Message, Messages};

/// The most characters that providers allow in the name of a tool.
const NAME_CHARS: usize = 64;

/// The calls of a history so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Where the answers of the calls stand that have no result yet; `None` for the others.
    slots: HashMap<ItemId, Option<Slot>>,
    by_call_id: HashMap<String, Vec<ItemId>>,
    /// The ids that requests know them by.
    ids: HashSet<String>,
}

/// Where the answer of a call stands.
#[derive(Debug)]
pub(super) struct Slot {
    /// The place of the message among all.
    pub(super) message: usize,
    /// Its place in that message.
    pub(super) answer: usize,
    /// What is to be said about the call before its result.
    pub(super) remark: Option<&'static str>,
}

impl Calls {
    /// The call's id if no call before it has the same, otherwise one made of its place in the session.
    pub(super) fn unique_id(&mut self, id: &str, pos: u64) -> String {
        let mut unique = if id.is_empty() {
            format!("call_{pos}")
        } else {
            id.to_owned()
        };
        while self.ids.contains(&unique) {
            unique = format!("{unique}_{pos}");
        }
        self.ids.insert(unique.clone());
        unique
    }

    /// Takes note of a call that waits for its result.
    pub(super) fn open(&mut self, item: ItemId, call_id: String, slot: Slot) {
        self.slots.insert(item, Some(slot));
        self.by_call_id.entry(call_id).or_default().push(item);
    }

    /// Where a result goes; `None` if it belongs to no call, or to one that has a result.
    ///
    /// A result belongs to the call before it whose item it names; or else to the last one before it with the
    /// same call id and no result yet.
    pub(super) fn close(&mut self, result: &ToolResult) -> Option<Slot> {
        if let Some(slot) = self.slots.get_mut(&result.call) {
            return slot.take();
        }
        let same_id = self.by_call_id.get(&result.call_id)?.iter().rev();
        let is_open = |item: &&ItemId| matches!(self.slots.get(item), Some(Some(_)));
        let item = same_id.copied().find(|item| is_open(&item))?;
        self.slots.get_mut(&item)?.take()
    }
}

/// The tool's name with nothing in it that providers refuse.
pub(super) fn tool_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let allowed = name
        .chars()
        .take(NAME_CHARS)
        .map(|c| if is_allowed(c) { c } else { '_' });
    let name: String = allowed.collect();
    if name.is_empty() {
        "unknown_tool".to_owned()
    } else {
        name
    }
}

/// The arguments as the JSON object that they have to be, and what is to be said if they are none.
pub(super) fn arguments(call: &ToolCall) -> (Cow<'_, str>, Option<&'static str>) {
    let text = call.arguments.trim();
    if call.cut {
        return ("{}".into(), Some(CUT_ARGUMENTS));
    }
    if text.is_empty() {
        return ("{}".into(), None);
    }
    match serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(text) {
        Ok(_) => (text.into(), None),
        Err(error) if error.is_eof() => ("{}".into(), Some(CUT_ARGUMENTS)),
        Err(_) => ("{}".into(), Some(BAD_ARGUMENTS)),
    }
}

/// What is wrong with a list of messages.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("message {message} of the request {problem}")]
#[non_exhaustive]
pub struct PairingError {
    /// Which message, counted from 0.
    pub message: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Checks that every provider will accept the order of the messages.
///
/// The first message is the user's; no message is empty; no two of the assistant follow each other; every
/// assistant message with calls is followed by the results of exactly these calls in their order; call ids are
/// not empty and unique; arguments are JSON objects.
///
/// # Errors
/// The first problem that there is.
pub fn check_pairing(messages: &Messages) -> Result<(), PairingError> {
    let mut known = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let problem = |problem| {
            Err(PairingError {
                message: index,
                problem,
            })
        };
        if index == 0 && !matches!(message, Message::User(_)) {
            return problem("is the first one and not the user's");
        }
        match message {
            Message::ToolResults(answers) => {
                let answered = answers.iter().map(|answer| answer.call_id.as_str());
                if open.is_empty() || !answered.eq(open.drain(..)) {
                    return problem("does not answer the calls before it");
                }
                if answers.iter().any(|answer| answer.content.is_empty()) {
                    return problem("has an empty result");
                }
            }
            _ if !open.is_empty() => return problem("stands between calls and their results"),
            Message::User(content) if content.is_empty() => return problem("is empty"),
            Message::User(_) => {}
            Message::Assistant(_) if is_assistant(messages, index.wrapping_sub(1)) => {
                return problem("is the second of the assistant in a row");
            }
            Message::Assistant(parts) => {
                if let Some(wrong) = wrong_part(parts) {
                    return problem(wrong);
                }
                open = call_ids(parts).collect();
                if !open.iter().all(|id| !id.is_empty() && known.insert(*id)) {
                    return problem("has a call without an id of its own");
                }
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(PairingError {
        message: messages.len(),
        problem: "is missing: the results of the last calls",
    })
}

fn is_assistant(messages: &Messages, index: usize) -> bool {
    matches!(messages.get(index), Some(Message::Assistant(_)))
}

fn call_ids(parts: &[AssistantPart]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        AssistantPart::ToolCall { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

fn wrong_part(parts: &[AssistantPart]) -> Option<&'static str> {
    if parts
        .iter()
        .all(|part| matches!(part, AssistantPart::Reasoning { .. }))
    {
        return Some("says nothing");
    }
    parts.iter().find_map(|part| match part {
        AssistantPart::Text(text) if text.trim().is_empty() => Some("has an empty text"),
        AssistantPart::ToolCall { name, .. } if *name != tool_name(name) => {
            Some("has a tool name that is not allowed")
        }
        AssistantPart::ToolCall { arguments, .. } => {
            let object = serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(arguments);
            object
                .is_err()
                .then_some("has arguments that are no JSON object")
        }
        _ => None,
    })
}

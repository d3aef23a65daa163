//! What of a turn goes to standard output and standard error; decides, and writes nothing itself.

use std::collections::HashMap;

use openvaala_protocol::conversation::{Conversation, Turn};
use openvaala_protocol::event::{Entry, Live, PartialItem};
use openvaala_protocol::id::{ItemId, SessionId};
use openvaala_protocol::item::{
    AssistantMessage, Item, ItemKind, RetryNotice, ToolCall, ToolResult,
};
use serde::Serialize;

use crate::commands::describe::{call, clean, result};
use crate::output::one_line;

/// How much of a tool's arguments is shown, in characters.
const ARGUMENTS: usize = 120;

/// Something to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Shown {
    /// To standard output, as it is.
    Out(String),
    /// To standard error, as a line.
    Note(String),
}

/// How a turn is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::commands) enum Mode {
    /// Text as it comes, for people.
    Text,
    /// All that is told, one event a line.
    Json,
    /// Nothing but the last answer, and notes for people.
    Answer,
}

type Result<T = Vec<Shown>> = std::result::Result<T, serde_json::Error>;

/// Remembers what has been shown.
#[derive(Debug)]
pub(super) struct Screen {
    mode: Mode,
    /// The message that grows, and how many bytes of it have been shown.
    message: Option<(ItemId, usize)>,
    /// Whether the last thing on standard output was no line break.
    open_line: bool,
    /// The last entry of each log that has been shown; `None` is the conversation's own. After a lost connection some
    /// may come again.
    seen: HashMap<Option<SessionId>, u64>,
    /// The tools of calls that have no result yet.
    tools: HashMap<ItemId, String>,
}

impl Screen {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            message: None,
            open_line: false,
            seen: HashMap::new(),
            tools: HashMap::new(),
        }
    }

    pub(super) fn begin(&self, conversation: &Conversation) -> Result {
        if self.mode == Mode::Json {
            line("conversation", "conversation", conversation)
        } else {
            Ok(Vec::new())
        }
    }

    pub(super) fn live(&mut self, live: &Live) -> Result {
        if self.mode == Mode::Json {
            return line("live", "live", live);
        }
        let mut shown = Vec::new();
        match live {
            Live::Started(partial) => self.partial(partial, &mut shown),
            Live::Delta(delta) if self.message.is_some_and(|(id, _)| id == delta.item_id) => {
                self.grow(delta.item_id, delta.offset, &delta.text, &mut shown);
            }
            Live::Dropped { item_id, .. } if self.message.is_some_and(|(id, _)| id == *item_id) => {
                self.message = None;
                self.note("[the answer was broken off]".to_owned(), &mut shown);
            }
            _ => {}
        }
        Ok(shown)
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> Result {
        if !self.is_new(entry) {
            return Ok(Vec::new());
        }
        if self.mode == Mode::Json {
            return line("entry", "entry", entry);
        }
        let mut shown = Vec::new();
        match entry {
            Entry::Item { item, .. } => self.item(item, &mut shown),
            Entry::Damaged { message, .. } => {
                self.note(format!("[damaged: {}]", one_line(message, 400)), &mut shown);
            }
            _ => {}
        }
        Ok(shown)
    }

    pub(super) fn turn_end(&mut self, turn: &Turn) -> Result {
        if self.mode == Mode::Json {
            return line("turn_end", "turn", turn);
        }
        let mut shown = Vec::new();
        if let Some(failure) = &turn.failure {
            self.note(format!("error: {}", clean(&failure.message)), &mut shown);
        }
        Ok(shown)
    }

    /// The answer that is all that was asked for; in other modes it has been shown already.
    pub(super) fn answer(&self, answer: &str) -> Vec<Shown> {
        match self.mode {
            Mode::Answer => vec![Shown::Out(format!("{answer}\n"))],
            Mode::Text | Mode::Json => Vec::new(),
        }
    }

    /// Ends the line that is being written.
    pub(super) fn end(&self) -> Vec<Shown> {
        if self.open_line {
            vec![Shown::Out("\n".to_owned())]
        } else {
            Vec::new()
        }
    }

    fn is_new(&mut self, entry: &Entry) -> bool {
        let (log, seq) = match entry {
            Entry::Item {
                seq, session_id, ..
            }
            | Entry::Damaged {
                seq, session_id, ..
            } => (Some(*session_id), *seq),
            Entry::Conversation { seq, .. }
            | Entry::Session { seq, .. }
            | Entry::Turn { seq, .. } => (None, *seq),
            // What cannot be told apart is shown once too often rather than never.
            _ => return true,
        };
        let last = self.seen.entry(log).or_default();
        let is_new = seq > *last;
        *last = seq.max(*last);
        is_new
    }

    fn item(&mut self, item: &Item, shown: &mut Vec<Shown>) {
        let id = item.head().id;
        if let Some(Ok(message)) = item.body::<AssistantMessage>() {
            self.grow(id, 0, &message.text, shown);
            self.message = None;
            self.end_line(shown);
        } else if let Some(Ok(asked)) = item.body::<ToolCall>() {
            self.note(format!("→ {}", call(&asked, ARGUMENTS)), shown);
            self.tools.insert(id, asked.tool);
        } else if let Some(Ok(came)) = item.body::<ToolResult>() {
            let tool = self
                .tools
                .remove(&came.call)
                .unwrap_or_else(|| came.call_id.clone());
            self.note(format!("← {}", result(&tool, &came)), shown);
        } else if let Some(Ok(retry)) = item.body::<RetryNotice>() {
            let message = one_line(&retry.message, 400);
            self.note(
                format!(
                    "[attempt {} failed, trying again: {message}]",
                    retry.attempt
                ),
                shown,
            );
        }
    }

    fn partial(&mut self, partial: &PartialItem, shown: &mut Vec<Shown>) {
        if partial.kind == ItemKind::AssistantMessage {
            self.grow(partial.item_id, partial.offset, &partial.text, shown);
        }
    }

    /// Shows what of a piece of a message has not been shown; `offset` bytes of the message lie before it.
    fn grow(&mut self, id: ItemId, offset: u64, text: &str, shown: &mut Vec<Shown>) {
        if self.mode == Mode::Answer {
            return;
        }
        let seen = self
            .message
            .filter(|(known, _)| *known == id)
            .map_or(0, |(_, seen)| seen);
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let new = text.get(seen.saturating_sub(offset)..).unwrap_or_default();
        self.message = Some((id, seen.max(offset.saturating_add(text.len()))));
        let new = clean(new);
        if let Some(last) = new.chars().last() {
            self.open_line = last != '\n';
            shown.push(Shown::Out(new));
        }
    }

    fn note(&mut self, text: String, shown: &mut Vec<Shown>) {
        self.end_line(shown);
        shown.push(Shown::Note(text));
    }

    fn end_line(&mut self, shown: &mut Vec<Shown>) {
        shown.extend(self.end());
        self.open_line = false;
    }
}

/// A line of `--json`.
///
/// Not made by way of a `Value`, which would change large numbers and the order of keys in what is passed on.
fn line(kind: &str, field: &str, what: &impl Serialize) -> Result {
    let what = serde_json::to_string(what)?;
    Ok(vec![Shown::Out(format!(
        "{{\"type\":\"{kind}\",\"{field}\":{what}}}\n"
    ))])
}

#[cfg(test)]
mod tests;

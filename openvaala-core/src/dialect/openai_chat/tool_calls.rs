//! Puts the pieces of tool calls together, as different as services send them.

use serde::de::IgnoredAny;

use super::chunk::CallDelta;
use crate::model::{ModelEvent, PartKind};

/// The most arguments that all calls of one answer may have together.
const MAX_BYTES: usize = 16 << 20;
/// The most calls that one answer may have.
const MAX_CALLS: usize = 1_024;

/// The tool calls of one answer.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: Vec<Call>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Its part of the answer, once it has been announced.
    part: Option<u32>,
}

impl ToolCalls {
    /// Takes in a piece.
    ///
    /// A call is announced as soon as its id and name are known, because neither can be said later. A call
    /// whose id never comes is announced in [`finish`](Self::finish). `Err` says what there is too much of.
    pub(super) fn push(
        &mut self,
        delta: &CallDelta<'_>,
        next_part: &mut u32,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), String> {
        let place = self.place(delta).unwrap_or(self.calls.len());
        if place >= MAX_CALLS {
            return Err(format!("more than {MAX_CALLS} tool calls"));
        }
        if place == self.calls.len() {
            self.calls.push(Call {
                index: delta.index,
                ..Call::default()
            });
        }
        let Some(call) = self.calls.get_mut(place) else {
            return Ok(());
        };
        if call.id.is_empty() {
            delta.id().clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            delta.name().clone_into(&mut call.name);
        }
        let text = delta.arguments();
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(format!("more than {} MiB of arguments", MAX_BYTES >> 20));
        }
        call.arguments.push_str(&text);
        match call.part {
            Some(part) if !text.is_empty() => events.push(ModelEvent::Delta { part, text }),
            Some(_) => {}
            None if !call.id.is_empty() && !call.name.is_empty() => {
                call.announce(next_part, events)
            }
            None => {}
        }
        Ok(())
    }

    /// Announces what has not been announced, and ends all calls.
    pub(super) fn finish(&mut self, next_part: &mut u32, events: &mut Vec<ModelEvent>) {
        for call in &mut self.calls {
            if call.part.is_none() {
                call.announce(next_part, events);
            }
            events.extend(
                call.part
                    .map(|part| ModelEvent::Ended { part, opaque: None }),
            );
        }
    }

    /// Whether the arguments of a call stop in the middle.
    pub(super) fn is_cut(&self) -> bool {
        self.calls.iter().any(|call| {
            let read = serde_json::from_str::<IgnoredAny>(&call.arguments);
            !call.arguments.trim().is_empty() && read.is_err_and(|error| error.is_eof())
        })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Which call a piece belongs to; `None` for a new one.
    fn place(&self, delta: &CallDelta<'_>) -> Option<usize> {
        let place = match (delta.index, delta.id()) {
            (Some(_), _) => self
                .calls
                .iter()
                .rposition(|call| call.index == delta.index)?,
            (None, "") => self.calls.len().checked_sub(1)?,
            (None, id) => match self.calls.iter().rposition(|call| call.id == id) {
                Some(place) => place,
                // The id of the last call, which came without at first.
                None => {
                    let last = self.calls.last()?;
                    let is_late = last.id.is_empty() && delta.name().is_empty();
                    return is_late.then(|| self.calls.len() - 1);
                }
            },
        };
        let call = self.calls.get(place)?;
        (!call.is_followed_by(delta)).then_some(place)
    }
}

impl Call {
    /// Whether a piece that looks like one of this call begins another: some services give all calls of an
    /// answer the same index, or none.
    fn is_followed_by(&self, delta: &CallDelta<'_>) -> bool {
        if delta.name().is_empty() {
            return false;
        }
        let has_other_id = !delta.id().is_empty() && !self.id.is_empty() && delta.id() != self.id;
        let is_complete = || {
            self.arguments.ends_with('}')
                && serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
        };
        has_other_id || (!delta.arguments().is_empty() && is_complete())
    }

    fn announce(&mut self, next_part: &mut u32, events: &mut Vec<ModelEvent>) {
        let part = *next_part;
        *next_part += 1;
        self.part = Some(part);
        let kind = PartKind::ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
        };
        events.push(ModelEvent::Started { part, kind });
        if !self.arguments.is_empty() {
            events.push(ModelEvent::Delta {
                part,
                text: self.arguments.clone(),
            });
        }
    }
}

//! Turns the chunks of an answer into events; no network in here.

use openvaala_protocol::usage::Usage;
use serde_json::value::{RawValue, to_raw_value};

use super::chunk::{Choice, Chunk, Voice};
use super::tool_calls::ToolCalls;
use crate::dialect::http::{AnswerReader, Redactor, cut_off, senseless, stream_failure};
use crate::dialect::sse::SseEvent;
use crate::model::{ModelError, ModelErrorKind, ModelEvent, PartKind, StopReason};

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Reads one answer, chunk by chunk.
#[derive(Debug)]
pub(super) struct ChunkReader {
    place: String,
    redactor: Redactor,
    next_part: u32,
    /// The text or thought that grows now.
    open: Option<(u32, Voice)>,
    calls: ToolCalls,
    finish_reason: Option<String>,
    refused: bool,
    usage: Usage,
    done: bool,
}

impl ChunkReader {
    /// A reader at the beginning of an answer; `place` is the address that errors name.
    pub(super) fn new(place: &str, redactor: Redactor) -> Self {
        Self {
            place: place.to_owned(),
            redactor,
            next_part: 0,
            open: None,
            calls: ToolCalls::default(),
            finish_reason: None,
            refused: false,
            usage: Usage::default(),
            done: false,
        }
    }

    fn take(
        &mut self,
        choice: &Choice<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(delta) = &choice.delta {
            for (voice, text) in delta.texts() {
                self.say(voice, text, events);
            }
            if let Some(refusal) = delta.refusal.as_deref().filter(|text| !text.is_empty()) {
                self.refused = true;
                self.say(Voice::Text, refusal, events);
            }
            for call in delta.tool_calls.iter().flatten() {
                self.end_open(events);
                self.calls
                    .push(call, &mut self.next_part, events)
                    .map_err(|what| {
                        let message = format!("the answer of {} has {what}", self.place);
                        ModelError::new(ModelErrorKind::BadAnswer, message)
                    })?;
            }
        }
        if let Some(reason) = choice
            .finish_reason
            .as_ref()
            .filter(|reason| !reason.is_empty())
        {
            self.finish_reason = Some(reason.clone());
        }
        Ok(())
    }

    fn say(&mut self, voice: Voice, text: &str, events: &mut Vec<ModelEvent>) {
        if self.open.is_some_and(|(_, open)| open != voice) {
            self.end_open(events);
        }
        let part = match self.open {
            Some((part, _)) => part,
            None => self.start(voice, events),
        };
        events.push(ModelEvent::Delta {
            part,
            text: text.to_owned(),
        });
    }

    fn start(&mut self, voice: Voice, events: &mut Vec<ModelEvent>) -> u32 {
        let part = self.next_part;
        self.next_part += 1;
        self.open = Some((part, voice));
        let kind = match voice {
            Voice::Text => PartKind::Text,
            Voice::Reasoning(_) => PartKind::Reasoning,
        };
        events.push(ModelEvent::Started { part, kind });
        part
    }

    fn end_open(&mut self, events: &mut Vec<ModelEvent>) {
        let Some((part, voice)) = self.open.take() else {
            return;
        };
        let opaque = match voice {
            Voice::Text | Voice::Reasoning("") => None,
            Voice::Reasoning(field) => given_back_in(field),
        };
        events.push(ModelEvent::Ended { part, opaque });
    }

    fn stop_reason(&self) -> Result<StopReason, ModelError> {
        let reason = match self.finish_reason.as_deref() {
            Some("length" | "max_tokens" | "model_length") => StopReason::Length,
            Some("content_filter" | "refusal" | "safety") => StopReason::Refused,
            Some("error" | "network_error" | "insufficient_system_resource") => {
                let message = format!("{} gave up in the middle of its answer", self.place);
                return Err(ModelError::new(ModelErrorKind::Unavailable, message));
            }
            Some(_) => StopReason::Done,
            // Some servers never give a reason, but an explicit end is an end.
            None if self.done && (self.next_part > 0 || !self.calls.is_empty()) => StopReason::Done,
            None => return Err(cut_off(&self.place)),
        };
        Ok(match reason {
            StopReason::Done if self.refused => StopReason::Refused,
            // Routers report a normal end although the model behind them ran into its limit.
            StopReason::Done if self.calls.is_cut() => StopReason::Length,
            reason => reason,
        })
    }
}

impl AnswerReader for ChunkReader {
    /// Whether the provider has said that nothing more comes.
    fn is_done(&self) -> bool {
        self.done
    }

    /// Takes in the data of one event.
    ///
    /// # Errors
    /// [`ModelErrorKind::BadAnswer`] for data that is no chunk; any kind for an error that the provider reports.
    fn push(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        let data = event.data.trim();
        if self.done || data.is_empty() {
            return Ok(events);
        }
        if data == DONE {
            self.done = true;
            return Ok(events);
        }
        // serde would read a list as a chunk, too.
        if !data.starts_with('{') {
            return Err(senseless(&self.place));
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)
            .map_err(|error| senseless(&self.place).with_source(error))?;
        if chunk.error.is_some() {
            let whole = serde_json::from_str(data).unwrap_or_default();
            return Err(stream_failure(&self.place, &self.redactor, &whole));
        }
        if let Some(counts) = chunk.usage {
            self.usage = counts.usage();
        }
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices
            .iter()
            .filter(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.take(choice, &mut events)?;
        }
        Ok(events)
    }

    fn place(&self) -> &str {
        &self.place
    }

    /// Ends the answer: nothing more comes.
    ///
    /// # Errors
    /// [`ModelErrorKind::Connection`] if the answer is not complete, [`ModelErrorKind::Unavailable`] if the
    /// provider gave up on it.
    fn finish(mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.end_open(&mut events);
        self.calls.finish(&mut self.next_part, &mut events);
        let reason = self.stop_reason()?;
        events.push(ModelEvent::Finished {
            reason,
            usage: self.usage,
        });
        Ok(events)
    }
}

/// Notes the field in which thoughts came: services that want to see them again want them in the same one.
fn given_back_in(field: &str) -> Option<Box<RawValue>> {
    to_raw_value(&std::collections::BTreeMap::from([("field", field)])).ok()
}

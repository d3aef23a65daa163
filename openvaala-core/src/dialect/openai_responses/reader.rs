//! Turns the events of an answer into model events; no network in here.

use openvaala_protocol::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::event::{EndEvent, EventHead, ItemEvent, Response, Text, TextEvent};
use super::items::Items;
use super::output::{OutputItem, Voice};
use crate::dialect::http::{AnswerReader, Redactor, cut_off, senseless, stream_failure};
use crate::dialect::sse::SseEvent;
use crate::model::{ModelError, ModelErrorKind, ModelEvent, StopReason};

/// What proxies send after the last event.
const DONE: &str = "[DONE]";

/// Reads one answer, event by event.
#[derive(Debug)]
pub(super) struct ResponseReader {
    place: String,
    redactor: Redactor,
    items: Items,
    is_refused: bool,
    usage: Usage,
    /// Why the answer ends, once the service has said that it does.
    reason: Option<StopReason>,
    is_done: bool,
}

impl ResponseReader {
    /// A reader at the beginning of an answer; `place` is the address that errors name.
    pub(super) fn new(place: &str, redactor: Redactor) -> Self {
        Self {
            place: place.to_owned(),
            redactor,
            items: Items::default(),
            is_refused: false,
            usage: Usage::default(),
            reason: None,
            is_done: false,
        }
    }

    fn take(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match name {
            "response.output_item.added" => self.item_begins(&self.read(data)?, events),
            "response.output_item.done" => self.item_ends(&self.read(data)?, events),
            "response.output_text.delta" => self.delta(Voice::Text, data, events),
            "response.output_text.done" => self.whole(Voice::Text, data, events),
            "response.refusal.delta" | "response.refusal.done" => {
                self.is_refused = true;
                if name.ends_with("delta") {
                    self.delta(Voice::Text, data, events)
                } else {
                    self.whole(Voice::Text, data, events)
                }
            }
            "response.reasoning_summary_text.delta" => self.delta(Voice::Summary, data, events),
            "response.reasoning_summary_text.done" => self.whole(Voice::Summary, data, events),
            "response.reasoning_text.delta" => self.delta(Voice::Thought, data, events),
            "response.reasoning_text.done" => self.whole(Voice::Thought, data, events),
            "response.function_call_arguments.delta" => self.delta(Voice::Arguments, data, events),
            "response.function_call_arguments.done" => self.whole(Voice::Arguments, data, events),
            "response.completed" => self.end(data, |_| StopReason::Done, events),
            "response.incomplete" => self.end(data, why_incomplete, events),
            "response.failed" => Err(self.response_failure(data)?),
            "error" => Err(self.failure(data)),
            // What the answer is about to do, tools that the service runs itself, and what later versions bring.
            _ => Ok(()),
        }
    }

    fn delta(
        &mut self,
        voice: Voice,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let event: TextEvent<'_> = self.read(data)?;
        let pushed = self
            .items
            .push(event.key(), voice, event.place(), event.delta(), events);
        pushed.map_err(|what| self.too_much(&what))
    }

    fn whole(
        &mut self,
        voice: Voice,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let event: TextEvent<'_> = self.read(data)?;
        let pushed =
            self.items
                .push_whole(event.key(), voice, event.place(), &event.whole(), events);
        pushed.map_err(|what| self.too_much(&what))
    }

    fn item_begins(
        &mut self,
        event: &ItemEvent<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let read = OutputItem::read(event.item)
            .map_err(|error| senseless(&self.place).with_source(error))?;
        let Some((kind, item)) = read else {
            return Ok(());
        };
        self.items
            .begin(kind, event.output_index, &item, events)
            .map_err(|what| self.too_much(&what))
    }

    fn item_ends(
        &mut self,
        event: &ItemEvent<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let read = OutputItem::read(event.item)
            .map_err(|error| senseless(&self.place).with_source(error))?;
        let Some((kind, item)) = read else {
            return Ok(());
        };
        self.is_refused |= item.is_refused();
        self.items
            .end(kind, event.output_index, &item, event.item, events)
            .map_err(|what| self.too_much(&what))
    }

    fn end(
        &mut self,
        data: &str,
        reason: impl FnOnce(&Response<'_>) -> StopReason,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let event: EndEvent<'_> = self.read(data)?;
        let response = event.response.unwrap_or_default();
        self.usage = response.usage();
        self.reason = Some(reason(&response));
        self.is_done = true;
        // Some servers say nothing before the end, and some forget to end an item.
        let was_silent = self.items.is_empty();
        for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
            if was_silent || self.is_open(item) {
                let output_index = Some(index);
                self.item_ends(&ItemEvent { output_index, item }, events)?;
            }
        }
        Ok(())
    }

    fn is_open(&self, item: &RawValue) -> bool {
        OutputItem::read(item)
            .is_ok_and(|read| read.is_some_and(|(kind, item)| self.items.is_open(kind, item.id())))
    }

    fn stop_reason(&self) -> Result<StopReason, ModelError> {
        Ok(match self.reason {
            Some(StopReason::Done) if self.is_refused => StopReason::Refused,
            // Proxies report a normal end although the model behind them ran into its limit.
            Some(StopReason::Done) if self.items.has_cut_call() => StopReason::Length,
            Some(reason) => reason,
            None => return Err(cut_off(&self.place)),
        })
    }

    fn read<'a, T: Deserialize<'a>>(&self, data: &'a str) -> Result<T, ModelError> {
        serde_json::from_str(data).map_err(|error| senseless(&self.place).with_source(error))
    }

    fn response_failure(&self, data: &str) -> Result<ModelError, ModelError> {
        let event: EndEvent<'_> = self.read(data)?;
        let error = json!({ "error": event.response.unwrap_or_default().error });
        Ok(stream_failure(&self.place, &self.redactor, &error))
    }

    /// An error that stands for itself: `{"type":"error","code":…,"message":…}`, or with all that within `error`.
    fn failure(&self, data: &str) -> ModelError {
        let mut whole: Value = serde_json::from_str(data).unwrap_or_default();
        if let Some(fields) = whole.as_object_mut() {
            // The type of the event is not the type of the error.
            fields.remove("type");
        }
        stream_failure(&self.place, &self.redactor, &whole)
    }

    fn too_much(&self, what: &str) -> ModelError {
        let message = format!("the answer of {} has {what}", self.place);
        ModelError::new(ModelErrorKind::BadAnswer, message)
    }
}

fn why_incomplete(response: &Response<'_>) -> StopReason {
    match response.why_incomplete() {
        "content_filter" => StopReason::Refused,
        _ => StopReason::Length,
    }
}

impl AnswerReader for ResponseReader {
    fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes in an event.
    ///
    /// # Errors
    /// [`ModelErrorKind::BadAnswer`] for data that is no event; any kind for an error that the provider reports.
    fn push(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        let data = event.data.trim();
        if self.is_done || data.is_empty() {
            return Ok(events);
        }
        if data == DONE {
            self.is_done = true;
            return Ok(events);
        }
        // serde would read a list as an event, too.
        if !data.starts_with('{') {
            return Err(senseless(&self.place));
        }
        let head: EventHead<'_> = self.read(data)?;
        // The name of the event stands in its data; the line above is for servers that forget it there.
        let name = head.r#type.as_ref().map(Text::as_str);
        let name = name.or(event.event.as_deref()).unwrap_or("");
        if name.is_empty() && head.error.is_some() {
            return Err(self.failure(data));
        }
        self.take(name, data, &mut events)?;
        Ok(events)
    }

    fn place(&self) -> &str {
        &self.place
    }

    /// Ends the answer: nothing more comes.
    ///
    /// # Errors
    /// [`ModelErrorKind::Connection`] if the service has not said that the answer is complete.
    fn finish(mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.items.finish(&mut events);
        let reason = self.stop_reason()?;
        events.push(ModelEvent::Finished {
            reason,
            usage: self.usage,
        });
        Ok(events)
    }
}

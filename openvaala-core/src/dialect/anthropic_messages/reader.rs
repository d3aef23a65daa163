//! Turns the events of an answer into model events; no network in here.

use std::collections::BTreeMap;

use super::block::OpenBlock;
use super::event::{BlockDelta, BlockStart, Delta, Event, Tally};
use crate::dialect::http::{AnswerReader, Redactor, cut_off, senseless, stream_failure};
use crate::dialect::sse::SseEvent;
use crate::model::{ModelError, ModelErrorKind, ModelEvent, StopReason};

/// The most arguments, thoughts and signatures that one answer may have together.
const MAX_BYTES: usize = 16 << 20;
/// The most blocks that one answer may have.
const MAX_BLOCKS: u32 = 1_024;
/// What proxies that know another API send at the end.
const OTHER_END: &str = "[DONE]";

/// Reads one answer, event by event.
#[derive(Debug)]
pub(super) struct EventReader {
    place: String,
    redactor: Redactor,
    next_part: u32,
    /// How many blocks have begun.
    blocks: u32,
    /// The blocks that grow now, by their index.
    open: BTreeMap<u64, OpenBlock>,
    bytes: usize,
    has_cut_call: bool,
    stop_reason: Option<String>,
    tally: Tally,
    done: bool,
}

impl EventReader {
    /// A reader at the beginning of an answer; `place` is the address that errors name.
    pub(super) fn new(place: &str, redactor: Redactor) -> Self {
        Self {
            place: place.to_owned(),
            redactor,
            next_part: 0,
            blocks: 0,
            open: BTreeMap::new(),
            bytes: 0,
            has_cut_call: false,
            stop_reason: None,
            tally: Tally::default(),
            done: false,
        }
    }

    fn take(&mut self, event: Event<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match event {
            Event::MessageStart(start) => {
                if let Some(counts) = start.message.usage {
                    self.tally.take(&counts);
                }
            }
            Event::BlockStart(start) => self.begin(start, events)?,
            Event::BlockDelta(BlockDelta { index, delta }) => self.grow(index, &delta, events)?,
            Event::BlockStop(stop) => self.end(stop.index, events),
            Event::MessageDelta(change) => {
                if let Some(counts) = change.usage {
                    self.tally.take(&counts);
                }
                let reason = change.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.or_else(|| self.stop_reason.take());
            }
            Event::MessageStop => self.done = true,
            Event::Error(error) => {
                return Err(stream_failure(&self.place, &self.redactor, &error));
            }
            Event::Other => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        start: BlockStart<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        // Some services forget to end a block.
        self.end(start.index, events);
        self.blocks += 1;
        if self.blocks > MAX_BLOCKS {
            return Err(self.bad(&format!("has more than {MAX_BLOCKS} blocks")));
        }
        let index = start.index;
        let block = OpenBlock::begin(start.content_block, &mut self.next_part, events);
        self.count(block.bytes())?;
        self.open.insert(index, block);
        Ok(())
    }

    fn grow(
        &mut self,
        index: u64,
        delta: &Delta,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(block) = self.open.get_mut(&index) else {
            return Err(self.bad("goes on with a block that has not begun"));
        };
        let before = block.bytes();
        if !block.grow(delta, &mut self.next_part, events) {
            return Err(self.bad("goes on with a block as if it were of another kind"));
        }
        let grown = block.bytes().saturating_sub(before);
        self.count(grown)
    }

    fn end(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        if let Some(block) = self.open.remove(&index) {
            self.has_cut_call |= block.end(events);
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            let what = format!(
                "has more than {} MiB of arguments and thoughts",
                MAX_BYTES >> 20
            );
            return Err(self.bad(&what));
        }
        Ok(())
    }

    fn stop_reason(&self) -> Result<StopReason, ModelError> {
        if !self.done {
            return Err(cut_off(&self.place));
        }
        let reason = match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("refusal") => StopReason::Refused,
            // A turn is paused only within tools that run at the provider, and those are never asked for.
            Some(_) => StopReason::Done,
            // Some servers never give a reason, but an explicit end is an end.
            None if self.next_part > 0 => StopReason::Done,
            None => return Err(cut_off(&self.place)),
        };
        Ok(match reason {
            // Routers report a normal end although the model behind them ran into its limit.
            StopReason::Done if self.has_cut_call => StopReason::Length,
            reason => reason,
        })
    }

    fn bad(&self, what: &str) -> ModelError {
        let message = format!("the answer of {} {what}", self.place);
        ModelError::new(ModelErrorKind::BadAnswer, message)
    }
}

impl AnswerReader for EventReader {
    /// Whether the provider has said that nothing more comes.
    fn is_done(&self) -> bool {
        self.done
    }

    /// Takes in one event.
    ///
    /// # Errors
    /// [`ModelErrorKind::BadAnswer`] for data that is no event; any kind for an error that the provider reports.
    fn push(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        let data = event.data.trim();
        if self.done || data.is_empty() || data == OTHER_END {
            return Ok(events);
        }
        let read = Event::read(event).map_err(|error| senseless(&self.place).with_source(error))?;
        self.take(read, &mut events)?;
        Ok(events)
    }

    fn place(&self) -> &str {
        &self.place
    }

    /// Ends the answer: nothing more comes.
    ///
    /// # Errors
    /// [`ModelErrorKind::Connection`] if the provider has not said that the answer is complete.
    fn finish(mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        while let Some((_, block)) = self.open.pop_first() {
            self.has_cut_call |= block.end(&mut events);
        }
        let reason = self.stop_reason()?;
        let usage = self.tally.usage();
        events.push(ModelEvent::Finished { reason, usage });
        Ok(events)
    }
}

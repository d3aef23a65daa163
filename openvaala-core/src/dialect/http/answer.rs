//! An answer on its way: events from the network go through a dialect's reader and come out as model events.

use std::collections::VecDeque;

use futures::stream::{self, BoxStream, StreamExt};

use super::events::{EventStream, Received};
use crate::dialect::sse::SseEvent;
use crate::model::{ModelError, ModelErrorKind, ModelEvent};

/// What a dialect makes of the events of one answer; no network in here.
///
/// After an error nothing more is given to it.
pub(crate) trait AnswerReader: Send + 'static {
    /// Takes in an event.
    fn push(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError>;

    /// Takes in what stood at the end of the stream without a blank line after it; what makes no sense counts as cut
    /// off.
    fn push_last(&mut self, event: &SseEvent) -> Result<Vec<ModelEvent>, ModelError> {
        self.push(event).map_err(|error| match error.kind {
            ModelErrorKind::BadAnswer => cut_off(self.place()),
            _ => error,
        })
    }

    /// The address that errors name.
    fn place(&self) -> &str;

    /// Whether the provider has said that nothing more comes.
    fn is_done(&self) -> bool;

    /// Ends the answer: what is still to be said, or the error that it was cut off.
    fn finish(self) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The error of an answer that stops in the middle.
pub(crate) fn cut_off(place: &str) -> ModelError {
    let message = format!("{place} cut off its answer in the middle");
    ModelError::new(ModelErrorKind::Connection, message)
}

/// The error of an event that cannot be understood.
pub(crate) fn senseless(place: &str) -> ModelError {
    let message = format!("{place} sends an event that makes no sense");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// Reads an answer from the network to its end.
pub(crate) fn answer<R: AnswerReader>(
    events: EventStream,
    reader: R,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    let answer = Answer {
        events,
        reader: Some(reader),
        ready: VecDeque::new(),
    };
    stream::unfold(answer, |mut answer| async {
        let event = answer.next().await.transpose()?;
        Some((event, answer))
    })
    .boxed()
}

struct Answer<R> {
    events: EventStream,
    /// `None` after the end or an error.
    reader: Option<R>,
    ready: VecDeque<ModelEvent>,
}

impl<R: AnswerReader> Answer<R> {
    async fn next(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(mut reader) = self.reader.take() else {
                return Ok(None);
            };
            match self.events.next().await? {
                Some(Received::Whole(event)) => self.ready.extend(reader.push(&event)?),
                Some(Received::Last(event)) => self.ready.extend(reader.push_last(&event)?),
                None => {
                    self.ready.extend(reader.finish()?);
                    continue;
                }
            }
            if reader.is_done() {
                self.ready.extend(reader.finish()?);
            } else {
                self.reader = Some(reader);
            }
        }
    }
}

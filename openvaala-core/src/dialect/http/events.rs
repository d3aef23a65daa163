//! The events of an answer as they come over the network.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use super::failure::connection_failure;
use crate::dialect::sse::{SseError, SseEvent, SseReader};
use crate::model::{ModelError, ModelErrorKind};

/// An event of an answer.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Received {
    /// An event that was closed by a blank line.
    Whole(SseEvent),
    /// What stood at the end of the stream, perhaps cut off in the middle.
    Last(SseEvent),
}

/// Reads an answer event by event. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct EventStream {
    response: Response,
    reader: Option<SseReader>,
    ready: VecDeque<SseEvent>,
    idle_timeout: Duration,
    place: String,
}

impl EventStream {
    pub(super) const fn new(response: Response, idle_timeout: Duration, place: String) -> Self {
        let reader = Some(SseReader::new());
        Self {
            response,
            reader,
            ready: VecDeque::new(),
            idle_timeout,
            place,
        }
    }

    /// The next event; `None` once the provider has closed the stream.
    ///
    /// # Errors
    /// [`ModelErrorKind::Connection`] if the connection breaks or stays silent for too long,
    /// [`ModelErrorKind::BadAnswer`] if an event is too long. Nothing comes after an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Received>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(Received::Whole(event)));
            }
            let Some(reader) = &mut self.reader else {
                return Ok(None);
            };
            let chunk = timeout(self.idle_timeout, self.response.chunk())
                .await
                .map_err(|_| silent(&self.place, self.idle_timeout))?
                .map_err(|error| connection_failure(&self.place, &error))?;
            match chunk {
                Some(bytes) => {
                    let events = reader
                        .feed(&bytes)
                        .map_err(|error| too_long(&self.place, error))?;
                    self.ready.extend(events);
                }
                None => {
                    let last = self.reader.take().map(SseReader::finish).transpose();
                    let last = last
                        .map_err(|error| too_long(&self.place, error))?
                        .flatten();
                    return Ok(last.map(Received::Last));
                }
            }
        }
    }
}

/// The error of a connection on which nothing comes.
pub(super) fn silent(place: &str, idle_timeout: Duration) -> ModelError {
    let message =
        format!("{place} has sent nothing for {idle_timeout:?}; the connection was closed");
    ModelError::new(ModelErrorKind::Connection, message)
}

fn too_long(place: &str, error: SseError) -> ModelError {
    let message = format!("the answer of {place} cannot be read: {error}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}
